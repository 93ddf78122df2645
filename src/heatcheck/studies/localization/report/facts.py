"""What several sections need: the manifest, the model the page is about, and the order of methods and columns."""

import math
from collections.abc import Sequence

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN, SELECTED
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Column, Matrix
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.studies.localization.vocabulary import BEST_PAIR, LocalizationManifest


def manifest(evidence: Evidence) -> LocalizationManifest:
    """The run's manifest as this study declares it."""
    return evidence.run.manifest_as(LocalizationManifest)


def speaks_of(evidence: Evidence) -> str:
    """The model that the page is about, and why that one; empty where the run has one model."""
    if len(evidence.models) < 2:
        return ""
    pairs = [facts for row, facts in evidence.rows(SELECTED) if row.metric == "iou"]
    is_chosen = any(facts.get("stage") == BEST_PAIR for facts in pairs)
    why = "chosen on the validation data for overlap" if is_chosen else "the first one named"
    return f"{evidence.models[0].label}, {why}"


def best_first(evidence: Evidence) -> list[Entrant]:
    """The methods by their mean overlap over all findings, highest first, undefined last."""

    def rank(entrant: Entrant) -> float:
        value = evidence.value(MEAN, "iou", ALL_FINDINGS, entrant.name)
        return math.inf if math.isnan(value) else -value

    return sorted(evidence.methods, key=rank)


def every_finding(evidence: Evidence) -> tuple[str, ...]:
    """All findings together, then each."""
    return ALL_FINDINGS, *evidence.findings


def finding_columns(names: Sequence[str]) -> tuple[Column, ...]:
    """A column for each finding; that of all findings together stands out."""
    return tuple(Column(name, main=name == ALL_FINDINGS) for name in names)


def footnotes_of(table: Matrix) -> Footnotes:
    """The table's footnotes, for more rows to add to."""
    return Footnotes({reason: number for number, reason in enumerate(table.notes, 1)})
