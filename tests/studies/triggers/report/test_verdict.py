"""Which methods find triggers: the criterion, the two sentences, and what speaks against them."""

import math
from dataclasses import replace

import pytest
from tests.studies.triggers.report.made_estimates import MODEL, all_estimates, mean
from tests.studies.triggers.report.material import ARTEFACTS_ONLY, NOTHING_GRADED, ONE_SEED, UNFINISHED, TriggerPlan

from heatcheck.core.records import ALL_FINDINGS, ONE_VALUE, Estimate
from heatcheck.studies.triggers.report.caveats import caveats
from heatcheck.studies.triggers.report.sections.overview import overview
from heatcheck.studies.triggers.report.verdict import FINDS, NOT, PARTLY, UNKNOWN, judge, judgements, verdict

ONE_TRIGGER = {"triggers": ("square-corner-20",), "failed": {}}


def graded(trigger="square-corner-20", seeds=5):
    return Estimate("graded", "asr", trigger, "", MODEL, float(seeds), n_cases=seeds)


def scored(method, *, overlap=0.4, above=(0.2, 0.4), recovered=0.8, recovers=(0.3, 0.5), uncovered=0.1):
    """The rows of one method; `above` and `recovers` are the intervals of its differences from random boxes."""
    values = {"trigger_iou": overlap, "recovered": recovered, "box_area": 0.05, "uncovered": uncovered}
    rows = [mean(metric, ALL_FINDINGS, method, value) for metric, value in values.items()]
    for metric, (low, high) in (("trigger_iou", above), ("recovered", recovers)):
        rows.append(Estimate("difference", metric, ALL_FINDINGS, method, MODEL, (low + high) / 2, low, high,
                             other_method="random_box"))  # fmt: skip
    return rows


@pytest.mark.parametrize(
    ("numbers", "outcome"),
    [
        ({}, FINDS),
        ({"recovered": 0.5}, FINDS),
        ({"recovered": 0.499}, PARTLY),
        ({"overlap": 0.1}, FINDS),
        ({"overlap": 0.099}, PARTLY),
        ({"overlap": 0.099, "above": (-0.1, 0.1), "recovers": (-0.1, 0.1)}, NOT),
        ({"above": (-0.01, 0.2)}, PARTLY),
        ({"recovers": (0.0, 0.2)}, PARTLY),
        ({"above": (-0.01, 0.2), "recovers": (-0.2, 0.2)}, NOT),
        ({"above": (math.nan, math.nan), "recovers": (math.nan, math.nan)}, NOT),
        ({"overlap": math.nan, "recovered": math.nan, "above": (math.nan,) * 2, "recovers": (math.nan,) * 2}, UNKNOWN),
        ({"recovered": math.nan, "recovers": (math.nan,) * 2}, UNKNOWN),
    ],
)
def test_criterion_asks_for_overlap_a_box_that_fits_recovery_and_half_of_the_images(trigger_evidence, numbers, outcome):
    evidence = trigger_evidence(rows=[graded(), *scored("gradient", **numbers)], **ONE_TRIGGER)
    assert judge(evidence, evidence.methods[0]).outcome == outcome


@pytest.mark.parametrize(
    ("numbers", "too_large"),
    [
        ({}, True),
        ({"above": (-0.1, 0.1)}, True),
        ({"overlap": 0.3}, False),  # it finds them
        ({"uncovered": 0.5}, False),  # not larger than the trigger, but beside it
        ({"uncovered": math.nan}, False),
        ({"recovered": 0.3}, False),
        ({"recovers": (-0.1, 0.1)}, False),
    ],
)
def test_box_is_called_far_too_large_only_where_it_holds_the_trigger_and_undoes_the_attack(
    trigger_evidence, numbers, too_large
):
    rows = scored("gradient", **{"overlap": 0.04, "recovered": 0.97} | numbers)
    evidence = trigger_evidence(rows=[graded(), *rows], **ONE_TRIGGER)
    assert judge(evidence, evidence.methods[0]).is_too_large == too_large


def test_method_that_recovers_by_the_size_of_its_boxes_is_not_praised(trigger_evidence):
    rows = [graded(), *scored("gradient"), *scored("grad_cam", overlap=0.042, recovered=0.97)]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "grad_cam"), **ONE_TRIGGER)
    sentences = verdict(evidence)
    assert sentences.first.startswith("On VGG-16, Gradient finds the planted triggers: its boxes")
    assert sentences.second.startswith(
        "Grad-CAM undoes the attack, but with boxes far too large to show where the trigger is (IoU 0.04); this rests"
    )
    (row,) = [row for row in overview(evidence)["rows"] if row.entrant.name == "grad_cam"]
    assert (row.outcome, row.fits, row.half) == (PARTLY, "no", "yes")
    assert row.aside == "recovers, but its boxes are far too large"


