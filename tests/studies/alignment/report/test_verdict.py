"""What the alignment page says first: never more than its intervals allow."""

import math
from dataclasses import replace

import pytest
from tests.studies.alignment.report.made_estimates import all_estimates
from tests.studies.alignment.report.material import CELL, AlignmentPlan
from tests.studies.alignment.report.section_blocks import matrix, sentences

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import condition
from heatcheck.studies.alignment.report.caveats import caveats
from heatcheck.studies.alignment.report.sections.overview import overview, size_of
from heatcheck.studies.alignment.report.sections.robustness import robustness
from heatcheck.studies.alignment.report.verdict import verdict
from heatcheck.studies.alignment.vocabulary import ONE_TRAINING


def changed(change, **plan):
    return [change(row) for row in all_estimates(AlignmentPlan(**plan))]


def caveat(evidence, words):
    sentences = [sentence for sentence in caveats(evidence) if words in sentence]
    assert len(sentences) < 2
    return "".join(sentences)


def of_robustness(change, **plan):
    """The estimates with the robustness of pairs of model and method changed; comparisons are left as they are."""
    return changed(lambda row: change(row) if row.statistic == "robustness" and not row.other_method else row, **plan)


def of_comparisons(change):
    return changed(lambda row: change(row) if row.other_method else row)


def test_verdict_names_what_was_clearly_pushed_and_what_clearly_less_far(alignment_evidence):
    result = verdict(alignment_evidence())
    assert result.first == (
        "By changing the model alone, the share of a map’s heat that lies inside the experts’ outline can be pushed "
        "from 0.12 (misaligned network) to 0.80 (aligned network; 0.55 before fine-tuning) with Integrated gradients "
        "on DenseNet (random_1_channel) (difference 0.68, 95 % interval 0.65–0.71; AUROC 0.77 misaligned, 0.79 "
        "aligned); of the other 3 pairs of model and method, in 2 it can be pushed too and in 1 it cannot; clearly "
        "less far with Integrated gradients on ViT (radimagenet) (by 0.64, 95 % interval 0.61–0.67)."
    )


def test_verdict_counts_whose_fault_low_scores_are(alignment_evidence):
    result = verdict(alignment_evidence())
    assert result.second == (
        "Of these 2 base networks, before fine-tuning, in 8 combinations of network, method and finding: in 2 the map "
        "hardly marks what "
        "the network uses, in 2 the network hardly uses the region, and the map shows that, in 2 the map marks what "
        "the network uses, better than maps made without it and in 2 no answer is shown."
    )
    assert result.third == (
        "Under fine-tuning, the map moved while the model did not in 2 (Integrated gradients: no evidence), the map "
        "followed the model in 4 and the map did not move in 2."
    )


def test_one_training_is_told_of_these_networks_in_the_past_and_claims_nothing(alignment_evidence):
    evidence = alignment_evidence(seeds=(1,))
    result = verdict(evidence)
    assert result.first == (
        "Each network was trained once, so nothing is claimed of how a method behaves under fine-tuning. On these "
        "networks, the share of a map’s heat that lies inside the experts’ outline was 0.12 on the misaligned network "
        "and 0.80 on the aligned one (0.55 before fine-tuning) with Integrated gradients on DenseNet "
        "(random_1_channel), the most of 4 pairs of model and method (difference 0.68, 95 % interval 0.65–0.71 over "
        "images alone; AUROC 0.77 misaligned, 0.79 aligned)."
    )
    assert result.third == ""
    section = robustness(evidence)
    table = matrix(section, "Aligned minus misaligned")
    assert {row.cells[0].text for _, rows in table.matrix.groups[:2] for row in rows} == {"one training cannot tell"}
    assert ONE_TRAINING in table.matrix.notes
    assert table.note.startswith("Each network was trained once.")
    assert "would be missed" not in table.note
    assert section.summary.endswith("one training each, so nothing is claimed of a method under fine-tuning.")


def test_pairs_that_are_not_shown_to_differ_are_told_so_whatever_their_own_intervals(alignment_evidence):
    rows = of_comparisons(lambda row: replace(row, low=row.value - 1, high=row.value + 1))
    result = verdict(alignment_evidence(rows=rows)).first
    assert result.endswith("; that any of them can be pushed less far is not shown.")
    rows = of_comparisons(lambda row: replace(row, value=0.01, low=-0.02, high=0.04))
    assert verdict(alignment_evidence(rows=rows)).first.endswith("; none of them is behind by a size that matters.")


