"""Where the heat goes: how each method shares it between the modalities, and how much of it lies on the lesion."""

import math
from collections.abc import Mapping

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, SHARE, interval, number
from heatcheck.studies.modality.report.facts import estimate, manifest, phi, primary_game
from heatcheck.studies.modality.report.sections.comparison import sorted_by_msfi
from heatcheck.studies.modality.vocabulary import EVERY_FOLD, PHI_MODALITY

_PERCENT = SHARE.rounded(0)
ASIDES = {"modality_sum": "of all heat", "inside_share": "in its lesion"}


def heat(evidence: Evidence) -> Mapping[str, object] | None:
    """The content of the section on heat; None when the run has no such means."""
    table = _table(evidence)
    return {"table": table, "has_network": len(table.groups) > 1} if table else None


def _table(evidence: Evidence) -> Matrix | None:
    """One row per method and one column per modality, darker with more heat; the network's own shares come first."""
    names, notes, rows = manifest(evidence).modalities, Footnotes(), []
    for method in sorted_by_msfi(evidence):
        means = [_mean(evidence, metric, method.name, name) for metric in ASIDES for name in names]
        if any(means):
            rows.append(Row(method, tuple(_cell(mean, notes) for mean in means)))
    if not rows:
        return None
    network = _network(evidence)
    groups = (*((("The network", (network,)),) if network else ()), ("Methods", tuple(rows)))
    columns = tuple(Column(name, aside) for aside in ASIDES.values() for name in names)
    return Matrix("Where each method puts its heat, mean over cases", columns, groups, tuple(notes.reasons))


def _mean(evidence: Evidence, metric: str, method: str, modality: str) -> Estimate | None:
    return estimate(evidence, MEAN, metric, {"fold": EVERY_FOLD, "modality": modality}, method)


def _cell(row: Estimate | None, notes: Footnotes) -> Cell:
    if row is None or math.isnan(row.value):
        why = (row.reason if row else "") or "not computed in this run"
        return Cell(MISSING, title=why, note=notes.mark(why))
    between = interval(row.low, row.high, _PERCENT)
    return Cell(number(row.value, _PERCENT), title=f"95 % interval {between}" if between else "", tint=row.value)


def _network(evidence: Evidence) -> Row | None:
    """Each modality's share of the importances above 0: where heat should go."""
    game, names = primary_game(evidence, PHI_MODALITY), manifest(evidence).modalities
    rows = [phi(evidence, game, name) for name in names]
    values = [max(0.0, row.value) if row and not math.isnan(row.value) else 0.0 for row in rows]
    if not sum(values):
        return None
    shares = [value / sum(values) for value in values]
    title = "the modality\u2019s importance (φ above 0) as a share of all"
    cells = [Cell(number(share, _PERCENT), title=title, tint=share) for share in shares]
    return labelled("Importance, as shares", [*cells, *(Cell("") for _ in names)])
