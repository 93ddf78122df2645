"""Plots of detection: each method's dot with its interval, and a tick where random boxes of its own size would be."""

import math
from collections.abc import Sequence
from dataclasses import replace

from heatcheck.report.charts import legend
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.dotplot import DotPlot, Mark, PlotRow, draw
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SHARE, number
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import TriggerRecord
from heatcheck.studies.triggers.report.tables import EVERY, TriggerColumn
from heatcheck.studies.triggers.vocabulary import floor_of

RANDOM_BOXES = "random boxes of the same size"
METHOD = replace(
    legend.METHOD, meaning=f"{legend.METHOD.meaning}; box: how much of the image its boxes cover on average"
)
FLOOR = "floor, a map made without the model, such as noise (Random), with boxes of its own"


def overall(evidence: Evidence, metric: str) -> Panel | None:
    """One metric over all triggers, headed by its name; None where nothing was estimated."""
    panels = by_trigger(evidence, metric, (EVERY,))
    return Panel(evidence.metrics[metric].label, panels[0].plot) if panels else None


def by_trigger(evidence: Evidence, metric: str, triggers: Sequence[TriggerRecord], kind: str = "method") -> list[Panel]:
    """One panel per trigger, on one scale; `kind` is the shape of a method's mark."""
    if metric not in evidence.metrics:
        return []
    drawn = {trigger: _rows(TriggerColumn(evidence, metric, trigger, trigger.label), kind) for trigger in triggers}
    drawn = {trigger: rows for trigger, rows in drawn.items() if rows}
    measure = evidence.metrics[metric]
    values = [v for rows in drawn.values() for row in rows for m in row.marks for v in (m.value, m.low, m.high)]
    limits = limits_around(values)
    return [
        Panel(
            t.label, draw(DotPlot(f"{measure.label}, {t.label}", measure.axis_title, tuple(rows), measure.unit, limits))
        )
        for t, rows in drawn.items()
    ]


def keys(panels: Sequence[Panel], *marks: legend.Key) -> tuple[legend.Key, ...]:
    """What the marks of these plots stand for: `marks`, then those of floors and published figures that they have."""
    drawn = "".join(panel.plot for panel in panels)
    floors = (legend.floor_square(FLOOR),) if "family-floor" in drawn else ()
    published = (legend.published(literature.SOURCE),) if "published-mark" in drawn else ()
    return (*marks, *floors, *published)


def detection_keys(panels: Sequence[Panel]) -> tuple[legend.Key, ...]:
    """The key of plots with a dot per method beside random boxes."""
    return keys(panels, METHOD, legend.floor_tick(f"{RANDOM_BOXES} as that method\u2019s, at random places"))


def _rows(column: TriggerColumn, kind: str) -> list[PlotRow]:
    """Methods, best first, then floors."""
    sign = -1 if column.higher_is_better else 1

    def order(entrant: Entrant) -> tuple[bool, float]:
        row = column.estimate(entrant)
        value = row.value if row else math.nan
        return entrant.kind == "floor", math.inf if math.isnan(value) else sign * value

    entrants = sorted((*column.evidence.methods, *column.evidence.floors), key=order)
    return [_row(column, entrant, kind) for entrant in entrants if column.estimate(entrant)]


def _row(column: TriggerColumn, entrant: Entrant, kind: str) -> PlotRow:
    estimate = column.estimate(entrant)
    floor, area = (column.mean_of(metric, entrant) for metric in (floor_of(column.metric), "box_area"))
    is_floor = entrant.kind == "floor"
    marks = [] if math.isnan(floor) else [Mark("floor", RANDOM_BOXES, floor)]
    if estimate:
        shape = "picture" if is_floor and kind == "method" else kind
        marks.append(Mark(shape, entrant.label, estimate.value, estimate.low, estimate.high))
    own = literature.is_own_data(column.evidence)
    figure = literature.detection(column.metric, column.finding, entrant.name) if own else None
    if figure and estimate and not math.isnan(estimate.value):
        marks.append(Mark("published", f"published by {literature.SOURCE}", figure.value))
    label = f"{entrant.label} (floor)" if is_floor else entrant.label
    return PlotRow(label, "" if math.isnan(area) else f"box {number(area, SHARE)}", tuple(marks))
