"""Truth that is boxes: the overlap of regions with the boxes' area beside the overlap of boxes with boxes."""

from collections.abc import Mapping, Sequence

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import GROUPS, Column, Matrix, Row, cell_of
from heatcheck.studies.localization.report.facts import manifest
from heatcheck.studies.localization.vocabulary import BOXES

MEASURES = {"iou": "as areas", "box_iou": "as boxes"}


def box_tables(evidence: Evidence) -> Mapping[str, Matrix] | None:
    """Both overlaps side by side, over all findings and for each; None where the truth is no boxes."""
    if manifest(evidence).truth_kind != BOXES or not set(MEASURES) <= set(evidence.measures):
        return None
    overall = _table(evidence, (ALL_FINDINGS,))
    each = _table(evidence, evidence.findings)
    return {"overall": overall, "each": each} if overall and each else None


def _table(evidence: Evidence, findings: Sequence[str]) -> Matrix | None:
    """Entrants against findings, each finding scored as areas and as boxes."""
    notes, rows = Footnotes(), []
    for entrant in (READERS, *evidence.methods, *evidence.floors):
        found = [evidence.find(MEAN, metric, finding, entrant.name) for finding in findings for metric in MEASURES]
        if any(row and row.metric == "box_iou" for row in found):
            unit = evidence.measures["iou"].unit
            rows.append(Row(entrant, tuple(cell_of(row, unit, notes) for row in found)))
    if not rows:
        return None
    columns = tuple(Column(finding, told) for finding in findings for told in MEASURES.values())
    kinds = ((title, tuple(row for row in rows if row.entrant.kind == kind)) for kind, title in GROUPS.items())
    return Matrix("Overlap", columns, tuple((title, some) for title, some in kinds if some), tuple(notes.reasons))
