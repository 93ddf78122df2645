"""What the alignment page says first: never more than its intervals allow."""

import math
from dataclasses import replace

import pytest
from tests.studies.alignment.report.made_estimates import all_estimates
from tests.studies.alignment.report.material import CELL, AlignmentPlan

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import condition
from heatcheck.studies.alignment.report.caveats import caveats
from heatcheck.studies.alignment.report.sections.overview import overview, size_of
from heatcheck.studies.alignment.report.verdict import verdict


def changed(change, **plan):
    return [change(row) for row in all_estimates(AlignmentPlan(**plan))]


def caveat(evidence, words):
    sentences = [sentence for sentence in caveats(evidence) if words in sentence]
    assert len(sentences) < 2
    return "".join(sentences)


def test_verdict_names_the_furthest_and_the_least_pushed_with_their_intervals(alignment_evidence):
    result = verdict(alignment_evidence())
    assert result.first == (
        "By changing the model alone, the share of a map’s heat that lies inside the experts’ outline can be pushed "
        "from 0.12 to 0.80 with Integrated gradients on DenseNet (random_1_channel) (difference 0.68, 95 % interval "
        "0.65–0.71; AUROC of the two networks 0.77 and 0.79), but only by 0.04 (95 % interval 0.01–0.07) with "
        "Integrated gradients on ViT (radimagenet)."
    )


def test_verdict_counts_whose_fault_low_scores_are(alignment_evidence):
    result = verdict(alignment_evidence())
    assert result.second == (
        "Of 8 combinations of model, method and finding, in 2 the method fails to show what the model uses, in 2 the "
        "model hardly uses the region and the map shows that, in 2 the map marks better than chance what the model "
        "uses and in 2 it cannot be decided."
    )
    assert result.third == (
        "Under fine-tuning, the map moved while the model did not in 2 (Integrated gradients: no evidence), the map "
        "follows the model in 4 and the map did not move in 2."
    )


def test_pairs_whose_intervals_touch_are_not_told_apart(alignment_evidence):
    rows = changed(lambda row: replace(row, low=row.value - 1, high=row.value + 1)
                   if row.statistic == "robustness" and row.value < 0.6 else row)  # fmt: skip
    result = verdict(alignment_evidence(rows=rows))
    assert "the other 3 pairs of model and method do not all clearly differ from it" in result.first
    assert "but only by" not in result.first


def test_distance_whose_interval_holds_0_is_not_called_a_push(alignment_evidence):
    rows = changed(lambda row: replace(row, low=-0.1) if row.statistic == "robustness" else row)
    result = verdict(alignment_evidence(rows=rows))
    assert result.first.startswith("Changing the model alone did not clearly move")
    assert "of 4 pairs of model and method, none has an interval above 0" in result.first


def without_interval(row, reason):
    return replace(row, low=math.nan, high=math.nan, reason=reason)


def test_distance_without_an_interval_is_neither_called_a_push_nor_none(alignment_evidence):
    rows = changed(
        lambda row: without_interval(row, "fewer than two patients") if row.statistic == "robustness" else row
    )
    result = verdict(alignment_evidence(rows=rows)).first
    assert result.startswith("Whether changing the model alone moves the share")
    assert "because no interval could be computed (fewer than two patients): of 4 pairs" in result
    assert "did not clearly move" not in result


def test_pairs_without_an_interval_are_told_from_those_whose_interval_holds_0(alignment_evidence):
    def change(row):
        if row.statistic != "robustness":
            return row
        return without_interval(row, "all draws agree") if row.method == "gradient" else replace(row, low=-0.1)

    result = verdict(alignment_evidence(rows=changed(change))).first
    assert "none has an interval above 0, and for 2 none could be computed (all draws agree); the furthest" in result


