"""Tables of detection: methods down, triggers across, each cell with its random-box floor and its box area."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, grouped, labelled, with_best
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import MISSING, SHARE, Unit, number, spread
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import TriggerRecord, grading, triggers_of
from heatcheck.studies.triggers.vocabulary import CONTROL, floor_of

EVERY = TriggerRecord(ALL_FINDINGS, "All triggers")
SHORT = {
    "trigger_iou": "IoU",
    "trigger_mask_iou": "mask IoU",
    "overlap_difference": "OD",
    "recovered": "TDR",
    "box_area": "box area",
}
Estimates = dict[Entrant, list[Estimate | None]]  # by entrant, for each column


@dataclass(frozen=True, slots=True)
class TriggerColumn:
    """A column: one metric on one trigger, or over all of them, under one rule."""

    evidence: Evidence  # the run under that rule
    metric: str
    trigger: TriggerRecord
    heading: str
    aside: str = ""  # below the heading; the number of images where nothing else is said

    @property
    def finding(self) -> str:
        """The trigger's name in the run's tables."""
        return self.trigger.name

    @property
    def unit(self) -> Unit:
        """The unit of the metric."""
        return self.evidence.metrics[self.metric].unit

    @property
    def higher_is_better(self) -> bool:
        """Whether the metric's best is its highest."""
        return self.evidence.metrics[self.metric].higher_is_better

    def estimate(self, entrant: Entrant) -> Estimate | None:
        """The entrant's mean."""
        return self.evidence.find(MEAN, self.metric, self.finding, entrant.name)

    def mean_of(self, metric: str, entrant: Entrant) -> float:
        """The entrant's mean of another metric on the same trigger."""
        return self.evidence.value(MEAN, metric, self.finding, entrant.name)


def by_trigger(evidence: Evidence, metric: str, triggers: Sequence[TriggerRecord]) -> Matrix | None:
    """One metric, with a column per trigger; None where nothing was estimated."""
    if metric not in evidence.metrics or not triggers:
        return None
    columns = [TriggerColumn(evidence, metric, trigger, trigger.label) for trigger in triggers]
    return detection_table(evidence.metrics[metric].label, columns)


def dynamic_table(evidence: Evidence) -> Matrix | None:
    """Overlap, overlap difference and recovery of the dynamic triggers, as in the paper."""
    triggers = [trigger for trigger in triggers_of(evidence) if trigger.is_dynamic]
    sizes = [trigger.size for trigger in triggers]
    by_size = None not in sizes and len(set(sizes)) == len(sizes)
    columns = [
        TriggerColumn(
            evidence, metric, trigger, f"{f'{trigger.size} px' if by_size else trigger.label}: {SHORT[metric]}"
        )
        for trigger in triggers
        for metric in ("trigger_iou", "overlap_difference", "recovered")
        if metric in evidence.metrics
    ]
    return detection_table("Dynamic triggers, by size", columns) if columns else None


def detection_table(caption: str, columns: Sequence[TriggerColumn]) -> Matrix | None:
    """Methods and floors against these columns, best underlined, published rows below; None where all are empty."""
    evidence = columns[0].evidence
    entrants = (*evidence.methods, *evidence.floors)
    estimates: Estimates = {entrant: [column.estimate(entrant) for column in columns] for entrant in entrants}
    estimates = {entrant: row for entrant, row in estimates.items() if any(row)}
    if not estimates:
        return None
    notes = Footnotes()
    rows = [
        Row(entrant, tuple(_cell(column, entrant, notes) for column in columns))
        for entrant in sorted(estimates, key=_order(columns[0]))
    ]
    for highest in (True, False):
        chosen = [_is_merit(column) and column.higher_is_better == highest for column in columns]
        rows = _best(rows, estimates, chosen, highest=highest)
    heads = tuple(
        Column(
            column.heading,
            column.aside or _images(estimates, i),
            main=column.finding == ALL_FINDINGS and not column.aside,
        )
        for i, column in enumerate(columns)
    )
    table = Matrix(caption, heads, grouped(rows), tuple(notes.reasons))
    return with_rows(table, _published(columns, notes), notes, literature.SOURCE)


def _best(rows: list[Row], estimates: Estimates, chosen: Sequence[bool], *, highest: bool) -> list[Row]:
    """The rows with the best method of each chosen column in strong type."""
    marked = with_best(rows, estimates, highest=highest)
    return [
        replace(row, cells=tuple(m if yes else c for c, m, yes in zip(row.cells, strong.cells, chosen, strict=True)))
        for row, strong in zip(rows, marked, strict=True)
    ]


def _is_merit(column: TriggerColumn) -> bool:
    """Whether there is a best: neither a small nor a large box is good by itself."""
    return column.metric != "box_area"


def _order(first: TriggerColumn) -> Callable[[Entrant], float]:
    """The key that sorts entrants by the first column, best first."""
    sign = -1 if first.higher_is_better else 1

    def key(entrant: Entrant) -> float:
        row = first.estimate(entrant)
        return math.inf if row is None or math.isnan(row.value) else sign * row.value

    return key


def _cell(column: TriggerColumn, entrant: Entrant, notes: Footnotes) -> Cell:
    row = column.estimate(entrant)
    if row is None and column.finding != ALL_FINDINGS:
        summary = grading(column.evidence, column.finding)
        if summary.seeds and not summary.graded:
            why = f"not graded, {summary.why_not}"
            return Cell(MISSING, title=why, note=notes.mark(why))
    cell = cell_of(row, column.unit, notes)
    return cell if row is None or math.isnan(row.value) else replace(cell, outcome=_floor_and_area(column, entrant))


def _floor_and_area(column: TriggerColumn, entrant: Entrant) -> str:
    """The floor, the overlap on the baseline and the box's area: without them a score cannot be interpreted."""
    floor, area = (column.mean_of(metric, entrant) for metric in (floor_of(column.metric), "box_area"))
    parts = [] if math.isnan(floor) else [f"floor {number(floor, _brief(column.unit))}"]
    control = column.mean_of(CONTROL, entrant) if column.metric == "trigger_iou" else math.nan
    parts += [] if math.isnan(control) else [f"baseline {number(control, _brief(column.unit))}"]
    if column.metric != "box_area" and not math.isnan(area):
        parts.append(f"box {number(area, SHARE)}")
    return ", ".join(parts)


def _brief(unit: Unit) -> Unit:
    return unit if unit == SHARE else unit.rounded(unit.decimals - 1)


def _images(estimates: Estimates, column: int) -> str:
    counts = [row.n_cases for rows in estimates.values() if (row := rows[column]) and row.n_cases]
    return f"n {spread(counts)}" if counts else ""


def _published(columns: Sequence[TriggerColumn], notes: Footnotes) -> list[Row]:
    if not literature.is_own_data(columns[0].evidence):
        return []
    rows = []
    units = [column.unit if column.unit == SHARE else column.unit.rounded(4) for column in columns]
    for entrant in columns[0].evidence.methods:
        figures = [literature.detection(column.metric, column.finding, entrant.name) for column in columns]
        if any(figures):
            cells = [figure_cell(figure, unit, notes) for figure, unit in zip(figures, units, strict=True)]
            rows.append(labelled(entrant.label, cells, kind="published"))
    return rows
