"""Tables of detection: methods down, triggers across, each cell with its random-box floor and its box area."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Cell, Column, Matrix, Row, cell_of, grouped, labelled, with_best
from heatcheck.report.numbers import MISSING, SHARE, Unit, number, spread
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import TriggerRecord, grading, triggers_of
from heatcheck.studies.triggers.vocabulary import floor_of

EVERY = TriggerRecord(ALL_FINDINGS, "All triggers")
SHORT = {
    "trigger_iou": "IoU",
    "trigger_mask_iou": "mask IoU",
    "overlap_difference": "OD",
    "recovered": "TDR",
    "box_area": "box area",
}
Found = dict[Entrant, list[Estimate | None]]


@dataclass(frozen=True, slots=True)
class TriggerColumn:
    """A column: one metric on one trigger, or over all of them, under one rule."""

    seen: Evidence  # the run under that rule
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
        """The metric's."""
        return self.seen.measures[self.metric].unit

    @property
    def higher_is_better(self) -> bool:
        """Whether the metric's best is its highest."""
        return self.seen.measures[self.metric].higher_is_better

    def of(self, entrant: Entrant) -> Estimate | None:
        """The entrant's mean."""
        return self.seen.find(MEAN, self.metric, self.finding, entrant.name)

    def beside(self, entrant: Entrant, metric: str) -> float:
        """Another metric's mean at the same place."""
        return self.seen.value(MEAN, metric, self.finding, entrant.name)


def by_trigger(evidence: Evidence, metric: str, triggers: Sequence[TriggerRecord]) -> Matrix | None:
    """One metric on these triggers; None where nothing was estimated."""
    if metric not in evidence.measures or not triggers:
        return None
    places = [TriggerColumn(evidence, metric, trigger, trigger.label) for trigger in triggers]
    return detection_table(evidence.measures[metric].label, places)


def dynamic_table(evidence: Evidence) -> Matrix | None:
    """Overlap, overlap difference and recovery of the triggers that the model's own gradient draws, as published."""
    triggers = [trigger for trigger in triggers_of(evidence) if trigger.is_dynamic]
    sizes = [trigger.size for trigger in triggers]
    by_size = None not in sizes and len(set(sizes)) == len(sizes)
    places = [
        TriggerColumn(
            evidence, metric, trigger, f"{f'{trigger.size} px' if by_size else trigger.label}: {SHORT[metric]}"
        )
        for trigger in triggers
        for metric in ("trigger_iou", "overlap_difference", "recovered")
        if metric in evidence.measures
    ]
    return detection_table("Dynamic triggers, by size", places) if places else None


def detection_table(caption: str, places: Sequence[TriggerColumn]) -> Matrix | None:
    """Methods and floors against these columns, best underlined, published rows below; None where nothing was made."""
    evidence = places[0].seen
    found: Found = {e: [place.of(e) for place in places] for e in (*evidence.methods, *evidence.floors)}
    found = {entrant: row for entrant, row in found.items() if any(row)}
    if not found:
        return None
    notes = Footnotes()
    rows = [
        Row(entrant, tuple(_cell(place, entrant, notes) for place in places))
        for entrant in sorted(found, key=_order(places[0]))
    ]
    for highest in (True, False):
        rows = _best(
            rows, found, [_is_merit(place) and place.higher_is_better == highest for place in places], highest=highest
        )
    columns = tuple(
        Column(place.heading, place.aside or _images(found, i), main=place.finding == ALL_FINDINGS and not place.aside)
        for i, place in enumerate(places)
    )
    table = Matrix(caption, columns, grouped(rows), tuple(notes.reasons))
    return with_rows(table, _published(places, notes), notes, literature.SOURCE)


def _best(rows: list[Row], found: Found, chosen: Sequence[bool], *, highest: bool) -> list[Row]:
    """The rows with the best method of each chosen column in strong type."""
    marked = with_best(rows, found, highest=highest)
    return [
        replace(row, cells=tuple(m if yes else c for c, m, yes in zip(row.cells, strong.cells, chosen, strict=True)))
        for row, strong in zip(rows, marked, strict=True)
    ]


def _is_merit(place: TriggerColumn) -> bool:
    """Whether there is a best: neither a small nor a large box is good by itself."""
    return place.metric != "box_area"


def _order(first: TriggerColumn) -> Callable[[Entrant], float]:
    """Best first by the first column."""
    sign = -1 if first.higher_is_better else 1

    def place(entrant: Entrant) -> float:
        row = first.of(entrant)
        return math.inf if row is None or math.isnan(row.value) else sign * row.value

    return place


def _cell(place: TriggerColumn, entrant: Entrant, notes: Footnotes) -> Cell:
    row = place.of(entrant)
    if row is None and place.finding != ALL_FINDINGS:
        made = grading(place.seen, place.finding)
        if made.seeds and not made.graded:
            why = f"not graded, {made.why_not}"
            return Cell(MISSING, title=why, note=notes.mark(why))
    cell = cell_of(row, place.unit, notes)
    return cell if row is None or math.isnan(row.value) else replace(cell, outcome=told_beside(place, entrant))


def told_beside(place: TriggerColumn, entrant: Entrant) -> str:
    """The random-box floor of the same number, and the box's area: without them neither overlap nor recovery speaks."""
    floor, area = (place.beside(entrant, metric) for metric in (floor_of(place.metric), "box_area"))
    told = [] if math.isnan(floor) else [f"floor {number(floor, _brief(place.unit))}"]
    if place.metric != "box_area" and not math.isnan(area):
        told.append(f"box {number(area, SHARE)}")
    return ", ".join(told)


def _brief(unit: Unit) -> Unit:
    return unit if unit == SHARE else unit.rounded(unit.decimals - 1)


def _images(found: Found, column: int) -> str:
    counts = [row.n_cases for rows in found.values() if (row := rows[column]) and row.n_cases]
    return f"n {spread(counts)}" if counts else ""


def _published(places: Sequence[TriggerColumn], notes: Footnotes) -> list[Row]:
    rows = []
    units = [place.unit if place.unit == SHARE else place.unit.rounded(4) for place in places]
    for entrant in places[0].seen.methods:
        figures = [literature.detection(place.metric, place.finding, entrant.name) for place in places]
        if any(figures):
            cells = [figure_cell(figure, unit, notes) for figure, unit in zip(figures, units, strict=True)]
            rows.append(labelled(entrant.label, cells, kind="published"))
    return rows