def test_least_overlap_is_one_number_with_its_reason(trigger_evidence):
    content = overview(trigger_evidence())
    assert any("at least 0.1, which is all that a box 10 times as large" in line for line in content["criterion"])
    assert content["least_overlap"] == "0.1"


@pytest.mark.parametrize(("images", "value", "outcome"), [(6, 1.0, FINDS), (5, 1.0, PARTLY), (60, 0.0, PARTLY)])
def test_difference_that_is_the_same_in_every_image_is_sure_when_images_are_not_too_few(
    trigger_evidence, images, value, outcome
):
    rows = [replace(row, value=value, low=math.nan, high=math.nan, reason=ONE_VALUE, n_patients=images)
            if (row.statistic, row.metric) == ("difference", "recovered") else row
            for row in scored("gradient")]  # fmt: skip
    evidence = trigger_evidence(rows=[graded(), *rows], **ONE_TRIGGER, methods=("gradient",))
    assert judge(evidence, evidence.methods[0]).outcome == outcome
    assert bool(caveat_with(evidence, "no interval")) == (images < 6)


def test_high_overlap_alone_does_not_find_anything(trigger_evidence):
    """A method is never judged by its mean without the floor."""
    rows = [row for row in scored("gradient", overlap=0.99, recovered=0.99) if row.statistic == "mean"]
    evidence = trigger_evidence(rows=[graded(), *rows], **ONE_TRIGGER)
    assert judge(evidence, evidence.methods[0]).outcome == NOT


def test_verdict_names_the_methods_that_find_triggers_and_what_it_rests_on(trigger_evidence):
    sentences = verdict(trigger_evidence())
    assert sentences.first.startswith(
        "On VGG-16, Guided backprop, LIME, Gradient, Occlusion and Grad-CAM find the planted"
    )
    assert "Guided Grad-CAM and Feature ablation find them partly" in sentences.second
    assert "1,680 poisoned images, 7 triggers and 5 seeds" in sentences.second
    assert "Laterality letter was not graded because the attack did not work" in sentences.second
    assert sentences.first.count(". ") == sentences.second.count(". ") == 0  # one sentence each


def test_verdict_gives_the_numbers_of_a_single_finder(trigger_evidence):
    rows = [graded(), *scored("gradient", overlap=0.44, recovered=0.83)]
    rows += scored("lime", above=(-0.1, 0.1), recovers=(-0.1, 0.1))
    sentences = verdict(trigger_evidence(rows=rows, methods=("gradient", "lime"), **ONE_TRIGGER))
    assert "Gradient finds the planted triggers: its boxes" in sentences.first
    assert "(IoU 0.44)" in sentences.first
    assert "in 83\u00a0% of images" in sentences.first
    assert sentences.second.startswith("LIME does not; this rests on")


@pytest.mark.parametrize(
    ("methods", "start"),
    [
        (("gradient",), "On VGG-16, the one method tested does not find"),
        (("gradient", "lime"), "On VGG-16, none of 2 methods"),
    ],
)
def test_verdict_says_when_no_method_finds_a_trigger(trigger_evidence, methods, start):
    rows = [graded()] + [row for name in methods for row in scored(name, recovered=0.2)]
    sentences = verdict(trigger_evidence(rows=rows, methods=methods, **ONE_TRIGGER))
    assert sentences.first.startswith(start)
    assert "have a mean IoU of at least 0.1 and undo the attack in at least half" in sentences.first


def test_verdict_where_all_find_it(trigger_evidence):
    rows = [graded(), *scored("gradient"), *scored("lime")]
    sentences = verdict(trigger_evidence(rows=rows, methods=("gradient", "lime"), **ONE_TRIGGER))
    assert "Gradient and LIME find the planted triggers: their boxes" in sentences.first
    assert sentences.second.startswith("No method fails; this rests on")


def test_nothing_graded_is_no_verdict_on_methods_and_says_why(trigger_evidence):
    evidence = trigger_evidence(**NOTHING_GRADED)
    sentences = verdict(evidence)
    assert sentences.first.startswith("No method can be judged on VGG-16, because none of 8 attacks worked well enough")
    assert "seed 0: attack success 0.62 is below 0.90" in sentences.first
    assert {judgement.outcome for judgement in judgements(evidence)} == {UNKNOWN}
    assert not any("One" in sentence or "trial" in sentence for sentence in caveats(evidence))


