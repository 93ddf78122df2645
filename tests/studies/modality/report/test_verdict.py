"""The verdict of a modality study, its criterion and its caveats."""

import json
import math
from dataclasses import replace

import pytest
from tests.studies.modality.report.made_estimates import all_estimates
from tests.studies.modality.report.material import ModalityPlan

from heatcheck.core.records import ONE_VALUE
from heatcheck.core.vocabulary import condition
from heatcheck.studies.modality.report.caveats import caveats
from heatcheck.studies.modality.report.facts import first_of, primary_game
from heatcheck.studies.modality.report.judgement import BOTH, LESION, NEITHER, UNKNOWN, judge, judgements
from heatcheck.studies.modality.report.order import first_among
from heatcheck.studies.modality.report.sections.importance import importance
from heatcheck.studies.modality.report.sections.overview import overview
from heatcheck.studies.modality.report.verdict import verdict

SMALL = {"folds": 2, "cases": 20}


def changed(change, **plan):
    """The estimates of a small plan, each through `change`."""
    plan = SMALL | plan
    return {**plan, "rows": [change(row) for row in all_estimates(ModalityPlan(**plan))]}


def with_importances(filled=("zero", "tissue"), **known):
    """A change that gives modalities these Shapley values with their intervals."""

    def change(row):
        at = json.loads(row.condition)
        if row.metric != "phi_modality" or at.get("filled") not in filled:
            return row
        if row.statistic != "shapley" or at["modality"] not in known:
            return row
        value, low, high = known[at["modality"]]
        return replace(row, value=value, low=low, high=high)

    return change


def of(evidence, name):
    return judge(evidence, next(method for method in evidence.methods if method.name == name))


def test_first_sentence_names_the_modality_by_points_folds_and_what_the_others_add(modality_evidence):
    told = verdict(modality_evidence(folds=5)).first
    assert told.startswith(
        "The network relies most on T1C, which contributes 26 percentage points (95 % interval 23–28) of"
    )
    assert "of balanced accuracy, while all 4 together contribute 33, and is first in 4 of 5 networks" in told
    assert told.endswith("; FLAIR adds 9, T1 and T2 do not clearly add anything.")


def test_one_network_is_not_counted(modality_evidence):
    assert "networks" not in verdict(modality_evidence(folds=1, cases=20)).first


def test_shared_first_place_is_said_to_have_no_clear_order(modality_evidence):
    tie = with_importances(T1C=(0.3, 0.2, 0.4), FLAIR=(0.25, 0.1, 0.35))
    told = verdict(modality_evidence(**changed(tie))).first
    assert told.startswith(
        "The network relies on T1C and FLAIR without a clear order among them: T1C, the highest, contributes"
    )
    assert told.endswith("; T2 and T1 do not clearly add anything.")


def test_network_that_needs_no_modality_is_told_so(modality_evidence):
    def guess(row):
        return replace(row, value=0.01, low=-0.03, high=0.04) if row.statistic == "shapley" else row

    evidence = modality_evidence(**changed(guess))
    told = verdict(evidence)
    assert told.first.startswith(
        "No modality clearly helps the network: T1, the highest, adds 1 percentage point (95 %"
    )
    assert "scores of maps say nothing about the methods" in told.second
    assert "says nothing about the methods" in overview(evidence)["noise"]
    assert overview(modality_evidence(**SMALL))["noise"] == ""


def test_without_an_order_the_intervals_decide():
    plan = ModalityPlan(**SMALL)
    row = next(row for row in all_estimates(plan) if row.statistic == "shapley")
    found = {name: replace(row, value=v, low=v - 0.1, high=v + 0.1) for name, v in (("a", 0.1), ("b", 0.5), ("c", 0.4))}
    assert first_among(found) == ("b", "c")


def test_modality_with_a_narrow_interval_shuts_others_out_of_the_first_place():
    plan = ModalityPlan(**SMALL)
    row = next(row for row in all_estimates(plan) if row.statistic == "shapley")
    ends = {"a": (0.5, 0.1, 0.9), "b": (0.45, 0.4, 0.5), "c": (0.2, 0.15, 0.25)}
    found = {name: replace(row, value=v, low=low, high=high) for name, (v, low, high) in ends.items()}
    assert first_among(found) == ("a", "b")


ODD = ("DWI b = 1000", "T1 > T2", 'ADC "low"; T1 is below')


