"""Swarm and box plots: every case is a dot, coloured by its group; the box holds the middle half, × is the mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, grid_below
from heatcheck.report.numbers import SCORE, Unit, number

WIDTH = 384.0
_MARGIN, _TOP, _STEP = 12.0, 20.0, 44.0
_BAND = 26.0  # how high the dots of one row may be stacked
_DOTS = {100: 3.8, 250: 3.0}  # widths of a dot where a row has at most so many
_SMALL = 2.4
_COLOURS = 6


@dataclass(frozen=True, slots=True)
class SwarmRow:
    """A method's values, each with its group; a row without values says why."""

    label: str
    values: tuple[tuple[int, float], ...]
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Swarm:
    """A plot before it is drawn; `floor` is the value that every method should beat, with its name."""

    title: str
    axis_title: str
    rows: tuple[SwarmRow, ...]
    limits: tuple[float, float]
    floor: tuple[float, str] | None = None
    unit: Unit = SCORE


def draw(plot: Swarm) -> Markup:
    """The plot as inline SVG."""
    axis = Axis(*plot.limits, _MARGIN, WIDTH - _MARGIN)
    bottom = _TOP + _STEP * len(plot.rows)
    parts = grid_below(axis, plot.unit, _TOP - 4, bottom)
    if plot.floor:
        parts += _floor(plot.floor, axis, bottom, plot.unit)
    most = max((len(row.values) for row in plot.rows), default=0)
    dot = next((width for cases, width in _DOTS.items() if most <= cases), _SMALL)
    for i, row in enumerate(plot.rows):
        parts += _row(row, axis, _TOP + _STEP * i, plot.unit, dot)
    parts.append(svg.words(WIDTH / 2, bottom + 33, plot.axis_title, "axis-title", "middle"))
    text = " ".join(f"{row.label}: {_alt_text(row, plot.unit)}." for row in plot.rows)
    return svg.picture((WIDTH, bottom + 42), plot.title, text, parts)


def colour(group: int) -> str:
    """The CSS class of a group's colour; groups are counted from 1."""
    return f"family{(group - 1) % _COLOURS}"


def _floor(floor: tuple[float, str], axis: Axis, bottom: float, unit: Unit) -> list[Markup]:
    value, name = floor
    x, text = axis.at(value), f"{name} {number(value, unit)}" if value else name
    anchor = "start" if x < WIDTH / 2 else "end"
    line = svg.line(x, _TOP - 6, x, bottom, "floor-line")
    return [svg.group(text, line), svg.words(x + (3 if anchor == "start" else -3), _TOP - 9, text, "tick", anchor)]


def _row(row: SwarmRow, axis: Axis, top: float, unit: Unit, dot: float) -> list[Markup]:
    label = svg.words(_MARGIN, top + 11, svg.shortened(row.label, 34), "row-label")
    if not row.values:
        return [svg.group(f"{row.label}: {row.instead}", label), svg.words(_MARGIN, top + 29, row.instead, "aside")]
    middle = top + 15 + _BAND / 2
    values = [value for _, value in row.values]
    low, median, high = (axis.at(float(q)) for q in np.quantile(values, [0.25, 0.5, 0.75]))
    box = svg.tag("rect", x=low, y=middle - 11, width=max(high - low, 0.8), height=22, class_="half-box")
    x = axis.at(float(np.mean(values)))
    marks = [
        svg.line(median, middle - 11, median, middle + 11, "median"),
        svg.path([(x - 4, middle - 4), (x + 4, middle + 4)], "mean-mark"),
        svg.path([(x - 4, middle + 4), (x + 4, middle - 4)], "mean-mark"),
    ]
    aside = svg.words(
        WIDTH - _MARGIN, top + 11, f"{number(float(np.mean(values)), unit)}, n {len(values):,}", "aside", "end"
    )
    titled = svg.group(f"{row.label}: {_alt_text(row, unit)}", label, box)
    return [titled, *_dots(row, axis, middle, dot), *marks, aside]


def _dots(row: SwarmRow, axis: Axis, middle: float, dot: float) -> list[Markup]:
    """The dots of each group, pushed up and down so that as few as possible hide each other."""
    positions: dict[int, list[tuple[float, float]]] = {}
    for group, x, y in stacked([(group, axis.at(value)) for group, value in row.values], dot):
        positions.setdefault(group, []).append((x, middle + y))
    return [
        svg.tag(
            "g",
            svg.dots(positions[group], f"dots {colour(group)}"),
            class_="swarm",
            style=f"stroke-width: {dot - 0.2:.1f}",
        )
        for group in sorted(positions)
    ]


def stacked(placed: Sequence[tuple[int, float]], dot: float) -> list[tuple[int, float, float]]:
    """Group, position along the axis and distance from it; dots that would overlap are stacked to both sides."""
    bins: dict[int, list[tuple[float, int]]] = {}
    for group, x in placed:
        bins.setdefault(round(x / dot), []).append((x, group))
    dots = []
    for members in bins.values():
        step = min(dot, _BAND / len(members))
        ordered = sorted(members, key=lambda member: member[1])
        start = -step * (len(ordered) - 1) / 2
        dots += [(group, x, start + step * i) for i, (x, group) in enumerate(ordered)]
    return dots


def _alt_text(row: SwarmRow, unit: Unit) -> str:
    if not row.values:
        return row.instead
    values = [value for _, value in row.values]
    low, median, high = (number(float(q), unit) for q in np.quantile(values, [0.25, 0.5, 0.75]))
    return (
        f"mean {number(float(np.mean(values)), unit)}, median {median}, middle half {low} to {high}, n {len(values):,}"
    )


def legend(groups: Sequence[int], name: str) -> Mapping[str, str]:
    """The CSS class of every group's colour, by the group's name."""
    return {f"{name} {group}": colour(group) for group in groups}