def test_distance_whose_interval_holds_0_is_not_shown_and_says_what_would_decide(alignment_evidence):
    rows = of_robustness(lambda row: replace(row, low=-0.1, n_needed=41))
    result = verdict(alignment_evidence(rows=rows)).first
    assert result.startswith("That changing the model alone moves the share")
    assert "is not shown: of 4 pairs of model and method, the furthest moved by 0.68" in result
    assert result.endswith(", and about 41 patients would decide it.")


def test_distance_that_is_above_0_and_too_small_to_matter_does_not_move_it(alignment_evidence):
    rows = of_robustness(lambda row: replace(row, value=0.03, low=0.01, high=0.05))
    result = verdict(alignment_evidence(rows=rows)).first
    assert result.startswith("Changing the model alone does not move the share")
    assert "by a size that matters (0.09): of 4 pairs" in result


def test_distance_without_an_interval_is_neither_called_a_push_nor_none(alignment_evidence):
    rows = of_robustness(lambda row: replace(row, low=math.nan, high=math.nan, reason="fewer than two patients"))
    result = verdict(alignment_evidence(rows=rows)).first
    assert "is not shown (fewer than two patients): of 4 pairs" in result


def test_ends_of_an_interval_that_would_print_alike_get_another_digit(alignment_evidence):
    rows = of_robustness(lambda row: replace(row, low=row.value - 0.001, high=row.value + 0.001))
    assert "difference 0.680, 95 % interval 0.679–0.681" in verdict(alignment_evidence(rows=rows)).first


def test_scores_that_would_print_alike_are_not_told_as_a_push_from_one_to_the_same(alignment_evidence):
    def change(row):
        near = {"align": 0.301, "misalign": 0.300}
        arm = next((arm for arm in near if f'"{arm}"' in row.condition), "")
        return replace(row, value=near[arm]) if row.statistic == "mean" and arm else row

    assert (
        "can be pushed from 0.300 (misaligned network) to 0.301 (aligned network;"
        in verdict(alignment_evidence(rows=changed(change))).first
    )


def test_verdict_says_why_nothing_can_be_decided_where_readers_score_below_the_usual_place(alignment_evidence):
    rows = changed(lambda row: replace(row, value=0.75) if row.method == "location_prior" else row, human="readers")
    result = verdict(alignment_evidence(rows=rows, human="readers")).second
    assert "in 2 nothing can be decided, because, for Atelectasis, not even the human readers’ marks have a" in result
    assert "no answer is shown" not in result


def test_one_pair_alone_is_compared_with_nothing(alignment_evidence):
    result = verdict(alignment_evidence(models=("densenet121",), methods=("grad_cam",)))
    assert result.first.endswith("AUROC 0.77 misaligned, 0.79 aligned).")
    assert result.second == (
        "Of this one base network, before fine-tuning, in 2 combinations of network, method and finding: in 2 the map "
        "hardly marks what the network uses."
    )


def test_one_pair_that_did_not_clearly_move_is_not_called_the_furthest(alignment_evidence):
    plan = {"models": ("densenet121",), "methods": ("grad_cam",)}
    rows = of_robustness(lambda row: replace(row, low=-0.1), **plan)
    result = verdict(alignment_evidence(rows=rows, **plan)).first
    assert "is not shown: it moved by 0.56 (95 % interval −0.10 to 0.59) with Grad-CAM" in result