def test_ends_of_an_interval_that_would_print_alike_get_another_digit(alignment_evidence):
    rows = changed(lambda row: replace(row, low=row.value - 0.001, high=row.value + 0.001)
                   if row.statistic == "robustness" and row.value < 0.1 else row)  # fmt: skip
    result = verdict(alignment_evidence(rows=rows)).first
    assert "but only by 0.040 (95 % interval 0.039–0.041)" in result
    assert "difference 0.68, 95 % interval 0.65–0.71" in result


def test_scores_that_would_print_alike_are_not_told_as_a_push_from_one_to_the_same(alignment_evidence):
    def change(row):
        if row.statistic == "robustness":
            return replace(row, value=0.001, low=0.0005, high=0.0015)
        near = {"align": 0.301, "misalign": 0.300}
        arm = next((arm for arm in near if f'"{arm}"' in row.condition), "")
        return replace(row, value=near[arm]) if row.statistic == "mean" and arm else row

    result = verdict(alignment_evidence(rows=changed(change))).first
    assert "can be pushed from 0.300 to 0.301 with" in result


def test_least_pushed_that_may_not_have_moved_is_told_so(alignment_evidence):
    rows = changed(lambda row: replace(row, low=-0.01) if row.statistic == "robustness" and row.value < 0.1 else row)
    assert (
        "but not clearly, and only by 0.04 (95 % interval −0.01 to 0.07)"
        in verdict(alignment_evidence(rows=rows)).first
    )


def test_one_pair_alone_is_compared_with_nothing(alignment_evidence):
    result = verdict(alignment_evidence(models=("densenet121",), methods=("grad_cam",)))
    assert result.first.endswith("AUROC of the two networks 0.77 and 0.79).")
    assert result.second.startswith("Of 2 combinations of model, method and finding, in 2 the method fails")


def test_one_pair_that_did_not_clearly_move_is_not_called_the_furthest(alignment_evidence):
    plan = {"models": ("densenet121",), "methods": ("grad_cam",)}
    rows = changed(lambda row: replace(row, low=-0.1) if row.statistic == "robustness" else row, **plan)
    result = verdict(alignment_evidence(rows=rows, **plan)).first
    assert (
        "outline: the interval is not above 0; it moved by 0.56 (95 % interval −0.10 to 0.59) with Grad-CAM" in result
    )


def test_unfinished_run_has_no_verdict(alignment_evidence):
    assert verdict(alignment_evidence(status="running")).first.startswith("There is no verdict yet")


def test_run_without_defined_distances_has_no_verdict(alignment_evidence):
    rows = changed(lambda row: replace(row, value=math.nan) if row.statistic == "robustness" else row)
    assert verdict(alignment_evidence(rows=rows)).first.startswith("There is no verdict, because no score")


def test_run_without_a_blame_table_says_so(alignment_evidence):
    result = verdict(alignment_evidence(keep=lambda row: row.statistic != "blame"))
    assert (result.second, result.third) == ("Whose fault low scores are was not judged.", "")
    assert result.text.endswith(f" {result.second}")


def test_failed_networks_and_images_are_told_apart(alignment_evidence):
    assert caveat(alignment_evidence(), "took no part").startswith("1 image could not be read, and took no part")
    sentence = caveat(alignment_evidence(failed=(CELL,)), "took no part")
    assert sentence.startswith("1 fine-tuned network failed and 1 image could not be read")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seeds": (1,)}, "fine-tuned once, with one seed"),
        ({"source": "phantom_chest"}, "The images are drawn phantoms"),
        (
            {"facts": {"positives": {"Edema": {"evaluation_positives": 3}}}},
            "fewer than 10 images have, or lack, the finding: Edema (3 with it)",
        ),
        (
            {"facts": {"positives": {"Edema": {"evaluation_positives": 30, "evaluation_negatives": 4}}}},
            "have, or lack, the finding: Edema (4 without it)",
        ),
        ({"facts": {"limit": 2}}, "cut short on purpose (--limit 2): at most 2 images of each finding were explained"),
    ],
)
def test_what_weakens_the_verdict_is_told_where_it_applies(alignment_evidence, changes, words):
    assert caveat(alignment_evidence(**changes), words)
    assert not caveat(alignment_evidence(), words)


