"""Every cell of the tables in `heatcheck.studies.alignment.blame.readings`."""

import math
from dataclasses import replace

import pytest

from heatcheck.studies.alignment.blame.readings import (
    Arm,
    BlameEvidence,
    EstimateWithInterval,
    LevelReading,
    Use,
    level,
    read,
    used,
)

UNKNOWN = EstimateWithInterval()
NONE = EstimateWithInterval(0.0, 0.0, 0.0)
USED, UNUSED, VAGUE = (
    EstimateWithInterval(0.8, 0.5, 1.1),
    EstimateWithInterval(0.05, -0.1, 0.2),
    EstimateWithInterval(0.6, -0.2, 1.4),
)
MARKED, UNMARKED, DIM = (
    EstimateWithInterval(0.3, 0.2, 0.4),
    EstimateWithInterval(0.01, -0.03, 0.05),
    EstimateWithInterval(0.4, -0.2, 0.95),
)
PLACEBO = EstimateWithInterval(0.0, -0.05, 0.05)
SCORE = EstimateWithInterval(0.3, 0.2, 0.4)  # of the control
UP = {  # differences of the map's score and of reliance, aligned less control
    "far": EstimateWithInterval(0.3, 0.2, 0.4),
    "moved": EstimateWithInterval(0.15, 0.05, 0.25),
    "slight": EstimateWithInterval(0.05, 0.02, 0.08),
    "still": EstimateWithInterval(0.02, -0.05, 0.09),
    "back": EstimateWithInterval(-0.15, -0.25, -0.05),
    "far back": EstimateWithInterval(-0.3, -0.4, -0.2),
    "unclear": EstimateWithInterval(0.05, -0.05, 0.15),
    "unknown": UNKNOWN,
}
RELIED = {
    "followed": EstimateWithInterval(0.4, 0.2, 0.6),
    "held": EstimateWithInterval(0.05, -0.1, 0.2),
    "turned": EstimateWithInterval(-0.4, -0.6, -0.2),
    "unclear": EstimateWithInterval(0.2, -0.1, 0.5),
    "unknown": UNKNOWN,
}


SIZE = 0.325  # of a reliance that matters: a quarter of a separation of 1.3


def evidence(**changed):
    """A model that uses the area and a map that marks it; nothing moved, and it was not learned either."""
    usual = BlameEvidence(
        base=Use(USED, PLACEBO, SIZE),
        gain=MARKED,
        gain_size=0.09,
        control=Use(USED, PLACEBO, SIZE),
        control_score=SCORE,
        arms=(arm("align", "still"), arm("misalign", "still")),
        learned=EstimateWithInterval(0.02, -0.05, 0.09),
    )
    return replace(usual, **changed)


def arm(direction, score, reliance="held"):
    """An arm whose changes are named; those of misalign point down."""
    return Arm(direction, UP[score].toward(direction), RELIED[reliance].toward(direction))


def test_a_direction_down_turns_an_interval_round():
    assert EstimateWithInterval(1.0, 0.5, 2.0).toward("misalign") == EstimateWithInterval(-1.0, -2.0, -0.5)
    assert EstimateWithInterval(1.0, 0.5, 2.0).toward("align") == EstimateWithInterval(1.0, 0.5, 2.0)


@pytest.mark.parametrize(
    ("reliance", "gain", "before"),
    [
        (USED, UNMARKED, "method"),
        (UNUSED, UNMARKED, "model"),
        (USED, MARKED, "shows"),
        (UNUSED, MARKED, "looks_elsewhere"),
        (VAGUE, MARKED, "undecided"),
        (VAGUE, UNMARKED, "undecided"),
        (UNKNOWN, UNMARKED, "undecided"),
        (UNKNOWN, MARKED, "undecided"),
        (USED, DIM, "undecided"),
        (UNUSED, DIM, "undecided"),
        (USED, UNKNOWN, "undecided"),
        (UNKNOWN, UNKNOWN, "undecided"),
        (NONE, UNMARKED, "model"),  # hiding the area changed no image's answer
        (EstimateWithInterval(-0.5, -0.8, -0.2), UNMARKED, "model"),  # the area speaks against the finding
    ],
)
def test_before_fine_tuning(reliance, gain, before):
    verdict = read(evidence(base=Use(reliance, PLACEBO, SIZE), gain=gain))
    assert verdict.before == before