def test_recovery_that_is_undefined_everywhere_is_not_held_against_the_methods(trigger_evidence):
    rows = [graded(), *scored("gradient", recovered=math.nan, recovers=(math.nan, math.nan))]
    sentences = verdict(trigger_evidence(rows=rows, methods=("gradient",), **ONE_TRIGGER))
    assert sentences.first.startswith("No method can be judged on VGG-16, because none has both")


def test_run_of_artefacts_alone_does_not_speak_of_finding_triggers(trigger_evidence):
    sentences = verdict(trigger_evidence(**ARTEFACTS_ONLY))
    assert sentences.first.startswith("No trigger was planted")
    assert "2 kinds of artefact" in sentences.second
    assert "Guided backprop overlaps their outlines most (mean IoU 0.4" in sentences.second
    assert "random boxes of the same size 0.01)" in sentences.second


def test_unfinished_run_has_no_verdict(trigger_evidence):
    assert verdict(trigger_evidence(**UNFINISHED)).first.startswith("There is no verdict yet")


def caveat_with(evidence, words):
    matching = [sentence for sentence in caveats(evidence) if words in sentence]
    assert len(matching) < 2
    return "".join(matching)


def test_one_seed_few_images_and_drawn_images_are_held_against_the_verdict(trigger_evidence):
    evidence = trigger_evidence(images=3, source="phantom_classes", **ONE_SEED)
    assert "one seed" in caveat_with(evidence, "trained once")
    assert caveat_with(evidence, "21 poisoned images")
    assert caveat_with(evidence, "The images are drawn")
    usual = trigger_evidence()
    assert (
        not caveat_with(usual, "trained once") + caveat_with(usual, "could be graded") + caveat_with(usual, "are drawn")
    )


def test_large_boxes_are_named_with_their_size(trigger_evidence):
    sentence = caveat_with(trigger_evidence(), "Boxes can win by size")
    assert "Grad-CAM (36\u00a0%)" in sentence
    assert "Occlusion" not in sentence
    assert "OD 0" in sentence
    assert "TDR 100" in sentence


def test_smaller_settings_failed_cases_and_a_weak_baseline_are_caveats(trigger_evidence):
    weak = [replace(row, value=0.4) if (row.metric, row.finding) == ("cda", "baseline") else row
            for row in all_estimates(TriggerPlan())]  # fmt: skip
    evidence = trigger_evidence(rows=weak)
    assert caveat_with(evidence, "LIME was run with smaller settings")
    assert caveat_with(evidence, "1 of 202 cases failed")
    assert "40\u00a0%" in caveat_with(evidence, "The baseline classifies only")
    assert not caveat_with(trigger_evidence(), "The baseline classifies only")


def test_floor_that_meets_the_criterion_makes_it_worthless(trigger_evidence):
    rows = [graded(), *scored("gradient"), *scored("random")]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "random"), **ONE_TRIGGER)
    assert "Random, made without the model, meets the criterion too" in caveat_with(evidence, "criterion")


def test_method_without_an_interval_is_named(trigger_evidence):
    rows = [graded(), *scored("gradient", above=(math.nan, math.nan)), *scored("lime")]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "lime"), **ONE_TRIGGER)
    assert caveat_with(evidence, "no interval").startswith("Gradient has no interval")


def test_method_above_its_floor_without_an_interval_is_not_called_a_failure(trigger_evidence):
    rows = [
        replace(row, low=math.nan, high=math.nan, reason="undefined in 135 of 2000 draws")
        if row.statistic == "difference"
        else row
        for row in scored("gradient")
    ]
    evidence = trigger_evidence(rows=[graded(), *rows], **ONE_TRIGGER)
    (method,) = [entrant for entrant in evidence.methods if entrant.name == "gradient"]
    assert judge(evidence, method).outcome == UNKNOWN


def test_method_that_cannot_be_judged_is_named_in_the_verdict(trigger_evidence):
    unsure = [replace(row, low=math.nan, high=math.nan) if row.statistic == "difference" else row
              for row in scored("occlusion")]  # fmt: skip
    bad = scored("gradient", above=(-0.1, 0.1), recovers=(-0.1, 0.1))
    evidence = trigger_evidence(rows=[graded(), *bad, *unsure], **ONE_TRIGGER, methods=("gradient", "occlusion"))
    sentences = verdict(evidence)
    assert "the one method that could be judged does not find" in sentences.first
    assert "Occlusion cannot be judged" in sentences.second
