"""How good the model's own answers are, finding by finding."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC
from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import Footnotes, explained
from heatcheck.report.matrix import Cell, interval_or_dash
from heatcheck.report.numbers import MISSING, SCORE, number
from heatcheck.runs.store import Run
from heatcheck.studies.localization.vocabulary import CALIBRATION


@dataclass(frozen=True, slots=True)
class ModelQuality:
    """The model's discrimination and calibration on one finding, as text."""

    finding: str
    auroc: Cell
    ece: Cell
    positives: str
    cases: str


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One row per finding the model was scored on, all findings first, with footnotes for what is undefined."""

    rows: tuple[ModelQuality, ...]
    notes: tuple[str, ...]


def model_card(evidence: Evidence) -> ModelCard:
    """The model's answers as a table."""
    made = {key[2] for key in evidence.estimates if key[0] in {AUROC, CALIBRATION}}
    findings = [finding for finding in (ALL_FINDINGS, *evidence.findings) if finding in made]
    positives, notes = positive_cases(evidence.run), Footnotes()
    rows = [_answers(evidence, finding, positives, notes) for finding in findings]
    return ModelCard(tuple(rows), tuple(notes.reasons))


def _answers(evidence: Evidence, finding: str, positives: Mapping[str, int], notes: Footnotes) -> ModelQuality:
    auroc = evidence.find(AUROC, "auroc", finding)
    ece = evidence.find(CALIBRATION, "ece", finding)
    counted = auroc or ece
    return ModelQuality(
        finding=finding,
        auroc=_cell(auroc, notes),
        ece=_cell(ece, notes),
        positives=f"{positives[finding]:,}" if finding in positives else MISSING,
        cases=f"{counted.n_cases:,}" if counted and counted.n_cases else MISSING,
    )


def _cell(estimate: Estimate | None, notes: Footnotes) -> Cell:
    if estimate is None:
        return Cell(MISSING)
    reason = explained(estimate)
    return Cell(number(estimate.value), interval_or_dash(estimate, SCORE), title=reason, note=notes.mark(reason))


def positive_cases(run: Run) -> dict[str, int]:
    """How many cases have each finding the model was asked for, counted without holding its answers."""
    counted: Counter[tuple[str, str]] = Counter()
    for answers in run.row_groups("predictions", ["finding", "model", "label"]):
        present = pc.equal(answers["label"], 1).cast("int64")
        by_model = answers.select(["finding", "model"]).append_column("present", present).group_by(["finding", "model"])
        sums = by_model.aggregate([("present", "sum")]).to_pydict()
        keys = zip(sums["finding"], sums["model"], strict=True)
        counted.update(dict(zip(keys, sums["present_sum"], strict=True)))
    found: dict[str, int] = {}
    for (finding, _), cases in counted.items():  # several models are asked about the same cases
        found[finding] = max(cases, found.get(finding, 0))
    return found
