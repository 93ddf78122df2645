"""Every cell of the tables in `heatcheck.studies.alignment.blame.readings`."""

import math
from dataclasses import replace

import pytest

from heatcheck.judging.sizes import Sizes
from heatcheck.studies.alignment.blame.evidence import (
    Arm,
    BlameEvidence,
    EstimateWithInterval,
    Marks,
    Part,
    Use,
    reliance_part,
    score_part,
)
from heatcheck.studies.alignment.blame.readings import MarkReading, UseReading, marked, needed, read, used

UNKNOWN = EstimateWithInterval()
SEPARATION, FLOOR = 1.6, 0.2  # reliance matters from 0.4, a map from 0.08 above random maps
USUAL = 0.4  # what the usual place scores: a map matters from 0.06 above it
SIZES = Sizes()


def relied(value, low, high, separation=SEPARATION):
    return reliance_part(EstimateWithInterval(value, low, high), separation, SIZES)


def scored(value, low, high, floor=FLOOR, best=1.0):
    return score_part(EstimateWithInterval(value, low, high), floor, best, SIZES)


RELIANCE = {
    "yes": relied(0.8, 0.5, 1.1),
    "no": relied(0.05, -0.1, 0.2),
    "open": relied(0.6, -0.2, 1.4),
    "against": relied(-0.8, -1.1, -0.5),
    "undefined": Part(UNKNOWN, 0.4, 1.6),
    "no scale": relied(0.8, 0.5, 1.1, separation=-0.1),
}
ABOVE = {  # a floor
    "yes": scored(0.3, 0.2, 0.4),
    "no": scored(0.01, -0.03, 0.05),
    "open": scored(0.2, -0.2, 0.6),
    "undefined": scored(math.nan, math.nan, math.nan),
    "no scale": scored(0.3, 0.2, 0.4, floor=1.0),
}


def use(reliance="yes", added="no", untrained=None):
    return Use(RELIANCE[reliance], RELIANCE[added], untrained)


def marks(best="yes", random="yes"):
    return Marks({"random": ABOVE[random], "location_prior": ABOVE[best]}, "location_prior")


UP = {  # changes of the map's score, aligned less control; the room above random maps is 0.8
    "moved": scored(0.4, 0.3, 0.5),
    "still": scored(0.02, -0.05, 0.07),
    "back": scored(-0.4, -0.5, -0.3),
    "unclear": scored(0.05, -0.05, 0.15),
    "unknown": scored(math.nan, math.nan, math.nan),
}
RELIED = {
    "followed": relied(0.8, 0.5, 1.1),
    "held": relied(0.0, -0.1, 0.1),
    "turned": relied(-0.8, -1.1, -0.5),
    "unclear": relied(0.3, -0.1, 0.7),
    "unknown": relied(math.nan, math.nan, math.nan),
}


def arm(direction, score, reliance="held"):
    """An arm whose changes are named; those of misalign point down."""
    return Arm(direction, UP[score].toward(direction), RELIED[reliance].toward(direction))


def evidence(**changed):
    """A model that uses the area and a map that marks it; nothing moved, and it was not learned either."""
    usual = BlameEvidence(use(), marks(), (arm("align", "still"), arm("misalign", "still")), scored(0.02, -0.05, 0.07))
    return replace(usual, **changed)


def test_a_part_knows_its_share_and_turns_round():
    part = relied(0.4, 0.2, 0.8)
    assert part.share == EstimateWithInterval(0.25, 0.125, 0.5)
    assert (part.size, part.whole) == (pytest.approx(0.4), 1.6)
    assert part.toward("misalign").estimate == EstimateWithInterval(-0.4, -0.8, -0.2)
    assert part.toward("align") == part
    room = scored(0.1, 0.05, 0.2, floor=0.2, best=0.7)
    assert (room.size, room.whole) == (pytest.approx(0.05), pytest.approx(0.5))


@pytest.mark.parametrize(
    ("reliance", "added", "untrained", "expected"),
    [
        ("yes", "no", None, UseReading("used")),
        ("yes", "undefined", None, UseReading("used")),
        ("yes", "no", EstimateWithInterval(0.5, 0.2, 0.8), UseReading("used")),
        ("yes", "no", EstimateWithInterval(0.5, -0.2, 1.2), UseReading("unknown", "untrained")),
        ("yes", "no", UNKNOWN, UseReading("unknown", "untrained")),
        ("no", "no", None, UseReading("unused")),
        ("no", "no", EstimateWithInterval(-0.5, -0.8, -0.2), UseReading("unused")),
        ("no", "against", None, UseReading("unknown", "added")),
        ("no", "yes", None, UseReading("redundant")),
        ("no", "open", None, UseReading("unknown", "added")),
        ("no", "undefined", None, UseReading("unknown", "added")),
        ("open", "yes", None, UseReading("unknown", "too wide")),
        ("against", "no", None, UseReading("against")),
        ("against", "yes", None, UseReading("against")),
        ("undefined", "no", None, UseReading("unknown", "undefined")),
        ("no scale", "no", None, UseReading("unknown", "no scale")),
    ],
)
def test_what_the_model_does_with_the_area(reliance, added, untrained, expected):
    assert used(use(reliance, added, untrained)) == expected


