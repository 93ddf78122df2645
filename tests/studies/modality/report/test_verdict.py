"""The verdict of a modality study, its criterion and its caveats."""

import json
import math
from dataclasses import replace

import pytest
from tests.studies.modality.report.block_reading import listed_rows, words_of
from tests.studies.modality.report.changes import SMALL, changed, with_brightness, with_importances
from tests.studies.modality.report.made_estimates import MODEL, all_estimates
from tests.studies.modality.report.material import ModalityPlan

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.studies.modality.report.caveats import caveats
from heatcheck.studies.modality.report.claims import (
    BOTH,
    LESION,
    LESION_AT_LEAST,
    NEITHER,
    NOT_MODALITY,
    SIGNS,
    UNJUDGED,
    claims_of,
    every_claim,
)
from heatcheck.studies.modality.report.facts import first_of, primary_game
from heatcheck.studies.modality.report.sections.importance import importance
from heatcheck.studies.modality.report.sections.overview import overview
from heatcheck.studies.modality.report.verdict import verdict


def of(evidence, name):
    return claims_of(evidence, next(method for method in evidence.methods if method.name == name))


def test_first_sentence_names_the_modality_by_points_folds_and_what_the_others_add(modality_evidence):
    told = verdict(modality_evidence(folds=5)).first
    assert told.startswith(
        "The networks rely most on T1C, which contributes 26 percentage points (95 % interval 23–28) of"
    )
    assert "of balanced accuracy, while all 4 together contribute 33, and is clearly first in 4 of 5 networks" in told
    assert told.endswith("; FLAIR adds 9, T1 and T2 add nothing that matters.")


def test_one_network_is_spoken_of_as_one_and_says_nothing_of_methods(modality_evidence):
    told = verdict(modality_evidence(folds=1, cases=20))
    assert told.first.startswith("This network relies most on T1C")
    assert "networks" not in told.first
    assert told.second.startswith("On this network, ")
    assert told.third.endswith("one network cannot show: this is about this network, not about the methods.")


def test_shared_first_place_is_said_to_have_no_clear_order(modality_evidence):
    tie = with_importances(T1C=0.3, FLAIR=0.27, T1=0.0, T2=0.0)
    told = verdict(modality_evidence(**changed(tie))).first
    assert told.startswith(
        "The networks rely on T1C and FLAIR without a clear order among them: T1C, the highest, contributes"
    )
    assert told.endswith("; that T1 and T2 add anything is not shown.")


def test_first_is_clear_only_if_clearly_above_each_other_one(modality_evidence):
    """T1C against FLAIR is open by its paired difference, although their own intervals lie apart."""

    def paired(row):
        at = json.loads(row.condition)
        if row.statistic != "difference" or {at.get("modality"), at.get("versus")} != {"T1C", "FLAIR"}:
            return row
        return replace(row, low=-0.05, high=0.4)

    told = verdict(modality_evidence(**changed(paired))).first
    assert "rely on T1C and FLAIR without a clear order" in told


def test_difference_below_the_size_that_matters_is_no_first_place(modality_evidence):
    small = with_importances(spread=0.001, T1C=0.3, FLAIR=0.29, T1=0.0, T2=0.0)
    assert "without a clear order" in verdict(modality_evidence(**changed(small))).first


def test_network_that_needs_no_modality_is_told_so(modality_evidence):
    def guess(row):
        return replace(row, value=0.01, low=-0.03, high=0.06) if row.statistic == "shapley" else row

    evidence = modality_evidence(**changed(guess))
    told = verdict(evidence)
    assert told.first.startswith("That any modality helps these 2 networks is not shown: T1, the highest, adds 1 perc")
    assert told.second.endswith("study more patients.")
    assert told.third == ""
    assert "says nothing about the methods" in words_of(overview(evidence))
    assert "says nothing about the methods" not in words_of(overview(modality_evidence(**SMALL)))


def test_no_modality_helps_only_where_all_intervals_lie_below_the_size(modality_evidence):
    def idle(row):
        return replace(row, value=0.01, low=0.001, high=0.02) if row.statistic == "shapley" else row

    told = verdict(modality_evidence(**changed(idle)))
    assert told.first.startswith("No modality helps these 2 networks by as much as matters: T1, the highest, adds 1 ")
    assert told.second.endswith("study a network that needs its images.")