@pytest.mark.parametrize(
    ("estimate", "floor", "size", "expected"),
    [
        (EstimateWithInterval(0.5, 0.001, 3.0), 0.0, 0.3, LevelReading("high")),  # however much it may be
        (EstimateWithInterval(0.1, -0.1, 0.29), 0.0, 0.3, LevelReading("low")),
        (EstimateWithInterval(0.1, 0.01, 0.29), 0.0, 0.3, LevelReading("low")),  # beyond chance, too small to matter
        (EstimateWithInterval(0.1, -0.1, 0.3), 0.0, 0.3, LevelReading("unknown", "too wide")),  # weak, but may be real
        (EstimateWithInterval(0.1, 0.01, 0.4), 0.0, 0.3, LevelReading("unknown", "too wide")),
        (EstimateWithInterval(0.5, 0.1, 0.9), 0.0, math.nan, LevelReading("unknown", "no scale")),
        (EstimateWithInterval(0.5, 0.1, 0.9), 0.2, 0.3, LevelReading("unknown", "too wide")),
        (EstimateWithInterval(0.5, 0.3, 0.9), 0.2, 0.3, LevelReading("high")),
        (EstimateWithInterval(0.5), 0.0, 0.3, LevelReading("unknown", "undefined")),
        (EstimateWithInterval(0.5, 0.1), 0.0, 0.3, LevelReading("unknown", "undefined")),
    ],
)
def test_low_is_what_cannot_matter_and_not_what_is_not_significant(estimate, floor, size, expected):
    assert level(estimate, floor, size) == expected


def test_a_placebo_above_0_raises_the_floor_and_one_around_0_does_not():
    reliance = EstimateWithInterval(0.3, 0.1, 0.38)
    assert used(Use(reliance, EstimateWithInterval(0.1, -0.1, 0.3), 0.25)).level == "high"
    assert used(Use(reliance, EstimateWithInterval(0.1, 0.05, 0.15), 0.25)).level == "low"
    assert used(Use(reliance, UNKNOWN, 0.25)).level == "high"


def test_one_training_decides_nothing_under_fine_tuning_and_is_still_read():
    arms = (arm("align", "far", "held"), arm("misalign", "far", "held"))
    verdict = read(evidence(arms=arms, one_training=True))
    assert (verdict.before, verdict.under) == ("shows", "undecided")
    assert [reading.outcome for reading in verdict.arms] == ["foolable", "foolable"]


OUTCOMES = {
    "far": {"followed": "follows", "held": "foolable", "turned": "foolable"},
    "moved": {"followed": "follows"},
    "slight": {"held": "still"},
    "still": {"followed": "missed", "turned": "missed", "held": "still", "unclear": "still", "unknown": "still"},
    "back": {"turned": "follows"},
    "far back": {"turned": "follows", "held": "foolable", "followed": "foolable"},
    "unclear": {},
    "unknown": {},
}


@pytest.mark.parametrize("direction", ["align", "misalign"])
@pytest.mark.parametrize("reliance", RELIED)
@pytest.mark.parametrize("score", UP)
def test_one_arm(direction, score, reliance):
    (reading,) = read(evidence(arms=(arm(direction, score, reliance),))).arms
    assert (reading.direction, reading.score, reading.reliance) == (direction, score, reliance)
    assert reading.outcome == OUTCOMES[score].get(reliance, "undecided")


MADE = {
    "follows": ("far", "followed"),
    "foolable": ("far", "held"),
    "undecided": ("far", "unclear"),
    "still": ("still",),
    "still, reliance unclear": ("still", "unclear"),
    "missed": ("still", "followed"),
    "missed, turned": ("still", "turned"),
    "followed back": ("far back", "turned"),
    "fooled back": ("far back", "held"),
}


