"""The order by agreement beside the order by truth, and that agreement proves nothing."""

from dataclasses import replace

import pytest
from tests.report.page_reading import cell, read, section_text, table
from tests.studies.triggers.report.made_estimates import MODEL, all_estimates
from tests.studies.triggers.report.material import TriggerPlan

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.studies.triggers.report.sections.agreement import agreement
from heatcheck.studies.triggers.report.sections.consensus import by_truth, consensus

TABLE = ("agreement", "Consensus of the methods")


def test_methods_stand_in_the_order_of_their_agreement_with_their_place_by_truth(trigger_text):
    page = read(trigger_text())
    rows = table(page, *TABLE)["rows"]
    assert [row[0].split("|")[0] for row in rows[1:3]] == ["Gradient", "Guided backprop"]
    assert cell(page, TABLE, "Guided backprop", "Place by agreement") == "2|1\u20133"
    assert cell(page, TABLE, "Guided backprop", "Place by overlap with the trigger") == "1|1\u20132"
    assert "Random" not in {row[0].split("|")[0] for row in rows}


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0.8, 0.5, 1.0), "clearly are those that overlap the trigger more"),
        ((-0.4, -0.8, 0.0), "does not follow the order"),
        ((0.1, -0.2, 0.4), "does not follow the order"),
        ((0.6, -0.2, 0.9), "is not shown"),
        ((0.3, 0.1, 0.6), "is not shown"),
    ],
)
def test_what_agreement_says_is_judged_and_is_never_called_evidence(trigger_evidence, numbers, words):
    value, low, high = numbers
    rows = [
        replace(row, value=value, low=low, high=high)
        if (row.metric, row.condition) == ("rank_agreement", "{}")
        else row
        for row in all_estimates(TriggerPlan())
    ]
    first = by_truth(trigger_evidence(rows=rows))
    assert words in first
    assert "no evidence of correctness" in first


def test_one_training_speaks_of_its_network(trigger_evidence):
    first = by_truth(trigger_evidence(seeds=(0,), failed={}))
    assert first.startswith("In these 8 networks")
    assert "no evidence of correctness" in first


def test_each_measure_and_the_paper_stand_beside_it(trigger_text):
    text = section_text(trigger_text(), "agreement")
    assert "By each measure alone" in text
    assert "names occlusion and feature ablation as agreeing most" in text
    # means of the eleven printed values of each method
    assert "occlusion 0.43, feature ablation 0.33, guided backprop 0.62, guided Grad-CAM 0.43" in text


def test_a_run_without_a_consensus_has_no_such_part(trigger_evidence):
    assert consensus(trigger_evidence(keep=lambda row: row.statistic != "consensus")) == ()


def test_all_pairs_that_print_the_same_likeness_are_named_as_most_alike(trigger_evidence):
    def alike(value, one, other):
        return Estimate("pair_mean", "mutual_information", ALL_FINDINGS, one, MODEL, value, other_method=other)

    rows = [alike(0.2412, "gradient", "lime"), alike(0.2408, "lime", "occlusion"), alike(0.1, "gradient", "occlusion")]
    shown = agreement(trigger_evidence(rows=rows, methods=("gradient", "lime", "occlusion"))).summary
    assert "the maps of Gradient and LIME and of LIME and Occlusion were most alike (0.24)" in shown