@pytest.mark.parametrize("names", [ODD, ODD[::-1]])
def test_modality_may_have_any_name_and_still_be_first(modality_evidence, names):
    levels = dict(zip(names, (0.4, 0.2, 0.0), strict=True))
    before = ("T1C", "FLAIR", "T1")
    own = dict(zip(before, names, strict=True))

    def rename(row):
        at = json.loads(row.condition)
        if row.statistic != "shapley":
            return row
        name = own[at["modality"]]
        value = levels[name]
        return replace(row, condition=condition(**{**at, "modality": name}), value=value, low=value - 0.05,
                       high=value + 0.05)  # fmt: skip

    evidence = modality_evidence(**changed(rename, modalities=before), facts={"modalities": list(names)})
    assert first_of(evidence, primary_game(evidence, "phi_modality")) == (names[0],)
    told = verdict(evidence).first
    assert told.startswith(f"The network relies most on {names[0]}, which contributes 40 percentage points")
    assert "first in all 2 networks" in told


def test_modality_that_reaches_several_is_told_as_tied_with_the_first(modality_evidence):
    wide = with_importances(T2=(-0.006, -0.4, 0.4))
    evidence = modality_evidence(**changed(wide))
    told = verdict(evidence).first
    assert told.startswith("The network relies on T1C and T2 without a clear order among them")
    assert "T2 is tied with T1C, FLAIR, T1. " in importance(evidence)["sentences"][1]


@pytest.mark.parametrize(
    ("reason", "patients", "sure"), [(ONE_VALUE, 10, True), (ONE_VALUE, 9, False), ("", 40, False)]
)
def test_without_intervals_no_importance_is_sure_unless_many_patients_agree(modality_evidence, reason, patients, sure):
    def bare(row):
        if row.statistic != "shapley":
            return row
        return replace(row, low=math.nan, high=math.nan, reason=reason, n_patients=patients)

    evidence = modality_evidence(**changed(bare))
    told = verdict(evidence)
    assert told.first.startswith("The network relies most on T1C") == sure
    assert ("there are too few patients for an interval" in told.first) == (not sure)
    assert ("study more patients" in told.second) == (not sure)
    assert bool(overview(evidence)["noise"]) == (not sure)


def test_class_without_a_case_is_named_where_importance_is_undefined(modality_evidence):
    def undefined(row):
        if row.statistic != "shapley":
            return row
        why = "fold 2 has no test case of LGG, so no balanced accuracy"
        return replace(row, value=math.nan, low=math.nan, high=math.nan, reason=why)

    told = verdict(modality_evidence(**changed(undefined)))
    assert told.first == (
        "How much each modality matters to the network is not known: fold 2 has no test case of LGG, so no balanced "
        "accuracy."
    )


def test_second_sentence_sorts_the_methods_by_what_they_show(modality_evidence):
    told = verdict(modality_evidence()).second
    assert "(11 of 16 methods) give more heat to the modalities that matter and put it on the lesion better" in told
    assert "against 0.11)" in told
    assert "Grad-CAM marks the lesion but has one map for all modalities, so cannot say which one matters" in told
    assert told.endswith("LIME, Kernel SHAP and 2 more do neither.")


def test_verdict_has_two_sentences(modality_evidence):
    told = verdict(modality_evidence())
    assert told.third == ""
    assert [part.count(". ") for part in (told.first, told.second)] == [0, 0]


def test_few_patients_make_a_first_impression(modality_evidence):
    assert "with only 16 patients behind it" in verdict(modality_evidence(folds=1, cases=16)).second
    assert "first impression" not in verdict(modality_evidence()).second


def test_criterion_needs_both_the_modality_and_the_lesion(modality_evidence):
    evidence = modality_evidence()
    found = {made.entrant.name: made.outcome for made in judgements(evidence)}
    assert found["guided_backprop"] == BOTH
    assert found["grad_cam"] == LESION
    assert found["deconvolution"] == found["lime"] == NEITHER
    assert [made.outcome for made in judgements(evidence)] == sorted(found.values(), key=[BOTH, LESION, NEITHER].index)


def test_interval_above_the_floor_is_not_enough_when_correction_takes_the_p_value_away(modality_evidence):
    def corrected(row):
        return replace(row, p_adjusted=0.06) if row.statistic == "difference" else row

    assert not of(modality_evidence(**changed(corrected)), "guided_backprop").marks


@pytest.mark.parametrize(("reason", "patients", "marks"), [(ONE_VALUE, 40, True), (ONE_VALUE, 4, None), ("", 40, None)])
def test_without_an_interval_only_many_equal_cases_decide(modality_evidence, reason, patients, marks):
    def bare(row):
        if row.statistic != "difference":
            return row
        return replace(row, low=math.nan, high=math.nan, reason=reason, n_patients=patients)

    made = of(modality_evidence(**changed(bare)), "guided_backprop")
    assert made.marks is marks
    assert (made.outcome == UNKNOWN) == (marks is None)


