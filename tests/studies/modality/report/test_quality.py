"""The section on where maps are better: its sentences follow the judgement of each slope."""

import math
from dataclasses import replace

from tests.studies.modality.report.made_estimates import MODEL, all_estimates
from tests.studies.modality.report.material import ModalityPlan

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import SLOPE, condition
from heatcheck.studies.modality.report.sections.quality import quality, sentences, slope_table

SMALL = {"folds": 2, "cases": 20}
FEW = "fewer than 6 patients with a wrong answer, or with a right one"


def sloped(feature, method, value, reach, size=0.05):
    text = condition(feature=feature)
    return Estimate(
        SLOPE, "msfi", ALL_FINDINGS, method, MODEL, value, value - reach, value + reach, condition=text, size=size
    )


def evidence_with(modality_evidence, *rows, **changes):
    plan = {**SMALL, **changes}
    return modality_evidence(**plan, rows=[*all_estimates(ModalityPlan(**plan)), *rows])


def test_sentences_say_with_what_maps_are_clearly_better_worse_or_neither(modality_evidence):
    evidence = evidence_with(
        modality_evidence,
        *(replace(sloped("correct", method, math.nan, math.nan), reason=FEW) for method in ("gradient", "grad_cam")),
        sloped("uncertainty", "gradient", -0.2, 0.1),
        sloped("uncertainty", "grad_cam", 0.3, 0.1),
        sloped("lesion_size", "gradient", 0.1, 0.2),
        sloped("lesion_size", "grad_cam", 0.02, 0.01),
        sloped("lesion_size", "uniform", 0.09, 0.02, size=math.nan),
    )
    answer, uncertainty, size, uniform = sentences(evidence)
    assert answer == f"Whether MSFI differs between right and wrong answers cannot be said: {FEW}."
    assert uncertainty.startswith(
        "MSFI is clearly higher where the network is uncertain with Grad-CAM; it is clearly lower"
    )
    assert uncertainty.endswith("where the network is uncertain with Gradient.")
    assert size == "That MSFI differs with the size of the lesion is not shown of any of 2 methods."
    assert "the MSFI of a uniform map changes by +0.090" in uniform
    cells = {row.entrant.name: row.cells for _, group in slope_table(evidence, "msfi").groups for row in group}
    assert [cell.text for cell in cells["gradient"]] == ["–", "−0.200", "+0.100"]
    assert cells["gradient"][1].outcome.startswith("✕ clearly lower")
    assert cells["uniform"][2].outcome == ""
    assert quality(evidence).summary == uncertainty


def test_a_change_too_small_to_matter_is_said_to_be_that_and_one_network_speaks_of_itself(modality_evidence):
    said = sentences(evidence_with(modality_evidence, sloped("lesion_size", "gradient", 0.0, 0.01), folds=1))
    assert (
        said[2] == "With no method does MSFI differ with the size of the lesion by a size that matters in this network."
    )


def test_a_run_without_such_slopes_has_no_such_section(modality_evidence):
    assert quality(modality_evidence(**SMALL)) is None