def test_the_table_gives_the_verdicts_answers_and_what_the_run_could_not_have_shown(alignment_evidence):
    evidence = alignment_evidence()
    section = robustness(evidence)
    table, compared = (matrix(section, caption) for caption in ("Aligned minus misaligned", "Compared with"))
    answers = {row.entrant.label: row.cells[0].text for _, rows in table.matrix.groups[1:2] for row in rows}
    assert answers == {"Gradient": "yes", "Integrated gradients": "no"}
    assert [row.cells[0].text for _, rows in compared.matrix.groups for row in rows] == ["yes", "yes", "yes"]
    words = "With 12 patients and 2 trainings of each network, an R below 0.09 would go unnoticed in more than half of "
    words += "such runs."
    assert table.note.endswith(words)
    assert section.summary.startswith("Clearly pushed: 3 of 4 pairs of model and method; at most +0.68")
    assert words in caveats(evidence)


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
        ({"seeds": (1,)}, "What is said of the networks before fine-tuning does not depend on it."),
        (
            {"facts": {"positives": {"Edema": {"evaluation_positives": 3}}}},
            "fewer than 10 images have, or lack, the finding: Edema (3 with it)",
        ),
        (
            {"facts": {"positives": {"Edema": {"evaluation_positives": 30, "evaluation_negatives": 4}}}},
            "have, or lack, the finding: Edema (4 without it)",
        ),
        ({"facts": {"limit": 2}}, "cut short on purpose (--limit 2): images of at most 2 patients were explained"),
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
    def above(value, low, high):
        return changed(lambda row: replace(row, value=value, low=low, high=high)
                       if "guessing" in row.condition and row.finding == "Edema" else row)  # fmt: skip

    sentence = caveat(alignment_evidence(rows=above(0.01, -0.02, 0.04)), "Not clearly better than guessing")
    assert "(an AUROC of 0.5, by 0.05 or more): Edema (ViT (radimagenet), 0.77) and Edema (DenseNet" in sentence
    unsure = alignment_evidence(rows=above(0.25, -0.05, 0.4))
    assert "Edema (ViT (radimagenet), 0.77, not shown)" in caveat(unsure, "Not clearly better than guessing")
    small = alignment_evidence(rows=above(0.04, 0.01, 0.07))  # beyond chance, but whether it matters is open
    assert "not shown" in caveat(small, "Not clearly better than guessing")
    assert not caveat(alignment_evidence(), "better than guessing")


def of_losses(value, low, high):
    def change(row):
        lost = (row.statistic, row.metric, row.finding) == ("difference", "auroc", "Edema")
        return replace(row, value=value, low=low, high=high) if lost and '"misalign"' in row.condition else row

    return changed(change)


def test_networks_that_predict_clearly_worse_than_their_control_are_named(alignment_evidence):
    lost = alignment_evidence(rows=of_losses(0.22, 0.1, 0.3))
    sentence = caveat(lost, "Tuning the maps cost prediction")
    assert "DenseNet (random_1_channel) · Gradient, misaligned, Edema (−0.22)" in sentence
    assert "lies clearly below that of the control" in sentence
    assert not caveat(alignment_evidence(), "cost prediction")
    unsure = caveat(alignment_evidence(rows=of_losses(0.22, -0.1, 0.5)), "cost prediction")
    assert unsure.startswith("Whether tuning the maps cost prediction (an AUROC 0.05 or more below the control’s)")
    assert unsure.endswith("is not shown for 4 of 16 networks.")
    assert not caveat(alignment_evidence(seeds=(1,)), "cost prediction")


def test_a_method_without_any_map_does_not_make_the_others_rest_on_none(alignment_evidence):
    rows = changed(lambda row: replace(row, n_cases=0) if row.statistic == "mean" and row.method == "gradient" else row)
    assert size_of(alignment_evidence(rows=rows)) == "234 images evaluated, maps of 24 per finding"


def test_images_are_counted_where_maps_were_scored_and_a_limit_is_said_first(alignment_evidence):
    rows = changed(lambda row: replace(row, n_cases=2) if row.statistic == "mean" else row)
    evidence = alignment_evidence(rows=rows, facts={"limit": 2})
    assert caveats(evidence)[0].startswith("This run was cut short on purpose (--limit 2)")
    assert caveat(evidence, "The numbers of Atelectasis (2) and Edema (2) rest on fewer than 10 evaluation images")
    assert not caveat(alignment_evidence(), "anecdotal")
    sentence = sentences(overview(evidence))[1]
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
    assert verdict(passed).second.startswith(
        "Of these 2 base networks, before fine-tuning, in 8 combinations of network, method and finding: in 2 "
    )
    sentence = caveat(passed, "made without the model")
    assert sentence.startswith("Random, made without the model, is read as marking the region")
    assert "Atelectasis (DenseNet (random_1_channel)), Edema (DenseNet (random_1_channel)) and 2 more" in sentence
    assert not caveat(judged("method"), "made without the model")
