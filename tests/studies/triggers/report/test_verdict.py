"""Which methods find triggers: the criterion, the two sentences, and what speaks against them."""

import math
from dataclasses import replace

import pytest
from tests.studies.triggers.report.made_estimates import MODEL, all_estimates, mean
from tests.studies.triggers.report.material import ARTEFACTS_ONLY, NOTHING_GRADED, ONE_SEED, UNFINISHED, TriggerPlan

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.studies.triggers.report.caveats import caveats
from heatcheck.studies.triggers.report.facts import trainings
from heatcheck.studies.triggers.report.sections.overview import criterion_words, judged_rows
from heatcheck.studies.triggers.report.verdict import FINDS, NOT, OPEN, UNKNOWN, judge, judgements, verdict

ONE_TRIGGER = {"triggers": ("square-corner-20",), "failed": {}}


def graded(trigger="square-corner-20", seeds=5):
    return Estimate("graded", "asr", trigger, "", MODEL, float(seeds), n_cases=seeds)


def scored(method, *, overlap=0.4, above=(0.2, 0.4), recovered=0.8, recovers=(0.3, 0.5), follows=(0.2, 0.4), size=0.1,
           n_needed=0):  # fmt: skip
    """The rows of one method: intervals of its differences from random boxes, and from its overlap on the baseline."""
    values = {"trigger_iou": overlap, "recovered": recovered, "box_area": 0.05}
    values |= {"trigger_iou_floor": 0.02, "recovered_floor": 0.1, "trigger_iou_on_baseline": 0.03}
    rows = [mean(metric, ALL_FINDINGS, method, value) for metric, value in values.items()]
    for metric, other, (low, high) in (("trigger_iou", "random_box", above), ("recovered", "random_box", recovers),
                                       ("trigger_iou", "baseline", follows)):  # fmt: skip
        rows.append(Estimate("difference", metric, ALL_FINDINGS, method, MODEL, (low + high) / 2, low, high,
                             other_method=other, size=size, n_needed=n_needed, n_patients=40))  # fmt: skip
    return rows


NAN = (math.nan, math.nan)
FAR_BELOW = (-0.1, 0.05)  # the size that matters is 0.1


@pytest.mark.parametrize(
    ("numbers", "outcome"),
    [
        ({}, FINDS),
        ({"recovered": 0.4}, FINDS),  # half of the images is a statement of its own
        ({"above": (-0.01, 0.2)}, OPEN),
        ({"recovers": (0.0, 0.2)}, OPEN),
        ({"follows": (-0.01, 0.2)}, OPEN),
        ({"follows": FAR_BELOW}, NOT),  # the same overlap where the model ignores the trigger
        ({"follows": NAN}, OPEN),
        ({"above": (0.01, 0.15)}, OPEN),  # beyond chance, but an estimate below the size that matters
        ({"above": (0.01, 0.09)}, NOT),  # beyond chance, and too small to matter
        ({"above": FAR_BELOW}, NOT),
        ({"recovers": FAR_BELOW}, NOT),
        ({"above": FAR_BELOW, "recovers": FAR_BELOW}, NOT),
        ({"above": (-0.2, 0.2), "recovers": (-0.2, 0.2)}, OPEN),
        ({"above": NAN, "recovers": NAN}, OPEN),
        ({"size": math.nan}, OPEN),
        ({"overlap": math.nan, "recovered": math.nan, "above": NAN, "recovers": NAN}, UNKNOWN),
        ({"recovered": math.nan, "recovers": NAN}, UNKNOWN),
    ],
)
def test_a_method_finds_triggers_only_where_all_judgements_say_yes(trigger_evidence, numbers, outcome):
    evidence = trigger_evidence(rows=[graded(), *scored("gradient", **numbers)], **ONE_TRIGGER)
    assert judge(evidence, evidence.methods[0]).outcome == outcome


def test_method_that_recovers_with_boxes_that_miss_is_not_praised(trigger_evidence):
    rows = [graded(), *scored("gradient"), *scored("grad_cam", overlap=0.042, recovered=0.97, above=(0.0, 0.05))]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "grad_cam"), **ONE_TRIGGER)
    sentences = verdict(evidence)
    assert sentences.first.startswith("On VGG-16, Gradient finds the planted triggers: its boxes")
    assert sentences.second.startswith(
        "Grad-CAM undoes the attack, but with boxes that do not show where the trigger is (IoU 0.04); this rests"
    )
    (row,) = [row for row in judged_rows(evidence) if row.entrant.name == "grad_cam"]
    assert (row.outcome, row.overlap[:2], row.recovered[:3]) == (NOT, "no", "yes")
    assert row.aside == "recovers, but its boxes do not show where the trigger is"


