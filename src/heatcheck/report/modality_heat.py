"""Where the heat goes: how each method shares it between the modalities, and how much of it lies on the lesion."""

import math
from collections.abc import Mapping

from heatcheck.core.records import Estimate
from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Cell, Column, Matrix, Row, labelled
from heatcheck.report.modality_comparison import sorted_by_msfi
from heatcheck.report.modality_facts import EVERY, estimate, game, modalities_of, phi
from heatcheck.report.numbers import MISSING, SHARE, interval, number

_PERCENT = SHARE.rounded(0)
CAPTIONS = {
    "modality_sum": "Share of a map\u2019s heat that each modality gets",
    "inside_share": "Share of that modality\u2019s heat that lies inside its lesion",
}


def heat(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on heat shows; None when the run has no such means."""
    tables = [table for metric in CAPTIONS if (table := _table(evidence, metric))]
    return {"tables": tables} if tables else None


def _table(evidence: Evidence, metric: str) -> Matrix | None:
    """Methods down, modalities across, deeper where more heat is; the network's own shares stand on top."""
    modalities, notes, rows = modalities_of(evidence), Footnotes(), []
    for method in sorted_by_msfi(evidence):
        found = [_mean(evidence, metric, method.name, name) for name in modalities]
        if any(found):
            rows.append(Row(method, tuple(_cell(row, notes) for row in found)))
    if not rows:
        return None
    groups = [("Methods", tuple(rows))]
    if metric == "modality_sum" and (own := _network(evidence)):
        groups.insert(0, ("The network", (own,)))
    columns = tuple(Column(name) for name in modalities)
    return Matrix(CAPTIONS[metric], columns, tuple(groups), tuple(notes.reasons))


def _mean(evidence: Evidence, metric: str, method: str, modality: str) -> Estimate | None:
    return estimate(evidence, ("mean", metric), {"fold": EVERY, "modality": modality}, method)


def _cell(row: Estimate | None, notes: Footnotes) -> Cell:
    if row is None or math.isnan(row.value):
        why = (row.reason if row else "") or "not computed in this run"
        return Cell(MISSING, title=why, note=notes.mark(why))
    between = interval(row.low, row.high, _PERCENT)
    return Cell(number(row.value, _PERCENT), title=f"95 % interval {between}" if between else "", tint=row.value)


def _network(evidence: Evidence) -> Row | None:
    """Each modality's share of the importances above 0: where heat should go."""
    played, names = game(evidence, "phi_modality"), modalities_of(evidence)
    found = [phi(evidence, played, name) for name in names]
    values = [max(0.0, row.value) if row and not math.isnan(row.value) else 0.0 for row in found]
    if not sum(values):
        return None
    shares = [value / sum(values) for value in values]
    title = "the modality\u2019s importance (φ above 0) as a share of all"
    return labelled("Importance, as shares", [Cell(number(s, _PERCENT), title=title, tint=s) for s in shares])
