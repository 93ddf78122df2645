"""The localization study's plots: methods ranked over all findings, and each method against the readers by finding."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import AUROC, DIFFERENCE, MEAN, PERCENT_DECREASE
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.dotplot import DotPlot, Mark, PlotRow, draw
from heatcheck.report.charts.panels import Panel, PanelGroup
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, count, interval, number
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.standing import standing_on


@dataclass(frozen=True, slots=True)
class Shown:
    """How many of the highest methods and floors a plot shows; None for all."""

    methods: int | None = None
    floors: int | None = None


EVERYTHING = Shown()


def ranking(evidence: Evidence, metric: str, shown: Shown = EVERYTHING) -> Panel | None:
    """Readers, methods and floors over all findings, highest first."""
    groups = {
        kind: _highest_first(group, evidence, metric)
        for kind, group in (("", (evidence.readers,)), ("method", evidence.methods), ("floor", evidence.floors))
    }
    most = {"method": shown.methods, "floor": shown.floors}
    kept = {kind: scored[: most.get(kind)] for kind, scored in groups.items()}
    ranked = sorted((each for scored in kept.values() for each in scored), key=_lowness)
    if not ranked:
        return None
    rows = [_ranking_row(entrant, estimate, evidence, metric) for entrant, estimate in ranked]
    measure = evidence.metrics[metric]
    left_out = [
        f"{len(kept[kind])} of {count(len(scored), kind)}"
        for kind, scored in groups.items()
        if len(kept[kind]) < len(scored)
    ]
    heading = f"{measure.label}: the highest {' and '.join(left_out)}" if left_out else measure.label
    limits = limits_around(_values(rows))
    title = f"{measure.label}, mean over all findings, by method"
    return Panel(heading, draw(DotPlot(title, measure.axis_title, tuple(rows), measure.unit, limits)))


def against_readers(evidence: Evidence, metric: str, *, published: bool = False) -> PanelGroup | None:
    """One plot per method: its score and the readers' on every finding, with the highest floor as a tick.

    With `published`, a cross marks what the CheXlocalize paper printed for the same method and finding.
    """
    order = (ALL_FINDINGS, *_by_shortfall(evidence, metric))
    ranked = [entrant for entrant, _ in _highest_first(evidence.methods, evidence, metric)]
    best = [*ranked, *(m for m in evidence.methods if m not in ranked)]
    drawn = {m: [_finding_row(evidence, metric, m, finding) for finding in order] for m in best}
    drawn = {m: rows for m, rows in drawn.items() if _has_method(rows)}
    if published and literature.is_own_data(evidence):
        drawn = {m: [_with_published(row, metric, m.name) for row in rows] for m, rows in drawn.items()}
    if not drawn:
        return None
    measure = evidence.metrics[metric]
    limits = limits_around([value for rows in drawn.values() for value in _values(rows)])
    panels = []
    for method, rows in drawn.items():
        title = f"{measure.label} of {method.label} by finding"
        plot = DotPlot(title, measure.axis_title, tuple(rows), measure.unit, limits)
        panels.append(Panel(method.label, draw(plot)))
    return PanelGroup(measure.label, measure.summary, tuple(panels))


def _has_method(rows: Sequence[PlotRow]) -> bool:
    return any(mark.kind == "method" for row in rows for mark in row.marks)


def _with_published(row: PlotRow, metric: str, method: str) -> PlotRow:
    figure = None if row.strong else literature.localization(metric, row.label, method)
    if figure is None or not row.marks:
        return row
    return replace(row, marks=(*row.marks, Mark("published", f"published by {literature.SOURCE}", figure.value)))


def _highest_first(group: Sequence[Entrant], evidence: Evidence, metric: str) -> list[tuple[Entrant, Estimate]]:
    scored = [(e, row) for e in group if (row := evidence.find(MEAN, metric, ALL_FINDINGS, e.name))]
    return sorted(scored, key=_lowness)


def _lowness(scored: tuple[Entrant, Estimate]) -> float:
    """Sorts the highest first and what has no value last."""
    value = scored[1].value
    return math.inf if math.isnan(value) else -value


def _ranking_row(entrant: Entrant, estimate: Estimate, evidence: Evidence, metric: str) -> PlotRow:
    unit = evidence.metrics[metric].unit
    between = interval(estimate.low, estimate.high, replace(unit, sign=""))
    aside = number(estimate.value, unit) + (f" ({between})" if between else "")
    label = f"{entrant.label} (floor)" if entrant.kind == "floor" else entrant.label
    return PlotRow(label, aside, (_mark(entrant.kind, entrant.label, estimate),))


def _finding_row(evidence: Evidence, metric: str, method: Entrant, finding: str) -> PlotRow:
    marks = []
    floors = [(row.value, f, row) for f in evidence.floors if (row := _mean(evidence, metric, finding, f.name))]
    if floors:
        _, floor, row = max(floors, key=lambda each: each[0])
        marks.append(Mark("floor", f"best floor ({floor.label})", row.value))
    for entrant in (evidence.readers, method):
        estimate = evidence.find(MEAN, metric, finding, entrant.name)
        if estimate:
            marks.append(_mark(entrant.kind, entrant.label, estimate))
    auroc = evidence.value(AUROC, "auroc", finding)
    aside = "" if math.isnan(auroc) else f"AUROC {number(auroc, SCORE.rounded(2))}"
    return PlotRow(finding, aside, tuple(marks), strong=finding == ALL_FINDINGS)


def _mean(evidence: Evidence, metric: str, finding: str, method: str) -> Estimate | None:
    row = evidence.find(MEAN, metric, finding, method)
    return None if row is None or math.isnan(row.value) else row


def _mark(kind: str, label: str, estimate: Estimate) -> Mark:
    return Mark(kind, label, estimate.value, estimate.low, estimate.high)


def _values(rows: Sequence[PlotRow]) -> list[float]:
    return [value for row in rows for mark in row.marks for value in (mark.value, mark.low, mark.high)]


def _by_shortfall(evidence: Evidence, metric: str) -> list[str]:
    """Findings where the leading method is clearly below the readers first, clearly above last, by shortfall within."""
    standing = standing_on(evidence, metric)
    if standing is None:
        return list(evidence.findings)
    name = standing.leader.name

    def key(finding: str) -> tuple[int, float]:
        difference = evidence.find(DIFFERENCE, metric, finding, name, HUMAN)
        if difference is None:
            value = evidence.value(MEAN, metric, finding, name)
            return 1, math.inf if math.isnan(value) else -value
        fall = evidence.value(PERCENT_DECREASE, metric, finding, name, HUMAN)
        fall = -difference.value if math.isnan(fall) else fall
        tier = 0 if opposite_of(difference).is_yes else 2 if judgement_of(difference).is_yes else 1
        return tier, math.inf if math.isnan(fall) else -fall

    return sorted(evidence.findings, key=key)