ODD = ("DWI b = 1000", "T1 > T2", 'ADC "low"; T1 is below')


@pytest.mark.parametrize("names", [ODD, ODD[::-1]])
def test_modality_may_have_any_name_and_still_be_first(modality_evidence, names):
    levels = dict(zip(names, (0.4, 0.2, 0.0), strict=True))
    before = ("T1C", "FLAIR", "T1")
    own = dict(zip(before, names, strict=True))

    def rename(row):
        at = json.loads(row.condition)
        if not row.metric.startswith("phi"):
            return row
        pair = [own[at[key]] for key in ("modality", "versus") if key in at]
        at |= dict(zip(("modality", "versus"), pair, strict=False))
        value = levels[pair[0]] - (levels[pair[1]] if len(pair) == 2 else 0)
        return replace(row, condition=condition(**at), value=value, low=value - 0.05, high=value + 0.05)

    evidence = modality_evidence(**changed(rename, modalities=before), facts={"modalities": list(names)})
    assert first_of(evidence, primary_game(evidence, "phi_modality")) == (names[0],)
    told = verdict(evidence).first
    assert told.startswith(f"The networks rely most on {names[0]}, which contributes 40 percentage points")
    assert "clearly first in all 2 networks" in told


def test_modality_tied_with_the_first_but_not_shown_to_help_is_not_relied_on(modality_evidence):
    def wide(row):
        at = json.loads(row.condition)
        if row.metric != "phi_modality" or "T2" not in {at.get("modality"), at.get("versus")}:
            return row
        return replace(row, low=row.value - 0.5, high=row.value + 0.5)

    evidence = modality_evidence(**changed(wide))
    told = verdict(evidence).first
    assert told.startswith("The networks rely on T1C, which contributes")
    assert "; that no other counts as much is not shown; FLAIR adds" in told
    assert "that T2 adds anything is not shown" in told
    assert "T2 is tied with T1C, FLAIR, T1. " in words_of(importance(evidence))


def test_without_intervals_nothing_is_claimed_however_many_patients_agree(modality_evidence):
    def bare(row):
        if not row.metric.startswith("phi"):
            return row
        return replace(row, low=math.nan, high=math.nan, reason="fewer than 6 patients", n_patients=5)

    evidence = modality_evidence(**changed(bare))
    told = verdict(evidence)
    assert told.first.startswith("That any modality helps these 2 networks is not shown")
    assert told.first.endswith("(fewer than 6 patients).")
    assert "study more patients" in told.second
    assert "says nothing about the methods" in words_of(overview(evidence))


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
    assert told.startswith("On these 5 networks, ")
    assert "(11 of 16 methods) clearly give more heat to the modalities that matter and put it on the lesion" in told
    assert "against 0.11 of the floor \u201cUniform map\u201d)" in told
    assert "Grad-CAM marks the lesion but has one map for all modalities, so cannot say which one matters" in told
    assert told.endswith("LIME, Kernel SHAP and 2 more do neither.")


def test_third_sentence_claims_what_holds_over_networks_only(modality_evidence):
    told = verdict(modality_evidence())
    assert told.third == "That a method follows the network, over 5 networks, is not shown."

    def follows(row):
        known = row.statistic == "following" and row.method == "deep_lift"
        return replace(row, value=0.5, low=0.2, high=0.8) if known else row

    told = verdict(modality_evidence(**changed(follows))).third
    assert told == "Over 2 networks, DeepLIFT clearly follows the network in what gets heat."


def test_networks_with_one_order_say_why_nothing_is_shown(modality_evidence):
    def same(row):
        if row.statistic != "following":
            return row
        return replace(row, value=0.0, low=math.nan, high=math.nan, reason="the networks rely alike")

    told = verdict(modality_evidence(**changed(same))).third
    assert told == "That a method follows the network, over 2 networks, is not shown: the networks rely alike."


def test_few_patients_make_a_first_impression(modality_evidence):
    assert "with only 16 patients behind it" in verdict(modality_evidence(folds=1, cases=16)).second
    assert "first impression" not in verdict(modality_evidence()).second


