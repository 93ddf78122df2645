"""The first screen: the light and the word of each question, and the recommendation, for every outcome of a run."""

import math
from dataclasses import replace

import pytest
from tests.report.page_reading import section_text
from tests.studies.triggers.report.made_estimates import MODEL, all_estimates
from tests.studies.triggers.report.material import ARTEFACTS_ONLY, NOTHING_GRADED, UNFINISHED, TriggerPlan
from tests.studies.triggers.report.test_verdict import FAR_BELOW, ONE_TRIGGER, compared, graded, scored

from heatcheck.core.records import Estimate
from heatcheck.report.first_screen import Light
from heatcheck.studies.triggers.report.answer import LONGEST, answer
from heatcheck.studies.triggers.report.gallery import trigger_gallery

ATTACK, FOUND, RULE, BEST, TRAININGS = (
    "Did the attack work?", "Do the maps find the trigger?", "Does it hold under another box rule?",
    "Is one method the best?", "How many trainings?",
)  # fmt: skip


def screen(evidence):
    return answer(evidence, trigger_gallery(evidence, 10**8))


def status(evidence, question):
    (found,) = [each for each in screen(evidence).statuses if each.question == question]
    return found


def advice(evidence):
    return " ".join(screen(evidence).recommendation)


@pytest.fixture
def judged(trigger_evidence):
    """A function from rows of methods to the evidence of a run with one trigger."""

    def make(*rows, methods=("gradient", "lime"), seeds=5, **more):
        every = [graded(seeds=seeds), *(row for each in rows for row in each)]
        plan = {"seeds": tuple(range(seeds))} if seeds != 5 else {}
        return trigger_evidence(rows=every, methods=methods, **ONE_TRIGGER | plan | more)

    return make


def test_every_question_is_answered_in_order_with_a_short_question_and_one_sentence(trigger_evidence):
    statuses = screen(trigger_evidence()).statuses
    assert [each.question for each in statuses] == [ATTACK, FOUND, RULE, BEST, TRAININGS]
    assert all(len(each.question) <= 45 and each.sentence.endswith(".") for each in statuses)


# Did the attack work?


def test_attack_that_worked_with_some_triggers_is_half_an_answer_that_names_the_others(trigger_evidence):
    shown = status(trigger_evidence(), ATTACK)
    assert (shown.light, shown.word) == (Light.PARTLY, "With 7 of 8 triggers")
    assert shown.sentence.endswith("the baseline in 1\u00a0%. Not graded: Laterality letter.")


@pytest.mark.parametrize(
    ("failed", "light", "word"),
    [
        ({}, Light.YES, "Yes"),
        ({"square-corner-20": (3,)}, Light.PARTLY, "Not in every seed"),
        ({"square-corner-20": (0, 1, 2, 3, 4)}, Light.NO, "No"),
    ],
)
def test_attack_gets_a_tick_only_where_it_worked_in_every_seed(trigger_evidence, failed, light, word):
    shown = status(trigger_evidence(triggers=("square-corner-20",), failed=failed), ATTACK)
    assert (shown.light, shown.word) == (light, word)


def test_attack_gets_no_tick_where_the_baseline_follows_the_trigger_too(trigger_evidence):
    plan = {"triggers": ("square-corner-20",), "failed": {}}
    rows = [
        replace(row, value=0.5, low=0.3, high=0.7) if row.metric == "baseline_asr" and row.condition == "{}" else row
        for row in all_estimates(TriggerPlan(**plan))
    ]
    shown = status(trigger_evidence(rows=rows, **plan), ATTACK)
    assert (shown.light, shown.word) == (Light.PARTLY, "Yes, but not it alone")
    assert "The baseline, which was never attacked, follows Square, bottom right, 20 px too." in shown.sentence


# Do the maps find the trigger?


def test_finders_are_counted_and_ticked_only_where_all_find_it(judged):
    every = status(judged(scored("gradient"), scored("lime")), FOUND)
    assert (every.light, every.word) == (Light.YES, "2 of 2 methods")
    assert every.sentence == "Mean overlap (IoU) 0.40, random boxes 0.02, on the baseline 0.03."
    some = judged(scored("gradient"), scored("lime", above=FAR_BELOW))
    assert (status(some, FOUND).light, status(some, FOUND).word) == (Light.PARTLY, "1 of 2 methods")


def test_no_finder_is_a_no_only_where_it_is_shown_of_all(judged):
    none = status(judged(scored("gradient", above=FAR_BELOW), scored("lime", above=FAR_BELOW)), FOUND)
    assert (none.light, none.word) == (Light.NO, "No")
    still_open = status(judged(scored("gradient", above=FAR_BELOW), scored("lime", above=(-0.1, 0.5))), FOUND)
    assert (still_open.light, still_open.word) == (Light.OPEN, "Not shown")
    assert still_open.sentence.startswith("Of 2 methods, 1 does not and 1 is not shown to.")