def test_method_that_overlaps_as_much_where_the_model_ignores_the_trigger_does_not_find_it(trigger_evidence):
    rows = [graded(), *scored("gradient"), *scored("grad_cam", follows=(-0.05, 0.04))]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "grad_cam"), **ONE_TRIGGER)
    sentences = verdict(evidence)
    assert sentences.first.startswith("On VGG-16, Gradient finds the planted triggers")
    assert "than boxes for the baseline, which was never attacked" in sentences.first
    assert sentences.second.startswith(
        "Grad-CAM overlaps the triggers just as much on the baseline, which was never attacked; this rests"
    )
    (row,) = [row for row in judged_rows(evidence) if row.entrant.name == "grad_cam"]
    assert (row.outcome, row.overlap[:3], row.follows) == (NOT, "yes", "no: 0.40 against 0.03")
    assert row.aside == "overlaps the trigger as much on the baseline, which was never attacked"


def compared(one, other, low, high, size=0.05, **facts):
    """The overlap of one method less that of another under a box rule; the higher mean stands first."""
    row = Estimate("difference", "trigger_iou", ALL_FINDINGS, one, MODEL, (low + high) / 2, low, high,
                   other_method=other, size=size, condition=condition(**facts))  # fmt: skip
    turned = {"method": other, "other_method": one, "value": -row.value, "low": -high, "high": -low}
    return row if row.value > 0 else replace(row, **turned)


@pytest.mark.parametrize("seeds", [1, 5])
@pytest.mark.parametrize(
    ("under_other", "expected"),
    [
        ((0.1, 0.3), "; no two methods are shown to change places under \u201cown threshold\u201d."),
        ((-0.1, 0.09), "; no two methods are shown to change places under"),  # below, but not beyond chance
        ((-0.08, -0.01), "the highest overlap may be that of LIME, not of Gradient."),  # beyond chance, but small
        (
            (-0.4, -0.2),
            ", and the order of methods depends on it: under \u201cown threshold\u201d LIME is clearly above Gradient",
        ),
    ],
)
def test_verdict_names_its_box_rule_and_says_when_the_order_clearly_changes_under_the_other(
    trigger_evidence, under_other, expected, seeds
):
    size = 0.05 if seeds > 1 else math.nan  # one training claims nothing, but the order in it can be judged
    names = ("gradient", "lime")
    rows = [graded(seeds=seeds), *(row for name in names for row in scored(name, size=2 * size))]
    rows += [
        compared(*names, 0.1, 0.3, size=size),
        compared(*names, *under_other, size=size, preset="thresholded"),
    ]
    evidence = trigger_evidence(rows=rows, methods=names, seeds=tuple(range(seeds)), **ONE_TRIGGER)
    assert verdict(evidence).third.startswith("Boxes follow the rule \u201cone rule for all\u201d")
    assert expected in verdict(evidence).third


def test_half_of_the_images_is_said_to_recover_only_where_its_interval_lies_above_one_half(trigger_evidence):
    def half(value, low, high):
        above = Estimate("difference", "recovered", ALL_FINDINGS, "gradient", MODEL, value, low, high,
                         other_method="half", size=0.0)  # fmt: skip
        evidence = trigger_evidence(rows=[graded(), *scored("gradient"), above], methods=("gradient",), **ONE_TRIGGER)
        return judged_rows(evidence)[0].half

    assert half(0.03, -0.05, 0.1) == "not shown"
    assert half(0.13, 0.05, 0.2) == "yes"
    assert half(-0.13, -0.2, -0.05) == "no"


def test_size_that_matters_is_that_of_the_run(trigger_evidence):
    words = " ".join(criterion_words(trigger_evidence()))
    assert "is 10\u00a0% of the room between random boxes, or the baseline, and a perfect score" in words
    assert "corrected for all comparisons made together" in words
    other = criterion_words(trigger_evidence(facts={"sizes": {"maps": 0.2}}))
    assert any("a mean IoU of at least 0.2." in sentence for sentence in other)


def test_patients_that_would_decide_are_named(trigger_evidence):
    rows = [graded(), *scored("gradient", above=(-0.1, 0.4), n_needed=61)]
    evidence = trigger_evidence(rows=rows, methods=("gradient",), **ONE_TRIGGER)
    assert judged_rows(evidence)[0].aside == "about 61 patients would decide it"
    assert "Gradient is not shown to find them (about 61 patients would decide it)" in verdict(evidence).second