def test_criterion_needs_both_the_modality_and_the_lesion(modality_evidence):
    evidence = modality_evidence()
    found = {made.entrant.name: made.outcome for made in every_claim(evidence)}
    assert found["guided_backprop"] == BOTH
    assert found["grad_cam"] == LESION
    assert found["deconvolution"] == found["lime"] == NEITHER
    assert [made.outcome for made in every_claim(evidence)] == sorted(found.values(), key=[BOTH, LESION, NEITHER].index)


def test_lesion_share_of_11_against_10_percent_gets_no_tick(modality_evidence):
    """Beyond chance, but below a tenth of the room between the uniform map and 1."""

    def hardly(row):
        known = row.statistic == "difference" and row.method == "smooth_grad"
        return replace(row, value=0.01, low=0.005, high=0.015, p_adjusted=0.0005) if known else row

    evidence = modality_evidence(**changed(hardly))
    made = of(evidence, "smooth_grad")
    assert made.marks.is_no
    outcome, _, marks, _ = listed_rows(overview(evidence))["SmoothGrad"]
    assert outcome.startswith("◐ ")
    assert marks.startswith("no: ")


def test_what_is_open_is_not_shown_and_says_what_would_decide(modality_evidence):
    def wide(row):
        if row.statistic != "difference" or row.method not in {"guided_backprop", "grad_cam"}:
            return row
        return replace(row, low=-0.1, high=0.9, n_needed=143)

    evidence = modality_evidence(**changed(wide))
    assert of(evidence, "grad_cam").outcome == NOT_MODALITY
    assert SIGNS[NOT_MODALITY] == "✕"  # one of the two is refuted
    marks = listed_rows(overview(evidence))["Guided backprop"][2]
    assert marks.startswith("not shown: ")
    assert marks.endswith("; about 150 patients would decide it")
    told = verdict(evidence).second
    assert "Guided backprop names the modality; that it marks the lesion is not shown" in told
    assert "Grad-CAM has one map for all modalities and is not shown to mark the lesion" in told


def test_method_that_agrees_in_every_case_is_not_shown_without_an_interval(modality_evidence):
    """Equal values of all cases are one order of one network, not as many agreeing patients."""

    def same(row):
        if row.statistic != "agreement":
            return row
        return replace(row, low=math.nan, high=math.nan, reason="every draw gives the same value", n_patients=24)

    assert of(modality_evidence(**changed(same)), "guided_backprop").outcome == LESION_AT_LEAST


def test_method_without_scores_is_not_judged(modality_evidence):
    def undefined(row):
        known = row.statistic == "difference" and row.method == "lime"
        return replace(row, value=math.nan, low=math.nan, high=math.nan) if known else row

    evidence = modality_evidence(**changed(undefined))
    assert of(evidence, "lime").outcome == UNJUDGED
    assert "Not judged because scores are missing: LIME." in words_of(overview(evidence))
    assert "LIME" not in listed_rows(overview(evidence))


def test_run_without_scores_has_no_verdict_on_methods(modality_evidence):
    told = verdict(
        modality_evidence(
            **SMALL, keep=lambda row: row.statistic != "mean" and not (row.statistic == "difference" and row.method)
        )
    )
    assert told.first.startswith("The networks rely most on T1C")
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


def test_caveats_name_the_pairs_whose_order_is_not_clear(modality_evidence):
    told = " ".join(caveats(modality_evidence(**SMALL)))
    assert "not clear in at least one network for T1 and T2: the modality correlation leaves them tied" in told
    apart = with_importances(spread=0.01, T1=0.1, T1C=0.4, T2=0.2, FLAIR=0.3)
    assert "is not clear" not in " ".join(caveats(modality_evidence(**changed(apart))))


def test_caveats_say_what_the_patients_could_not_have_shown(modality_evidence):
    told = " ".join(caveats(modality_evidence(**SMALL)))
    assert (
        "a difference of two modalities below 4 percentage points and an MSFI that is above the best floor’s by less "
        "than 0.09 would go unnoticed in more than half of such runs."
    ) in told


def test_caveats_of_one_network(modality_evidence):
    told = " ".join(caveats(modality_evidence(folds=1, cases=20)))
    assert "One network was studied" in told


