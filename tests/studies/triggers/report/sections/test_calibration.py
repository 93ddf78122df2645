"""Calibration in the section on the attack: a table, and sentences by the one judgement."""

from dataclasses import replace

import pytest
from tests.report.page_reading import cell, read, section_text
from tests.studies.triggers.report.made_estimates import all_estimates
from tests.studies.triggers.report.material import TriggerPlan

from heatcheck.studies.triggers.report.sections.calibration import calibration, on_clean, on_stamped

TABLE = ("attack", "Calibration before and after poisoning")


def test_errors_stand_before_and_after_beside_what_chance_gives(trigger_text):
    page = read(trigger_text())
    assert cell(page, TABLE, "Baseline", "ECE, clean images") == "0.030|by chance 0.010, up to 0.020"
    assert cell(page, TABLE, "Square, bottom right, 20 px", "ECE, clean images").startswith("0.050|by chance 0.015")
    assert cell(page, TABLE, "Square, bottom right, 20 px", "ECE with the trigger, poisoned").startswith("0.930")
    assert "a high confidence does not warn of it" in section_text(trigger_text(), "attack")


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0.2, 0.1, 0.3), "clearly made the models too sure"),
        ((-0.2, -0.3, -0.1), "clearly made the models less sure"),
        ((0.02, -0.01, 0.05), "did not change by a size that matters"),
        ((0.2, -0.1, 0.5), "is not shown"),
        ((0.05, 0.01, 0.2), "is not shown"),
    ],
)
def test_what_poisoning_did_is_claimed_by_the_one_judgement(trigger_evidence, numbers, words):
    value, low, high = numbers
    rows = [
        replace(row, value=value, low=low, high=high)
        if (row.statistic, row.metric, row.other_method) == ("difference", "overconfidence", "baseline")
        else row
        for row in all_estimates(TriggerPlan())
    ]
    clean = on_clean(trigger_evidence(rows=rows))
    assert words in clean
    assert "0.030 before poisoning and 0.050 after it" in clean


def test_one_training_claims_nothing(trigger_evidence):
    evidence = trigger_evidence(seeds=(0,), failed={})
    for sentence in (on_clean(evidence), on_stamped(evidence)):
        assert "In these 8 networks overconfidence changed by" in sentence
        assert "clearly" not in sentence


def test_the_baselines_error_with_a_dynamic_patch_stands_by_itself(trigger_evidence):
    rows = [
        replace(row, value=0.303)
        if (row.metric, row.finding) == ("baseline_ece_stamped", "dynamic-40") and row.statistic == "calibration"
        else row
        for row in all_estimates(TriggerPlan())
    ]
    sentence = on_stamped(trigger_evidence(rows=rows))
    assert "error was 0.040 with a fixed patch and 0.040 to 0.303 with" in sentence
    assert "0.303 with a dynamic patch, which is made from what the baseline is most sensitive to; that" in sentence


def test_a_run_that_stored_no_confidences_has_no_such_part(trigger_evidence):
    def keep(row):
        return "calibration" not in row.statistic and "overconfidence" not in row.metric

    assert calibration(trigger_evidence(keep=keep)) == ()