def test_one_training_makes_no_claim_about_a_method(trigger_evidence):
    """However clear its numbers are; the first sentence must not read as a claim."""
    one = {"rows": [graded(seeds=1), *scored("gradient", size=math.nan)], "seeds": (0,), "methods": ("gradient",)}
    evidence = trigger_evidence(**one, **ONE_TRIGGER)
    sentences = verdict(evidence)
    assert sentences.first == (
        "One training of VGG-16 was judged: this speaks of this network only and says nothing about the methods in "
        "general."
    )
    assert sentences.second.startswith(
        "In this network, Gradient\u2019s boxes overlapped the planted triggers by a mean IoU of 0.40 (random boxes of "
        "the same size: 0.02; boxes for the baseline, which was never attacked: 0.03), and clean pixels pasted into "
        "them undid the attack in 80\u00a0% of images (random boxes"
    )
    assert "find" not in sentences.text
    assert judge(evidence, evidence.methods[0]).outcome == OPEN


def test_one_graded_seed_of_several_is_one_training(trigger_evidence):
    evidence = trigger_evidence(triggers=("square-corner-20",), seeds=(0, 1), failed={"square-corner-20": (1,)})
    assert trainings(evidence) == 1
    assert verdict(evidence).first.startswith("One training of VGG-16 was judged")
    assert trainings(trigger_evidence()) == 5


def test_two_trainings_are_said_to_be_few(trigger_evidence):
    evidence = trigger_evidence(seeds=(0, 1), failed={})
    assert "missed the truth in up to" in caveat_with(evidence, "Two trainings")
    assert not caveat_with(trigger_evidence(), "Two trainings")


def test_differences_that_would_have_been_missed_are_said(trigger_evidence):
    rows = [graded(), *scored("gradient", recovers=(0.1, 0.5))]
    rows.append(Estimate("difference", "trigger_iou", ALL_FINDINGS, "gradient", MODEL, 0.1, -0.1, 0.3,
                         other_method="lime", size=0.05))  # fmt: skip
    evidence = trigger_evidence(rows=rows, methods=("gradient", "lime"), **ONE_TRIGGER)
    assert caveat_with(evidence, "go unnoticed") == (
        "With 40 patients and 5 seeds, differences from random boxes below 0.10 (overlap) and 20\u00a0pp (recovery) "
        "and differences between two methods below 0.20 (overlap) would go unnoticed in more than half of such runs."
    )


def test_high_overlap_alone_does_not_find_anything(trigger_evidence):
    """A method is never judged by its mean without the floor."""
    rows = [row for row in scored("gradient", overlap=0.99, recovered=0.99) if row.statistic == "mean"]
    evidence = trigger_evidence(rows=[graded(), *rows], **ONE_TRIGGER)
    assert judge(evidence, evidence.methods[0]).outcome == OPEN


def test_verdict_names_the_methods_that_find_triggers_and_what_it_rests_on(trigger_evidence):
    sentences = verdict(trigger_evidence())
    assert sentences.first.startswith(
        "On VGG-16, Guided backprop, LIME, Gradient, Occlusion and Guided Grad-CAM find the planted"
    )
    assert sentences.second.startswith(
        "Feature ablation does not find them and Grad-CAM is not shown to find them; this"
    )
    assert "1,680 poisoned images, 7 triggers and 5 seeds" in sentences.second
    assert "Laterality letter was not graded because the attack did not work" in sentences.second
    assert sentences.first.count(". ") == sentences.second.count(". ") == 0  # one sentence each


def test_verdict_gives_the_numbers_of_a_single_finder(trigger_evidence):
    rows = [graded(), *scored("gradient", overlap=0.44, recovered=0.83)]
    rows += scored("lime", recovers=FAR_BELOW)
    sentences = verdict(trigger_evidence(rows=rows, methods=("gradient", "lime"), **ONE_TRIGGER))
    assert "Gradient finds the planted triggers: its boxes" in sentences.first
    assert "(IoU 0.44)" in sentences.first
    assert "in 83\u00a0% of images" in sentences.first
    assert sentences.second.startswith("LIME does not find them; this rests on")


@pytest.mark.parametrize(
    ("methods", "above", "start"),
    [
        (("gradient",), FAR_BELOW, "On VGG-16, the one method tested does not find"),
        (("gradient", "lime"), FAR_BELOW, "On VGG-16, none of 2 methods finds"),
        (("gradient",), (-0.1, 0.5), "On VGG-16, the one method tested is not shown to find"),
        (("gradient", "lime"), (-0.1, 0.5), "On VGG-16, none of 2 methods is shown to find"),
    ],
)
def test_verdict_says_when_no_method_finds_a_trigger(trigger_evidence, methods, above, start):
    rows = [graded()] + [row for name in methods for row in scored(name, above=above)]
    sentences = verdict(trigger_evidence(rows=rows, methods=methods, **ONE_TRIGGER))
    assert sentences.first.startswith(start)


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
    assert "in this network, their outlines were overlapped by 0.08 to 0.45 (mean IoU, random" in sentences.second
    assert "random boxes of the same size 0.01)" in sentences.second


def test_unfinished_run_has_no_verdict(trigger_evidence):
    assert verdict(trigger_evidence(**UNFINISHED)).first.startswith("There is no verdict yet")