def of_auroc(change, arm, finding=""):
    """The estimates with some networks' AUROC changed, while that of all findings is undefined."""

    def made(row):
        if row.statistic != "auroc":
            return row
        if row.finding == ALL_FINDINGS:
            return replace(row, value=math.nan, low=math.nan, high=math.nan)
        return replace(row, **change) if f'"arm":"{arm}"' in row.condition and finding in row.finding else row

    return changed(made)


def test_base_that_guesses_is_named_with_the_finding_even_where_no_mean_is_defined(alignment_evidence):
    weak = alignment_evidence(rows=of_auroc({"value": 0.55}, "base", "Edema"))
    sentence = caveat(weak, "Not clearly better than guessing")
    assert "Edema (DenseNet (random_1_channel), 0.55) and Edema (ViT (radimagenet), 0.55)." in sentence
    unsure = alignment_evidence(rows=of_auroc({"value": 0.75, "low": 0.45}, "base", "Edema"))
    assert "0.75" in caveat(unsure, "Not clearly better than guessing")
    assert not caveat(alignment_evidence(), "better than guessing")


def test_networks_that_predict_worse_than_their_control_are_named(alignment_evidence):
    lost = alignment_evidence(rows=of_auroc({"value": 0.6}, "misalign", "Edema"))
    sentence = caveat(lost, "Tuning the maps cost prediction")
    assert "DenseNet (random_1_channel) · Gradient, misaligned, Edema (−0.22)" in sentence
    assert "below that of the control" in sentence
    fell_with_control = alignment_evidence(rows=of_auroc({"value": 0.99}, "base"))
    assert not caveat(fell_with_control, "Tuning the maps cost prediction")  # fine-tuning did, not the map's loss
    assert not caveat(alignment_evidence(), "Tuning the maps cost prediction")


def test_images_are_counted_where_maps_were_scored_and_a_limit_is_said_first(alignment_evidence):
    rows = changed(lambda row: replace(row, n_cases=2) if row.statistic == "mean" else row)
    evidence = alignment_evidence(rows=rows, facts={"limit": 2})
    assert caveats(evidence)[0].startswith("This run was cut short on purpose (--limit 2)")
    assert caveat(evidence, "The numbers of Atelectasis (2) and Edema (2) rest on fewer than 10 evaluation images")
    assert not caveat(alignment_evidence(), "anecdotal")
    sentence = overview(evidence)["sentences"][1]
    assert "their predictions were evaluated on 234 other images of other patients." in sentence
    assert "Map scores and reliance are from 2 images of each finding among them (limited by --limit 2" in sentence
    assert size_of(evidence) == "234 images evaluated, maps of 2 per finding"
    assert size_of(alignment_evidence()) == "234 images evaluated, maps of 24 per finding"


def test_judged_floor_is_not_counted_and_is_held_against_the_readings_where_it_passes(alignment_evidence):
    def judged(reading):
        rows, under = all_estimates(AlignmentPlan()), condition(before=reading, under="unmoved")
        own = [row for row in rows if row.statistic == "blame" and row.method == "gradient"]
        extra = [replace(row, method="random", condition=under) for row in own]
        return alignment_evidence(rows=rows + extra, judged=("random",))

    passed = judged("shows")
    assert verdict(passed).second.startswith("Of 8 combinations of model, method and finding, in 2 the method fails")
    sentence = caveat(passed, "made without the model")
    assert sentence.startswith("Random, made without the model, is read as marking the region")
    assert "Atelectasis (DenseNet (random_1_channel)), Edema (DenseNet (random_1_channel)) and 2 more" in sentence
    assert not caveat(judged("method"), "made without the model")