@pytest.mark.parametrize(
    ("best", "random", "expected"),
    [
        ("yes", "yes", MarkReading("marked")),
        ("no", "yes", MarkReading("usual")),
        ("no", "no", MarkReading("unmarked")),
        ("open", "no", MarkReading("unmarked")),
        ("no", "open", MarkReading("unknown", "too wide")),
        ("open", "yes", MarkReading("unknown", "too wide")),
        ("undefined", "undefined", MarkReading("unknown", "undefined")),
        ("no scale", "yes", MarkReading("unknown", "no scale")),
    ],
)
def test_what_the_map_does_with_it(best, random, expected):
    assert marked(marks(best, random)) == expected


def test_where_random_maps_are_the_best_floor_they_alone_decide():
    for above, level in (("yes", "marked"), ("no", "unmarked"), ("open", "unknown")):
        assert marked(Marks({"random": ABOVE[above]}, "random")).level == level
    assert marked(Marks()) == MarkReading("unknown", "undefined")


@pytest.mark.parametrize(
    ("model", "best", "random", "before"),
    [
        (use("yes"), "no", "no", "method"),
        (use("no"), "no", "no", "model"),
        (use("yes"), "yes", "yes", "shows"),
        (use("no"), "yes", "yes", "looks_elsewhere"),
        (use("yes"), "no", "yes", "usual"),
        (use("no"), "no", "yes", "usual"),
        (use("open"), "no", "yes", "undecided"),  # the area may be redundant, or count against the finding
        (use("no", "yes"), "yes", "yes", "redundant"),
        (use("no", "yes"), "no", "no", "redundant"),
        (use("no", "yes"), "open", "open", "redundant"),
        (use("no", "open"), "yes", "yes", "undecided"),
        (use("against"), "no", "no", "against"),
        (use("against"), "yes", "yes", "against"),
        (use("open"), "yes", "yes", "undecided"),
        (use("yes"), "open", "yes", "undecided"),
        (use("undefined"), "no", "no", "undecided"),
    ],
)
def test_before_fine_tuning(model, best, random, before):
    assert read(evidence(use=model, marks=marks(best, random))).before == before


def test_a_hair_of_reliance_blames_no_method_and_excuses_no_blob():
    """A model that uses 3 % of its answer, clearly above 0: the map that truthfully marks nothing is not at fault."""
    hair = Use(relied(0.06, 0.04, 0.08, separation=2.0), relied(0.05, 0.0, 0.1, separation=2.0))
    assert read(evidence(use=hair, marks=marks("no", "no"))).before == "model"
    assert read(evidence(use=hair, marks=marks("yes", "yes"))).before == "looks_elsewhere"


def test_one_training_decides_nothing_under_fine_tuning_and_is_still_read():
    arms = (arm("align", "moved", "held"), arm("misalign", "moved", "held"))
    verdict = read(evidence(arms=arms, one_training=True))
    assert (verdict.before, verdict.under) == ("shows", "undecided")
    assert [reading.outcome for reading in verdict.arms] == ["foolable", "foolable"]


OUTCOMES = {
    "moved": {"followed": "follows", "held": "foolable", "turned": "foolable"},
    "still": {"followed": "missed", "turned": "missed", "held": "still", "unclear": "still", "unknown": "still"},
    "back": {"turned": "follows", "held": "foolable", "followed": "foolable"},
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


@pytest.mark.parametrize(
    ("score", "reliance", "outcome"),
    [  # changes as shares of the room and of the separation
        ((0.70, 0.60, 0.80), (0.02, 0.01, 0.03), "foolable"),  # a hair of real change is no excuse
        ((0.70, 0.60, 0.80), (0.15, 0.05, 0.24), "undecided"),  # may be in proportion: 0.60 is not above 3 × 0.24
        ((0.70, 0.60, 0.80), (0.30, 0.25, 0.35), "follows"),
        ((0.12, 0.08, 0.16), (0.12, 0.08, 0.16), "follows"),  # small, and in proportion
        ((0.12, 0.08, 0.16), (0.90, 0.80, 1.00), "undecided"),  # the model changed far more than the map
        ((0.90, 0.80, 1.00), (0.28, 0.26, 0.30), "undecided"),  # reliance moved, but out of proportion
        ((0.70, 0.60, 0.80), (0.00, -0.30, 0.30), "undecided"),  # few patients: reliance may have moved
        ((0.70, 0.60, 0.80), (-0.10, -0.20, -0.01), "foolable"),
        ((0.70, 0.60, 0.80), (-0.40, -0.50, -0.30), "foolable"),
        ((0.08, 0.06, 0.095), (0.40, 0.30, 0.50), "missed"),  # moved by less than matters
    ],
)
def test_a_map_follows_only_in_proportion(score, reliance, outcome):
    for direction in ("align", "misalign"):
        moved = scored(*(0.8 * each for each in score)).toward(direction)
        (reading,) = read(
            evidence(arms=(Arm(direction, moved, relied(*(1.6 * each for each in reliance)).toward(direction)),))
        ).arms
        assert reading.outcome == outcome


def test_fewer_patients_never_make_foolable_likelier():
    """Wider intervals around the same values only take claims away, whatever the values are."""
    for score in (0.05, 0.3, 0.7):
        for reliance in (-0.3, 0.0, 0.1, 0.3):
            claims = []
            for width in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8):
                moved = scored(*(0.8 * (score + step * width) for step in (0, -1, 1)))
                model = relied(*(1.6 * (reliance + step * width) for step in (0, -1, 1)))
                claims.append(read(evidence(arms=(Arm("align", moved, model),))).under == "foolable")
            assert claims == sorted(claims, reverse=True), (score, reliance)


