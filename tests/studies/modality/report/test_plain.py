"""The importances to networks from which nothing was hidden: shown beside the others, and said as they are judged."""

import math
from dataclasses import replace

import pytest
from tests.studies.modality.report.block_reading import words_of
from tests.studies.modality.report.made_estimates import MODEL, all_estimates
from tests.studies.modality.report.material import ModalityPlan

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.studies.modality.report.sections.importance import importance
from heatcheck.studies.modality.report.sections.plain import plain_networks, plain_sentence, plain_table

MODALITIES = ("T1", "T1C", "T2", "FLAIR")
PHI = {"T1": 0.004, "T1C": 0.31, "T2": -0.006, "FLAIR": 0.11}


def plain(differences, reach):
    """Importances to the plain networks, and the differences by which those to the others are higher."""
    rows = []
    for name, difference in zip(MODALITIES, differences, strict=True):
        text = condition(filled="zero", fold="all", measure="balanced", modality=name)
        values = {"shapley_plain": PHI[name] - difference, "shapley_less_plain": difference}
        rows += [
            Estimate(statistic, "phi_modality", ALL_FINDINGS, "", MODEL, value, value - reach, value + reach,
                     condition=text, size=0.05)
            for statistic, value in values.items()
        ]  # fmt: skip
    return rows


def evidence_with(modality_evidence, rows, folds=2):
    plan = {"folds": folds, "cases": 20}
    facts = {"plain": "the same networks, trained here without hiding modalities"}
    return modality_evidence(**plan, rows=[*all_estimates(ModalityPlan(**plan)), *rows], facts=facts)


def said_of(modality_evidence, rows, folds=2):
    return plain_sentence(evidence_with(modality_evidence, rows, folds))


def test_both_readings_and_their_difference_stand_side_by_side(modality_evidence):
    evidence = evidence_with(modality_evidence, plain((0, 0.2, 0, -0.1), 0.04))
    assert plain_sentence(evidence) == (
        "To the networks from which nothing was hidden, T1C (φ 0.110 instead of 0.306) is clearly less important and "
        "FLAIR (φ 0.210 instead of 0.114) is clearly more important."
    )
    ((_, rows),) = plain_table(evidence).groups
    cells = {row.entrant.label: [cell.text for cell in row.cells] for row in rows}
    assert cells["T1C"][1:] == ["0.110", "+0.200"]
    assert cells["T1C"][0] == "0.306"
    outcomes = {row.entrant.label: row.cells[2].outcome for row in rows}
    assert outcomes == {"T1": "no difference that matters", "T1C": "✓ clearly higher",
                        "T2": "no difference that matters", "FLAIR": "✕ clearly lower"}  # fmt: skip
    assert "Nothing hidden: the same networks, trained here" in words_of(importance(evidence))


def test_one_training_of_each_speaks_of_these_two_networks(modality_evidence):
    said = said_of(modality_evidence, plain((0, 0.2, 0, 0), 0.04), folds=1)
    assert said.startswith("To the network from which nothing was hidden, T1C")
    assert said.endswith("With one training of each, this is said of the two networks, not of hiding modalities.")


@pytest.mark.parametrize(("reach", "end"), [(0.01, "important by a size that matters."), (0.2, "hidden is not shown.")])
def test_no_difference_and_one_that_is_not_shown_are_told_apart(modality_evidence, reach, end):
    assert said_of(modality_evidence, plain((0, 0, 0, 0), reach)).endswith(end)


def test_what_is_undefined_says_why_and_a_run_with_one_reading_has_no_table(modality_evidence):
    lacking = "no case of LGG"
    rows = [
        replace(row, value=math.nan, low=math.nan, high=math.nan, reason=lacking) for row in plain((0, 0, 0, 0), 0.1)
    ]
    assert said_of(modality_evidence, rows).endswith(f"cannot be said: {lacking}.")
    assert plain_networks(evidence_with(modality_evidence, [])) == ()