def test_caveats_name_networks_that_guess(modality_evidence):
    def weak(row):
        known = row.statistic == "mean" and row.metric == "balanced_accuracy" and '"fold":2' in row.condition
        return replace(row, value=0.55, low=0.45) if known else row

    told = " ".join(caveats(modality_evidence(**changed(weak))))
    assert "The network of fold 2 is not shown to be better than guessing (balanced accuracy 50\u00a0%)" in told


def test_caveats_name_settings_that_flatter_and_rules_that_disagree(modality_evidence):
    other = with_importances(filled=("tissue",), FLAIR=0.8, T1C=0.3, T1=0.02, T2=0.01)
    primary = {"measure": "accuracy", "weights": "min_max", "importance": "lesion", "filled": "zero", "dilate": 20}
    told = " ".join(caveats(modality_evidence(**changed(other), facts={"primary": {**primary, "boxes": True}})))
    assert "depend on the class that an empty image falls into" in told
    assert "widened by 20 pixels" in told
    assert "bounding box" in told
    assert "never counts the least important modality" in told
    assert "filled by values of healthy tissue: FLAIR > T1C > T1 = T2" in told


def test_floor_that_beats_the_uniform_map_is_called_out(modality_evidence):
    def beats(row):
        return replace(row, value=0.2, low=0.1, high=0.3) if row.method == "random" else row

    methods = ("gradient", "guided_backprop", "random")
    told = " ".join(caveats(modality_evidence(**changed(beats, methods=methods))))
    assert "Random, made without the model, also clearly beats every floor of the study" in told


def test_brightness_that_scores_more_than_every_method_takes_their_claims_and_is_named(modality_evidence):
    evidence = modality_evidence(**with_brightness(0.88, 0.9))
    assert {made.outcome for made in every_claim(evidence)} == {NEITHER}
    told = verdict(evidence).second
    assert "none of 2 methods is shown both" in told
    assert (
        "the floor \u201cBrightness\u201d, which never sees the network, is not clearly beaten by any: MSFI 0.88, the "
        "highest method 0.5" in told
    )
    assert "modality correlation 0.90, the highest method 0.5" in told


def test_methods_that_clearly_beat_every_floor_keep_their_claims(modality_evidence):
    evidence = modality_evidence(**with_brightness(0.2, 0.1))
    assert {made.outcome for made in every_claim(evidence)} == {BOTH}
    told = verdict(evidence).second
    assert "better than any map made without the network" in told
    assert "against 0.20 of the floor \u201cBrightness\u201d)" in told
    assert "which never sees" not in told


def test_order_of_a_floor_counts_alone(modality_evidence):
    """Brightness misses the lesion, but has the order of the modalities as well as the methods have."""
    evidence = modality_evidence(**with_brightness(0.15, 0.6))
    assert {made.outcome for made in every_claim(evidence)} <= {LESION, LESION_AT_LEAST}


def test_chance_of_a_fixed_liking_and_the_networks_behind_an_order_are_caveats(modality_evidence):
    rows = all_estimates(ModalityPlan(**SMALL))
    folds = ModalityPlan(**SMALL).fold_numbers
    for statistic, values in (("chance", (0.375, 0.5)), ("chance_all", (1 / 24, 0.25))):
        rows += [Estimate(statistic, "mi_correlation", ALL_FINDINGS, "", MODEL, value, condition=condition(fold=fold))
                 for fold, value in zip(folds, values, strict=False)]  # fmt: skip
    told = " ".join(caveats(modality_evidence(**SMALL, rows=rows)))
    assert (
        "above 0 with 37.5\u00a0% to 50.0\u00a0% of the orders that are possible, and with 4.2\u00a0% to 25.0" in told
    )
    assert f"one order per network, {len(folds)} in all, however many patients" in told


def test_nothing_that_matters_is_said_to_rest_on_one_fill_where_another_does_not_show_it(modality_evidence):
    def wider(row):
        tissue = '"filled":"tissue"' in row.condition and '"modality":"T1"' in row.condition
        return replace(row, low=row.value - 0.5, high=row.value + 0.5) if tissue else row

    told = " ".join(caveats(modality_evidence(**changed(wider))))
    assert "filled by 0. Filled by values of healthy tissue, that T1 adds nothing is not shown" in told
    assert "adds nothing that matters was judged" not in " ".join(caveats(modality_evidence()))