MADE = {
    "follows": ("moved", "followed"),
    "foolable": ("moved", "held"),
    "undecided": ("moved", "unclear"),
    "still": ("still",),
    "still, reliance unclear": ("still", "unclear"),
    "missed": ("still", "followed"),
    "missed, turned": ("still", "turned"),
    "followed back": ("back", "turned"),
    "fooled back": ("back", "held"),
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
    assert read(evidence(arms=(arm("align", "moved", "followed"),))).under == "follows"
    assert read(evidence(arms=())).under == "undecided"


@pytest.mark.parametrize(
    ("learned", "under"),
    [
        (scored(0.4, 0.3, 0.5), "unmoved"),
        (scored(0.09, 0.02, 0.14), "unmoved"),  # unseen patients cannot have gained as much: 0.07 at most
        (scored(0.02, -0.05, 0.07), "failed"),
        (scored(-0.1, -0.2, -0.05), "failed"),
        (scored(0.2, -0.1, 0.5), "undecided"),  # may have been learned well
        (Part(), "undecided"),
    ],
)
def test_where_nothing_moved_the_images_learned_from_say_why(learned, under):
    assert read(evidence(learned=learned)).under == under


def test_what_was_learned_must_exceed_the_most_that_unseen_patients_can_have_gained():
    arms = (Arm("align", scored(0.04, 0.01, 0.079), RELIED["held"]), arm("misalign", "still"))
    assert read(evidence(arms=arms, learned=scored(0.09, 0.02, 0.14))).under == "unmoved"
    assert read(evidence(arms=arms[1:], learned=scored(0.4, 0.3, 0.5))).under == "undecided"  # no aligned arm


def test_a_judged_method_whose_map_stands_still_is_unmoved_and_its_optimisation_did_not_fail():
    arms = tuple(arm(direction, "still", "followed") for direction in ("align", "misalign"))
    assert read(evidence(arms=arms, judged=True, learned=Part())).under == "unmoved"
    few = (arm("align", "unclear"), arms[1])
    assert read(evidence(arms=few, judged=True)).under == "undecided"


def test_without_a_scale_nothing_moves_or_holds():
    no_room = Arm("align", scored(0.4, 0.3, 0.5, floor=1.0), RELIED["held"])
    assert read(evidence(arms=(no_room,))).arms[0].score == "unclear"
    no_separation = Arm("align", UP["moved"], relied(0.0, -0.1, 0.1, separation=-0.2))
    assert read(evidence(arms=(no_separation,))).under == "undecided"


def test_the_patients_that_would_decide_are_those_of_the_part_that_needs_most():
    wide = replace(RELIANCE["open"], n_needed=300)
    open_map = Marks({"random": ABOVE["yes"], "edge": replace(ABOVE["open"], n_needed=120)}, "edge")
    either = evidence(use=Use(wide, RELIANCE["no"]), marks=open_map)
    assert needed(either, read(either)) == 300
    decided = evidence()
    assert needed(decided, read(decided)) == 0
    unforeseen = evidence(use=Use(RELIANCE["open"], RELIANCE["no"]), marks=open_map)
    assert needed(unforeseen, read(unforeseen)) == 0


def test_a_reading_without_any_number_is_undecided_in_both_parts():
    arms = (Arm("align", Part(), Part()), Arm("misalign", Part(), Part()))
    verdict = read(BlameEvidence(Use(Part()), Marks(), arms))
    assert (verdict.before, verdict.under) == ("undecided", "undecided")
    assert verdict.uses == UseReading("unknown", "undefined")
    assert verdict.marks == MarkReading("unknown", "undefined")


@pytest.mark.parametrize(
    ("reliance", "added", "expected"),
    [
        ((-0.24, -0.45, -0.03), (0.0, -0.05, 0.05), "unknown"),  # clearly below 0, and how far is open
        ((-0.05, -0.09, -0.01), (0.0, -0.05, 0.05), "unused"),  # below 0 by too little to matter
        ((0.0, -0.05, 0.05), (-0.9, -1.0, -0.8), "unknown"),  # put on other films it takes the finding away
    ],
)
def test_an_area_that_may_count_against_the_finding_is_not_called_unused(reliance, added, expected):
    parts = [relied(*(SEPARATION * number for number in each)) for each in (reliance, added)]
    assert used(Use(*parts)).level == expected
