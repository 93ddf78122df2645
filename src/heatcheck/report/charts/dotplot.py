"""Dot-and-interval plots: one row per finding or method; marks differ in shape as well as colour."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, grid_below
from heatcheck.report.numbers import Unit, interval, number

WIDTH = 330.0
_MARGIN = 10.0
_OFFSETS = {1: (0.0,), 2: (-5.0, 5.0)}


@dataclass(frozen=True, slots=True)
class Mark:
    """One value with its interval; `kind` picks the shape.

    A method is a disc, a human a diamond, a floor a tick, a published value a cross; a picture that is graded like a
    method but made without the model is a square, and a bar reaches from 0 to the value.
    """

    kind: str
    label: str
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class PlotRow:
    """A row's name, what stands to its right, and its marks."""

    label: str
    aside: str
    marks: tuple[Mark, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class DotPlot:
    """A plot before it is drawn; `limits` are shared by plots that are to be compared."""

    title: str
    axis_title: str
    rows: tuple[PlotRow, ...]
    unit: Unit
    limits: tuple[float, float]


def draw(plot: DotPlot) -> Markup:
    """The plot as inline SVG."""
    step = 43.0 if any(len(row.marks) > 1 for row in plot.rows) else 36.0
    bottom = 6 + step * len(plot.rows)
    axis = Axis(*plot.limits, _MARGIN, WIDTH - _MARGIN)
    parts = grid_below(axis, plot.unit, 4, bottom)
    for i, row in enumerate(plot.rows):
        parts += _row(row, axis, 6 + step * i, plot.unit)
    parts.append(svg.words(WIDTH / 2, bottom + 33, plot.axis_title, "axis-title", "middle"))
    return svg.picture((WIDTH, bottom + 42), plot.title, description(plot), parts)


def description(plot: DotPlot) -> str:
    """Every number of the plot in words."""
    return " ".join(f"{row.label}: {_spoken(row.marks, plot.unit)}." for row in plot.rows)


def _spoken(marks: Sequence[Mark], unit: Unit) -> str:
    return "; ".join(_alt_text(mark, unit) for mark in marks) or "nothing to show"


def _alt_text(mark: Mark, unit: Unit) -> str:
    if math.isnan(mark.value):
        return f"{mark.label} undefined"
    between = interval(mark.low, mark.high, unit)
    return f"{mark.label} {number(mark.value, unit)}" + (f" ({between})" if between else "")


def _row(row: PlotRow, axis: Axis, top: float, unit: Unit) -> list[Markup]:
    room = int((WIDTH - 2 * _MARGIN - 6.4 * len(row.aside)) / 7)  # about 7 units a letter of a wide typeface
    band = " in-band" if row.strong else ""
    label = svg.words(_MARGIN, top + 13, svg.shortened(row.label, room), f"row-label{band}")
    parts = [svg.group(row.label, label), svg.words(WIDTH - _MARGIN, top + 13, row.aside, f"aside{band}", "end")]
    middle = top + (28 if len(row.marks) > 1 else 23)
    if row.strong:
        parts.insert(0, svg.tag("rect", x=0, y=top, width=WIDTH, height=41, rx=4, class_="band"))
    shown = [mark for mark in row.marks if not math.isnan(mark.value)]
    if not shown:
        return [*parts, svg.words(_MARGIN, middle + 4, "undefined", "aside")]
    pointed = [mark for mark in shown if mark.kind not in {"floor", "published"} or len(row.marks) == 1]
    offsets = _OFFSETS.get(len(pointed), tuple(5.0 * i for i in range(len(pointed))))
    others = [mark for mark in shown if mark not in pointed]
    parts += [_tick(mark, axis, middle, unit) for mark in others if mark.kind == "floor"]
    parts += [_point(mark, axis, middle + y, unit) for mark, y in zip(pointed, offsets, strict=True)]
    last_offset = middle + (offsets[-1] if pointed else 0.0)
    return parts + [_cross(mark, axis, last_offset, unit) for mark in others if mark.kind == "published"]


def _tick(mark: Mark, axis: Axis, y: float, unit: Unit) -> Markup:
    x = axis.at(mark.value)
    return svg.group(_alt_text(mark, unit), svg.line(x, y - 8, x, y + 8, "floor-tick"))


def _cross(mark: Mark, axis: Axis, y: float, unit: Unit) -> Markup:
    x = axis.at(mark.value)
    strokes = (
        svg.line(x - 4, y - 4, x + 4, y + 4, "published-mark"),
        svg.line(x - 4, y + 4, x + 4, y - 4, "published-mark"),
    )
    return svg.group(_alt_text(mark, unit), *strokes)


def _point(mark: Mark, axis: Axis, y: float, unit: Unit) -> Markup:
    x = axis.at(mark.value)
    parts = []
    if not math.isnan(mark.low) and not math.isnan(mark.high):
        parts.append(svg.line(axis.at(mark.low), y, axis.at(mark.high), y, f"whisker {mark.kind}"))
    shapes = {
        "human": svg.diamond(x, y, 5.2, "point human"),
        "floor": svg.line(x, y - 6, x, y + 6, "floor-tick"),
        "picture": svg.square(x, y, 3.6, "point family-floor"),
    }
    shape = shapes.get(mark.kind) or svg.circle(x, y, 4.2, "point method")
    return svg.group(_alt_text(mark, unit), *([_bar(mark, axis, y), *parts] if mark.kind == "bar" else [*parts, shape]))


def _bar(mark: Mark, axis: Axis, y: float) -> Markup:
    start, end = sorted((axis.at(0), axis.at(mark.value)))
    return svg.tag("rect", x=start, y=y - 5, width=max(end - start, 0.8), height=10, class_="bar")