def test_run_without_scores_has_no_verdict_on_methods(modality_evidence):
    told = verdict(modality_evidence(**SMALL, keep=lambda row: row.statistic not in {"mean", "difference"}))
    assert told.first.startswith("The network relies most on T1C")
    assert told.second.startswith("No method can be judged")
    nothing = verdict(modality_evidence(**SMALL, rows=[]))
    assert nothing.first.startswith("There is no verdict")


def test_caveats_name_differing_folds_one_map_and_failed_cases(modality_evidence):
    told = " ".join(caveats(modality_evidence()))
    assert "1 of 61 cases failed" in told
    assert "Not every network has T1C alone in the first place (fold 3: T1C = FLAIR" in told
    assert "so Grad-CAM can score well on it with one map for all" in told
    assert "LIME was run with smaller settings" in told
    assert "drawn" not in told


def test_caveats_say_that_scores_rest_on_uncertain_importances(modality_evidence):
    told = " ".join(caveats(modality_evidence(**SMALL)))
    assert "take the importances as given" in told
    assert (
        "in at least one network for T1 and T2, so the modality correlation rests on an uncertain order there." in told
    )

    def apart(row):
        level = {"T1": 0.1, "T1C": 0.4, "T2": 0.2, "FLAIR": 0.3}
        names = [name for name in level if f'"{name}"' in row.condition]
        if row.statistic != "shapley" or not names:
            return row
        return replace(row, value=level[names[0]], low=level[names[0]] - 0.01, high=level[names[0]] + 0.01)

    told = " ".join(caveats(modality_evidence(**changed(apart))))
    assert "take the importances as given" in told
    assert "uncertain order" not in told


def test_modalities_that_clearly_have_the_same_importance_have_no_uncertain_order(modality_evidence):
    def same(row):
        if row.statistic != "shapley":
            return row
        value = 0.5 if '"T1C"' in row.condition else 0.0
        return replace(row, value=value, low=math.nan, high=math.nan, reason=ONE_VALUE, n_patients=12)

    assert "uncertain order" not in " ".join(caveats(modality_evidence(**changed(same))))


def test_caveats_of_one_drawn_network(modality_evidence):
    told = " ".join(caveats(modality_evidence(source="phantom_brain", folds=1, cases=20)))
    assert "One network was studied" in told
    assert "The images are drawn" in told


def test_caveats_name_networks_that_guess(modality_evidence):
    def weak(row):
        known = row.statistic == "mean" and row.metric == "balanced_accuracy" and '"fold":2' in row.condition
        return replace(row, value=0.55, low=0.45) if known else row

    told = " ".join(caveats(modality_evidence(**changed(weak))))
    assert "The network of fold 2 is not clearly better than guessing (balanced accuracy 50\u00a0%)" in told


def test_caveats_name_settings_that_flatter_and_rules_that_disagree(modality_evidence):
    other = with_importances(filled=("tissue",), FLAIR=(0.8, 0.7, 0.9))
    primary = {"measure": "accuracy", "weights": "min_max", "importance": "lesion", "filled": "zero", "dilate": 20}
    told = " ".join(caveats(modality_evidence(**changed(other), facts={"primary": {**primary, "boxes": True}})))
    assert "depend on the class that an empty image falls into" in told
    assert "widened by 20 pixels" in told
    assert "bounding box" in told
    assert "never counts the least important modality" in told
    assert "filled by values of healthy tissue: FLAIR > T1C > T1 = T2" in told


def test_floor_that_beats_the_uniform_map_is_called_out(modality_evidence):
    def beats(row):
        return replace(row, value=0.2, low=0.1, p_adjusted=0.001) if row.method == "random" else row

    methods = ("gradient", "guided_backprop", "random")
    told = " ".join(caveats(modality_evidence(**changed(beats, methods=methods))))
    assert "Random, made without the model, also beats the uniform map" in told


def test_modality_whose_interval_covers_nothing_is_not_said_to_add_something(modality_evidence):
    def small(row):
        known = row.statistic == "shapley" and '"T2"' in row.condition
        return replace(row, value=0.02, low=-0.01, high=0.05) if known else row

    told = verdict(modality_evidence(**changed(small))).first
    assert "T2 adds" not in told
    assert "T2 and T1 do not clearly add anything" in told