def test_nothing_is_ticked_where_a_picture_made_without_the_model_finds_the_triggers_too(judged):
    evidence = judged(scored("gradient"), scored("random"), methods=("gradient", "random"))
    shown = status(evidence, FOUND)
    assert (shown.light, shown.word) == (Light.PARTLY, "1 of 1 method")
    assert shown.sentence.startswith("So does Random, made without the model.")
    assert advice(evidence).startswith("Do not choose a method by this run: Random")


def test_floors_are_never_counted_as_methods(judged):
    names = ("gradient", "lime", "random", "center_prior", "edge")
    shown = status(judged(*map(scored, names), methods=names), FOUND)
    assert (shown.light, shown.word) == (Light.PARTLY, "2 of 2 methods")
    assert shown.sentence.startswith("So do Random, Centre and Edges, made without the model.")
    missing = [scored(name, above=FAR_BELOW) for name in names[2:]]
    shown = status(judged(*map(scored, names[:2]), *missing, methods=names), FOUND)
    assert (shown.light, shown.word) == (Light.YES, "2 of 2 methods")


# One training


def test_one_training_ticks_nothing_of_the_methods_and_recommends_none(judged):
    rows = [scored(name, size=math.nan) for name in ("gradient", "lime")]
    evidence = judged(*rows, seeds=1)
    lights = {each.question: each.light for each in screen(evidence).statuses}
    assert (lights[FOUND], lights[BEST], lights[TRAININGS]) == (Light.OPEN, Light.OPEN, Light.PARTLY)
    assert status(evidence, FOUND).word == status(evidence, BEST).word == "Not with one training"
    assert status(evidence, FOUND).sentence.startswith("In this network, mean overlap (IoU) 0.40")
    assert advice(evidence).startswith("Do not rely on these maps to see that a network looked at a patch")
    assert "use Gradient" not in advice(evidence)


@pytest.mark.parametrize(
    ("seeds", "light", "word"), [(1, Light.PARTLY, "One"), (2, Light.PARTLY, "2"), (3, Light.YES, "3")]
)
def test_trainings_are_counted(judged, seeds, light, word):
    evidence = judged(scored("gradient"), scored("lime"), seeds=seeds)
    assert (status(evidence, TRAININGS).light, status(evidence, TRAININGS).word) == (light, word)
    assert ("third network" in advice(evidence)) == (seeds == 2)


# Box rule


def shifted(method, main, other):
    """The method's mean overlap under the leading and another rule."""
    under = {"condition": '{"preset":"thresholded"}'}
    row = Estimate("mean", "trigger_iou", "All findings", method, MODEL, main)
    return [row, replace(row, value=other, **under)]


def test_methods_that_change_places_under_another_rule_are_a_no_with_the_largest_shift(judged):
    rows = [compared("gradient", "lime", 0.1, 0.3), compared("gradient", "lime", -0.4, -0.2, preset="thresholded")]
    moved = [*shifted("gradient", 0.4, 0.1), *shifted("lime", 0.4, 0.45)]
    evidence = judged(rows, moved, scored("gradient")[1:], scored("lime")[1:])
    shown = status(evidence, RULE)
    assert (shown.light, shown.word) == (Light.NO, "No")
    assert "under other box rules 0.10 to 0.45" in status(evidence, FOUND).sentence
    assert shown.sentence == (
        "A map becomes a box by a rule, here \u201cone rule for all\u201d. Under the rule "
        "\u201cown threshold\u201d two methods clearly change places and another method may have the highest "
        "overlap. Gradient\u2019s mean overlap is 0.40 under \u201cone rule for all\u201d and 0.10 under \u201cown "
        "threshold\u201d."
    )
    assert "Give the box rule (how a map becomes a box) with every number" in advice(evidence)


def test_same_order_under_another_rule_is_no_proof_that_nothing_changes(judged):
    rows = [compared("gradient", "lime", 0.1, 0.3, **facts) for facts in ({}, {"preset": "thresholded"})]
    evidence = judged(rows, scored("gradient"), scored("lime"))
    assert (status(evidence, RULE).light, status(evidence, RULE).word) == (Light.OPEN, "No change shown")
    assert "box rule" not in advice(evidence)
    alone = status(judged(scored("gradient"), scored("lime")), RULE)
    assert (alone.light, alone.word) == (Light.OPEN, "Not tested")


# Is one method the best?


@pytest.mark.parametrize(
    ("low", "high", "above", "light", "word"),
    [
        (0.1, 0.3, (0.2, 0.4), Light.YES, "Gradient"),
        (0.1, 0.3, (-0.1, 0.4), Light.PARTLY, "Gradient"),  # the best, but not shown to find anything
        (-0.1, 0.3, (0.2, 0.4), Light.OPEN, "Not shown"),
        (0.01, 0.04, (0.2, 0.4), Light.PARTLY, "Gradient"),  # beyond chance, but too little to matter
        (math.nan, math.nan, (0.2, 0.4), Light.OPEN, "Not compared"),
    ],
)
def test_best_method_gets_a_tick_only_where_it_is_clearly_better_and_of_use(judged, low, high, above, light, word):
    rows = [replace(compared("gradient", "lime", 0.1, 0.3), low=low, high=high, value=(low + high) / 2)]
    shown = status(judged(rows, scored("gradient", above=above), scored("lime")), BEST)
    assert (shown.light, shown.word) == (light, word)