def caveat_with(evidence, words):
    matching = [sentence for sentence in caveats(evidence) if words in sentence]
    assert len(matching) < 2
    return "".join(matching)


def test_one_seed_and_few_images_are_held_against_the_verdict(trigger_evidence):
    evidence = trigger_evidence(images=3, **ONE_SEED)
    assert "not another training" in caveat_with(evidence, "on one training")
    assert caveat_with(evidence, "21 poisoned images")
    usual = trigger_evidence()
    assert (
        not caveat_with(usual, "on one training")
        + caveat_with(usual, "could be graded")
        + caveat_with(usual, "are drawn")
    )


def test_a_dynamic_patch_is_no_patch_that_the_baseline_ignores(trigger_evidence):
    sentence = caveat_with(trigger_evidence(), "is made from what the baseline is most sensitive to")
    assert "its calibration error with it is 0.04" in sentence
    assert not caveat_with(trigger_evidence(triggers=("square-corner-20",)), "most sensitive to")


def test_large_boxes_are_named_with_their_size(trigger_evidence):
    sentence = caveat_with(trigger_evidence(), "Boxes can win by size")
    assert "Grad-CAM (36\u00a0%)" in sentence
    assert "Occlusion" not in sentence
    assert "OD 0" in sentence
    assert "TDR 100" in sentence


def test_smaller_settings_failed_cases_and_a_weak_baseline_are_caveats(trigger_evidence):
    weak = [replace(row, value=0.4, low=0.38, high=0.42) if (row.metric, row.finding) == ("cda", "baseline") else row
            for row in all_estimates(TriggerPlan())]  # fmt: skip
    evidence = trigger_evidence(rows=weak)
    assert caveat_with(evidence, "LIME was run with smaller settings")
    assert caveat_with(evidence, "1 of 202 cases failed")
    assert "(40\u00a0%, 95 % interval 38\u00a0% to 42\u00a0%)" in caveat_with(evidence, "The baseline clearly")
    assert not caveat_with(trigger_evidence(), "The baseline clearly")
    unsure = [replace(row, high=0.7) if row.metric == "cda" else row for row in weak]
    assert not caveat_with(trigger_evidence(rows=unsure), "The baseline clearly")


def test_a_baseline_that_falls_for_a_trigger_itself_is_a_caveat(trigger_evidence):
    def with_rate(value, low, high):
        rows = [
            replace(row, value=value, low=low, high=high)
            if (row.metric, row.finding, row.condition) == ("baseline_asr", "square-corner-20", "{}")
            else row
            for row in all_estimates(TriggerPlan())
        ]
        return trigger_evidence(rows=rows)

    words = "The baseline, which was never attacked, already names the target class on clearly more than 10"
    sentence = caveat_with(with_rate(0.45, 0.3, 0.6), words)
    assert "Square, bottom right, 20 px (45\u00a0%, 95 % interval 30\u00a0% to 60\u00a0%): it does not" in sentence
    assert not caveat_with(with_rate(0.15, 0.05, 0.3), words)  # may be chance
    assert not caveat_with(trigger_evidence(), words)


def test_floor_that_meets_the_criterion_makes_it_worthless(trigger_evidence):
    rows = [graded(), *scored("gradient"), *scored("random")]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "random"), **ONE_TRIGGER)
    assert "Random, made without the model, meets the criterion too" in caveat_with(evidence, "criterion")


def test_method_without_an_interval_is_named(trigger_evidence):
    rows = [graded(), *scored("gradient", above=(math.nan, math.nan)), *scored("lime")]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "lime"), **ONE_TRIGGER)
    assert caveat_with(evidence, "no interval").startswith("Gradient has no interval")


def test_method_without_an_interval_is_not_shown_to_fail(trigger_evidence):
    rows = [
        replace(row, low=math.nan, high=math.nan, reason="fewer than 6 patients")
        if row.statistic == "difference"
        else row
        for row in scored("gradient")
    ]
    evidence = trigger_evidence(rows=[graded(), *rows], **ONE_TRIGGER)
    (method,) = [entrant for entrant in evidence.methods if entrant.name == "gradient"]
    judgement = judge(evidence, method)
    assert (judgement.outcome, judgement.claim.reason) == (OPEN, "fewer than 6 patients")


def test_method_that_cannot_be_judged_is_named_in_the_verdict(trigger_evidence):
    unknown = scored("occlusion", recovered=math.nan, recovers=NAN)
    bad = scored("gradient", above=FAR_BELOW)
    evidence = trigger_evidence(rows=[graded(), *bad, *unknown], **ONE_TRIGGER, methods=("gradient", "occlusion"))
    sentences = verdict(evidence)
    assert "the one method that could be judged does not find" in sentences.first
    assert "Occlusion cannot be judged" in sentences.second