@pytest.mark.parametrize(
    ("one", "other", "under"),
    [
        ("follows", "follows", "follows"),
        ("follows", "still", "follows"),
        ("follows", "foolable", "foolable"),
        ("follows", "undecided", "undecided"),
        ("foolable", "foolable", "foolable"),
        ("foolable", "still", "foolable"),
        ("foolable", "undecided", "foolable"),
        ("undecided", "undecided", "undecided"),
        ("undecided", "still", "undecided"),
        ("still", "still", "failed"),
        ("still, reliance unclear", "still, reliance unclear", "failed"),
        ("follows", "still, reliance unclear", "undecided"),
        ("follows", "missed", "undecided"),
        ("follows", "missed, turned", "undecided"),
        ("foolable", "missed", "foolable"),
        ("undecided", "missed", "undecided"),
        ("missed", "missed", "unmoved"),
        ("missed", "missed, turned", "unmoved"),
        ("missed", "still", "unmoved"),
        ("missed", "still, reliance unclear", "unmoved"),
        ("followed back", "follows", "follows"),
        ("followed back", "still", "follows"),
        ("followed back", "missed", "undecided"),
        ("fooled back", "follows", "foolable"),
        ("fooled back", "still", "foolable"),
    ],
)
def test_two_arms_in_either_order(one, other, under):
    for first, second in ((one, other), (other, one)):
        arms = (arm("align", *MADE[first]), arm("misalign", *MADE[second]))
        assert read(evidence(arms=arms)).under == under


def test_one_arm_alone_is_read_and_none_is_not():
    assert read(evidence(arms=(arm("align", "far", "followed"),))).under == "follows"
    assert read(evidence(arms=())).under == "undecided"


@pytest.mark.parametrize(
    ("learned", "under"),
    [
        (EstimateWithInterval(0.4, 0.3, 0.5), "unmoved"),
        (EstimateWithInterval(0.08, 0.02, 0.14), "undecided"),  # unseen patients may have gained as much
        (EstimateWithInterval(0.02, -0.05, 0.09), "failed"),
        (EstimateWithInterval(-0.1, -0.2, -0.05), "failed"),
        (NONE, "failed"),
        (EstimateWithInterval(0.2, -0.1, 0.5), "undecided"),  # may have been learned well
        (UNKNOWN, "undecided"),
    ],
)
def test_where_nothing_moved_the_images_learned_from_say_why(learned, under):
    assert read(evidence(learned=learned)).under == under


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(
    ("reliance", "under"),
    [("held", "foolable"), ("followed", "foolable"), ("turned", "follows"), ("unclear", "undecided")],
)
def test_a_map_that_moved_far_against_the_arm_is_never_one_that_did_not_move(reliance, under, judged):
    back = Arm("misalign", EstimateWithInterval(0.62, 0.57, 0.66), RELIED[reliance].toward("misalign"))
    learned = UNKNOWN if judged else EstimateWithInterval(0.4, 0.3, 0.5)
    verdict = read(evidence(arms=(arm("align", "still"), back), judged=judged, learned=learned))
    assert (verdict.arms[1].score, verdict.under) == ("far back", under)


def test_a_map_is_still_only_where_both_ends_of_its_change_stay_within_the_controls_interval():
    for ends in ((-0.05, 0.15), (-0.15, 0.05), (-0.15, 0.15)):
        for direction in ("align", "misalign"):
            (reading,) = read(evidence(arms=(Arm(direction, EstimateWithInterval(0.0, *ends), NONE),))).arms
            assert (reading.score, reading.outcome) == ("unclear", "undecided")


def test_a_map_that_stood_still_while_reliance_changed_clearly_does_not_follow_the_model():
    """Nor did fine-tuning fail where it changed what the model goes by."""
    missed = Arm("misalign", EstimateWithInterval(0.001, -0.004, 0.006), EstimateWithInterval(-1.07, -1.22, -0.91))
    assert read(evidence(arms=(arm("align", "far", "followed"), missed))).under == "undecided"
    for learned in (NONE, UNKNOWN, EstimateWithInterval(0.4, 0.3, 0.5)):
        assert read(evidence(arms=(arm("align", "still"), missed), learned=learned)).under == "unmoved"


