"""Small curves that share one scale: a score against a threshold, with the chosen value marked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, tick_label
from heatcheck.report.numbers import SCORE, Unit, number

_WIDTH, _HEIGHT = 190.0, 118.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 32.0, 8.0, 180.0, 84.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A finding's scores at each value tried, and the value that was chosen (NaN: none)."""

    title: str
    axis: str  # what was tried
    points: tuple[tuple[float, float], ...]
    chosen: float = math.nan
    floor: tuple[tuple[float, float], ...] = ()  # what chance would score at the same values
    unit: Unit = SCORE


def draw(curve: Curve, up: tuple[float, float]) -> Markup:
    """The curve as inline SVG; `up` are the limits of the score, shared by curves that are to be compared."""
    tried = [x for x, _ in curve.points]
    across = Axis(min(tried, default=0.0), max(tried, default=0.0), _LEFT, _RIGHT)
    height = Axis(*up, _BOTTOM, _TOP)
    parts = _grid(across, height, tried, curve.unit)
    parts += _floor(curve, across, height)
    shown = [(x, y) for x, y in curve.points if not math.isnan(y)]
    if shown:
        parts.append(svg.path([(across.at(x), height.at(y)) for x, y in shown], "curve"))
    for x, y in shown:
        chosen = x == curve.chosen
        mark = svg.circle(across.at(x), height.at(y), 2.2, "point method")
        text = f"{curve.axis} {x:g}: {number(y, curve.unit)}" + (", chosen" if chosen else "")
        parts.append(svg.group(text, _cross(across.at(x), height.at(y)) if chosen else mark))
    parts.append(svg.words((_LEFT + _RIGHT) / 2, _HEIGHT - 4, curve.axis, "axis-title", "middle"))
    return svg.picture((_WIDTH, _HEIGHT), curve.title, _alt_text(curve), parts)


def limits(curves: Sequence[Curve]) -> list[float]:
    """Every score of the curves, to lay an axis around."""
    return [y for curve in curves for _, y in (*curve.points, *curve.floor)]


def _grid(across: Axis, height: Axis, tried: Sequence[float], unit: Unit) -> list[Markup]:
    ends = (tried[0], tried[len(tried) // 2], tried[-1]) if len(tried) > 2 else tuple(tried)
    parts = [svg.line(_LEFT, height.at(t), _RIGHT, height.at(t), "grid") for t in height.ticks(3)]
    parts += [svg.words(_LEFT - 5, height.at(t) + 4, tick_label(t, unit), "tick", "end") for t in height.ticks(3)]
    return parts + [svg.words(across.at(t), _BOTTOM + 14, tick_label(t, SCORE), "tick", "middle") for t in ends]


def _floor(curve: Curve, across: Axis, height: Axis) -> list[Markup]:
    shown = [(across.at(x), height.at(y)) for x, y in curve.floor if not math.isnan(y)]
    text = "; ".join(f"{x:g}: {number(y, curve.unit)}" for x, y in curve.floor)
    return [svg.group(f"random boxes of the same size: {text}", svg.path(shown, "floor-line"))] if shown else []


def _cross(x: float, y: float) -> Markup:
    strokes = [svg.line(x - 5, y - 5, x + 5, y + 5, "chosen"), svg.line(x - 5, y + 5, x + 5, y - 5, "chosen")]
    return svg.tag("g", *strokes)


def _alt_text(curve: Curve) -> str:
    values = "; ".join(f"{x:g}: {number(y, curve.unit)}" for x, y in curve.points)
    return f"{curve.axis} and score: {values}." + ("" if math.isnan(curve.chosen) else f" Chosen: {curve.chosen:g}.")