def test_one_method_alone_is_not_called_the_best(judged):
    evidence = judged(scored("gradient"), methods=("gradient",))
    assert BEST not in {each.question for each in screen(evidence).statuses}
    assert status(evidence, FOUND).word == "1 of 1 method"


def test_methods_that_may_be_best_are_named(trigger_evidence):
    shown = status(trigger_evidence(), BEST)
    assert (shown.light, shown.word) == (Light.PARTLY, "2 of 7 may be")
    assert shown.sentence == "By overlap, Guided backprop and LIME may be best."


# What to do


def test_recommendation_says_what_to_use_what_not_and_what_comes_next(trigger_evidence):
    use, avoid, following, *_ = screen(trigger_evidence()).recommendation
    assert use == (
        "To see a planted patch that VGG-16 relies on, use Guided backprop or LIME, whose overlap may be the highest "
        "of the 5 that find it."
    )
    assert avoid == "Do not use Feature ablation for this: it does not find the triggers."
    assert following == "Grad-CAM: not shown either way."


def test_patients_that_would_decide_an_open_method_are_the_next_step(judged):
    evidence = judged(scored("gradient"), scored("lime", above=(-0.1, 0.4), n_needed=61))
    assert "Next: about 61 patients would decide whether LIME finds them." in advice(evidence)


@pytest.mark.parametrize(("above", "verb"), [(FAR_BELOW, "finds"), ((-0.1, 0.5), "is shown to find")])
def test_maps_that_find_nothing_are_not_to_be_shown(judged, above, verb):
    words = advice(judged(scored("gradient", above=above), scored("lime", above=above)))
    assert words.startswith(f"No method {verb} the triggers: do not show these maps as the reason for an answer")
    assert "use Gradient" not in words


def test_recommendation_stays_short_and_an_unfinished_run_says_so_first(judged):
    rows = [compared("gradient", "lime", 0.1, 0.3), compared("gradient", "lime", -0.4, -0.2, preset="thresholded")]
    bad, unsure = scored("lime", above=FAR_BELOW), scored("occlusion", above=(-0.1, 0.5))
    evidence = judged(rows, scored("gradient"), bad, unsure, methods=("gradient", "lime", "occlusion"), seeds=2)
    assert len(screen(evidence).recommendation) == LONGEST == 4
    run = evidence.run
    running = replace(evidence, run=replace(run, manifest={**run.manifest, "status": "running"}))
    assert advice(running).startswith("Wait for the whole run")


# Runs without a judgement


def test_run_without_a_graded_attack_blames_no_map(trigger_evidence):
    evidence = trigger_evidence(**NOTHING_GRADED)
    first, second = screen(evidence).statuses
    assert (first.light, first.word) == (Light.NO, "No")
    assert (second.light, second.word, second.sentence) == (Light.OPEN, "Not judged", "No attack worked.")
    assert advice(evidence).startswith("Do not judge any method by this run: no attack worked")
    assert screen(evidence).chart is None


def test_scores_that_are_undefined_are_said_to_be(judged):
    evidence = judged(scored("gradient", recovered=math.nan, recovers=(math.nan, math.nan)), methods=("gradient",))
    shown = status(evidence, FOUND)
    assert (shown.light, shown.word) == (Light.OPEN, "Not judged")
    assert "defined overlap and a defined recovery" in shown.sentence
    assert "undefined" in advice(evidence)


def test_artefacts_alone_say_nothing_of_what_the_model_relies_on(trigger_evidence):
    evidence = trigger_evidence(**ARTEFACTS_ONLY)
    planted, marked = screen(evidence).statuses
    assert (planted.light, marked.light) == (Light.NO, Light.OPEN)
    assert "(mask IoU) 0.08 to 0.45, random boxes of the same size 0.01" in marked.sentence
    assert "no map can be called right or wrong" in advice(evidence)
    assert screen(evidence).chart is not None


def test_run_that_has_nothing_yet_has_no_first_screen(trigger_evidence):
    assert screen(trigger_evidence(**UNFINISHED)) is None
    assert screen(trigger_evidence(triggers=(), seeds=())) is None


def test_first_screen_has_one_picture_and_one_chart(trigger_text):
    text = section_text(trigger_text(), "answer")
    assert text.count('class="strip-of-films"') == 1
    assert "One poisoned image: " in text
    assert text.count('<figure class="chart">') == 1
    assert "random boxes of the same size as that method" in text