def test_foolable_is_not_decided_by_a_hair():
    """The value leaves the control's interval, but the change may be less: with one seed, another may come out so."""
    control = EstimateWithInterval(0.2829, 0.2429, 0.3229)
    for change, under in (
        (EstimateWithInterval(0.0402, 0.0200, 0.0600), "undecided"),
        (EstimateWithInterval(0.0602, 0.0402, 0.0800), "foolable"),
    ):
        for direction in ("align", "misalign"):
            moved = Arm(direction, change.toward(direction), NONE)
            assert read(evidence(arms=(moved,), control_score=control)).under == under


def test_without_an_interval_of_the_controls_score_no_map_is_still_or_far():
    for score, weaker in (("far", "moved"), ("far back", "back"), ("still", "unclear"), ("slight", "moved")):
        assert read(evidence(arms=(arm("align", score),), control_score=UNKNOWN)).arms[0].score == weaker


def test_without_an_aligned_arm_nothing_is_known_of_what_was_learned():
    assert (
        read(evidence(arms=(arm("misalign", "still"),), learned=EstimateWithInterval(0.4, 0.3, 0.5))).under
        == "undecided"
    )


def test_a_judged_method_whose_map_stands_still_is_unmoved_and_its_optimisation_did_not_fail():
    arms = tuple(Arm(direction, NONE, RELIED["followed"].toward(direction)) for direction in ("align", "misalign"))
    assert read(evidence(arms=arms, judged=True, learned=UNKNOWN)).under == "unmoved"
    wide = EstimateWithInterval(0.1, -0.2, 0.4)
    for few in ((Arm("align", wide, NONE), arms[1]), (arms[0], Arm("misalign", wide, NONE))):
        assert read(evidence(arms=few, judged=True)).under == "undecided"
    assert read(evidence(arms=arms, judged=True, control_score=UNKNOWN)).under == "undecided"


def test_a_change_of_no_weight_that_lies_beyond_0_does_not_count_as_following():
    """Paired differences can be exact to a hair: here the model's reliance rose by a two-hundredth."""
    hair = Arm("align", UP["far"], EstimateWithInterval(0.004, 0.001, 0.007))
    assert read(evidence(arms=(hair,))).arms[0].reliance == "held"
    assert read(evidence(arms=(hair,), control=Use(USED, UNKNOWN, SIZE))).arms[0].reliance == "followed"
    back = Arm("align", UP["far"], EstimateWithInterval(-0.004, -0.007, -0.001))
    assert read(evidence(arms=(back,))).arms[0].reliance == "held"


def test_reliance_does_not_hold_where_the_control_itself_is_not_known():
    vague = evidence(arms=(arm("align", "far", "held"),), control=Use(VAGUE, PLACEBO, SIZE))
    assert read(vague).under == "undecided"


def test_reliance_does_not_hold_where_its_interval_reaches_beyond_the_controls():
    """With few patients the difference may be anything: that it covers 0 is no sign that nothing happened."""
    few = Arm("misalign", UP["far"].toward("misalign"), EstimateWithInterval(-0.1, -0.5, 0.3))
    assert read(evidence(arms=(few,))).under == "undecided"
    either = Arm("misalign", UP["far"].toward("misalign"), EstimateWithInterval(0.1, -0.1, 0.5))
    assert read(evidence(arms=(either,))).under == "undecided"
    many = Arm("misalign", UP["far"].toward("misalign"), EstimateWithInterval(-0.1, -0.25, 0.05))
    assert read(evidence(arms=(many,))).under == "foolable"


def test_a_model_that_does_not_use_the_area_can_be_held_too():
    low = Use(UNUSED, PLACEBO, SIZE)
    assert read(evidence(arms=(Arm("align", UP["far"], NONE),), control=low)).under == "foolable"


def test_a_reading_without_any_number_is_undecided_in_both_parts():
    unknown_use = Use(UNKNOWN, UNKNOWN, math.nan)
    arms = (Arm("align", UNKNOWN, UNKNOWN), Arm("misalign", UNKNOWN, UNKNOWN))
    verdict = read(BlameEvidence(unknown_use, UNKNOWN, math.nan, unknown_use, UNKNOWN, arms))
    assert (verdict.before, verdict.under) == ("undecided", "undecided")
    assert verdict.uses == verdict.marks == LevelReading("unknown", "undefined")
