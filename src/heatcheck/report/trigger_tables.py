"""Tables of detection: methods down, triggers across, each cell with its box area and its random-box floor."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.report import trigger_literature as literature
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Cell, Column, Matrix, Row, cell_of, grouped, labelled, with_best
from heatcheck.report.numbers import MISSING, SHARE, Unit, number, spread
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.report.trigger_facts import Trigger, grading, triggers_of
from heatcheck.report.words import plain

ALL_TRIGGERS = "All triggers"
Found = dict[Entrant, list[Estimate | None]]


@dataclass(frozen=True, slots=True)
class Place:
    """A column: one metric on one trigger, or over all of them."""

    metric: str
    trigger: Trigger
    heading: str

    @property
    def finding(self) -> str:
        """The trigger's name in the run's tables."""
        return self.trigger.name


EVERY = Trigger(ALL_FINDINGS, ALL_TRIGGERS)


def by_trigger(evidence: Evidence, metric: str, triggers: Sequence[Trigger]) -> Matrix | None:
    """One metric, all triggers first; None where nothing was estimated."""
    places = [Place(metric, trigger, trigger.label) for trigger in (EVERY, *triggers)]
    return detection_table(evidence, plain(evidence.measures[metric]).name, places)


def dynamic_table(evidence: Evidence) -> Matrix | None:
    """Overlap, overlap difference and recovery of the triggers that the model's own gradient draws, as published."""
    triggers = [trigger for trigger in triggers_of(evidence) if trigger.is_dynamic]
    metrics = [metric for metric in ("trigger_iou", "overlap_difference", "recovered") if metric in evidence.measures]
    short = {"trigger_iou": "IoU", "overlap_difference": "OD", "recovered": "TDR"}
    places = [Place(metric, trigger, f"{trigger.label}: {short[metric]}") for trigger in triggers for metric in metrics]
    return detection_table(evidence, "Dynamic triggers", places) if places else None


def detection_table(evidence: Evidence, caption: str, places: Sequence[Place]) -> Matrix | None:
    """Methods and floors against these columns, best underlined, published rows below; None where nothing was made."""
    entrants = (*evidence.methods, *evidence.floors)
    found: Found = {e: [evidence.find("mean", p.metric, p.finding, e.name) for p in places] for e in entrants}
    found = {entrant: row for entrant, row in found.items() if any(row)}
    if not found:
        return None
    notes = Footnotes()
    rows = [
        Row(entrant, tuple(_cell(evidence, place, entrant, notes) for place in places))
        for entrant in sorted(found, key=_order(evidence, places[0]))
    ]
    for better in (True, False):
        rows = _best(rows, found, [evidence.measures[p.metric].higher_is_better == better for p in places], better)
    columns = tuple(Column(p.heading, _images(found, i), p.finding == ALL_FINDINGS) for i, p in enumerate(places))
    table = Matrix(caption, columns, grouped(rows), tuple(notes.reasons))
    return with_rows(table, _published(evidence, places, notes), notes, literature.SOURCE)


def _best(rows: list[Row], found: Found, chosen: Sequence[bool], better: bool) -> list[Row]:
    """The rows with the best method of each chosen column in strong type."""
    marked = with_best(rows, found, highest=better)
    return [
        replace(row, cells=tuple(m if yes else c for c, m, yes in zip(row.cells, strong.cells, chosen, strict=True)))
        for row, strong in zip(rows, marked, strict=True)
    ]


def _order(evidence: Evidence, first: Place) -> Callable[[Entrant], float]:
    """Best first by the first column."""
    sign = -1 if evidence.measures[first.metric].higher_is_better else 1

    def place(entrant: Entrant) -> float:
        value = evidence.value("mean", first.metric, first.finding, entrant.name)
        return math.inf if math.isnan(value) else sign * value

    return place


def _cell(evidence: Evidence, place: Place, entrant: Entrant, notes: Footnotes) -> Cell:
    row = evidence.find("mean", place.metric, place.finding, entrant.name)
    if row is None and place.finding != ALL_FINDINGS:
        made = grading(evidence, place.finding)
        if made.seeds and not made.graded:
            why = f"not graded, {made.why_not}"
            return Cell(MISSING, title=why, note=notes.mark(why))
    cell = cell_of(row, plain(evidence.measures[place.metric]).unit, notes)
    return cell if row is None or math.isnan(row.value) else replace(cell, outcome=beside(evidence, place, entrant))


def beside(evidence: Evidence, place: Place, entrant: Entrant) -> str:
    """The random-box floor of the same number, and the box's area: without them neither overlap nor recovery speaks."""
    floor = evidence.value("mean", f"{place.metric}_floor", place.finding, entrant.name)
    area = evidence.value("mean", "box_area", place.finding, entrant.name)
    unit = _brief(plain(evidence.measures[place.metric]).unit)
    told = [] if math.isnan(floor) else [f"floor {number(floor, unit)}"]
    if place.metric != "box_area" and not math.isnan(area):
        told.append(f"box {number(area, SHARE)}")
    return ", ".join(told)


def _brief(unit: Unit) -> Unit:
    return unit if unit == SHARE else unit.rounded(unit.decimals - 1)


def _images(found: Found, column: int) -> str:
    counts = [row.n_cases for rows in found.values() if (row := rows[column]) and row.n_cases]
    return f"n {spread(counts)}" if counts else ""


def _published(evidence: Evidence, places: Sequence[Place], notes: Footnotes) -> list[Row]:
    rows = []
    for entrant in evidence.methods:
        figures = [literature.detection(place.metric, place.finding, entrant.name) for place in places]
        if any(figures):
            units = [plain(evidence.measures[place.metric]).unit for place in places]
            units = [unit if unit == SHARE else unit.rounded(4) for unit in units]
            cells = [figure_cell(figure, unit, notes) for figure, unit in zip(figures, units, strict=True)]
            rows.append(labelled(entrant.label, cells, kind="published"))
    return rows
