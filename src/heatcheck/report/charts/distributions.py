"""How values are spread: one row per finding or method, with median, middle half and the range of nine in ten."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, Scale, SecondsAxis, grid_below, limits_around
from heatcheck.report.numbers import SECONDS, Unit

_WIDTH, _MARGIN, _STEP = 330.0, 10.0, 30.0


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Five quantiles of one row's values, and how many there are."""

    label: str
    quantiles: tuple[float, float, float, float, float]  # 5, 25, 50, 75 and 95 in a hundred
    cases: int


def spread_of(label: str, values: Sequence[float]) -> Quantiles | None:
    """The spread of the defined values; None when there is none."""
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return None
    low, lower, middle, upper, high = (float(q) for q in np.quantile(defined, [0.05, 0.25, 0.5, 0.75, 0.95]))
    return Quantiles(label, (low, lower, middle, upper, high), len(defined))


def draw(title: str, spreads: Sequence[Quantiles], unit: Unit, by: str = "finding") -> Markup:
    """The rows as inline SVG on one axis; `by` says what a row is."""
    limits = limits_around([spread.quantiles[-1] for spread in spreads])
    return _drawn(f"{title} by {by}", title, spreads, unit, Axis(*limits, _MARGIN, _WIDTH - _MARGIN))


def draw_seconds(title: str, spreads: Sequence[Quantiles], by: str) -> Markup:
    """Lengths of time as inline SVG, on a logarithmic axis."""
    ends = [value for spread in spreads for value in (spread.quantiles[0], spread.quantiles[-1])]
    axis = SecondsAxis.around(ends, _MARGIN + 10, _WIDTH - _MARGIN - 10)
    return _drawn(f"{title} by {by}", title, spreads, SECONDS, axis)


def _drawn(name: str, title: str, spreads: Sequence[Quantiles], unit: Unit, axis: Scale) -> Markup:
    bottom = 6 + _STEP * len(spreads)
    parts = grid_below(axis, unit, 4, bottom)
    for i, spread in enumerate(spreads):
        parts += _row(spread, axis, 6 + _STEP * i, unit)
    parts.append(svg.words(_WIDTH / 2, bottom + 33, title, "axis-title", "middle"))
    text = " ".join(f"{spread.label}: {_alt_text(spread, axis, unit)}." for spread in spreads)
    return svg.picture((_WIDTH, bottom + 42), name, text, parts)


def _row(spread: Quantiles, axis: Scale, top: float, unit: Unit) -> list[Markup]:
    low, lower, middle, upper, high = (axis.at(value) for value in spread.quantiles)
    y = top + 20
    box = svg.tag("rect", x=lower, y=y - 4, width=max(upper - lower, 0.5), height=8, class_="middle-half")
    marks = (svg.line(low, y, high, y, "reach"), box, svg.line(middle, y - 6, middle, y + 6, "median"))
    aside = svg.words(_WIDTH - _MARGIN, top + 11, f"n {spread.cases:,}", "aside", "end")
    label = svg.words(_MARGIN, top + 11, svg.shortened(spread.label, 34), "row-label")
    return [svg.group(f"{spread.label}: {_alt_text(spread, axis, unit)}", label, *marks), aside]


def _alt_text(spread: Quantiles, axis: Scale, unit: Unit) -> str:
    names: Mapping[str, float] = dict(zip(("5 %", "25 %", "median", "75 %", "95 %"), spread.quantiles, strict=True))
    return ", ".join(f"{name} {axis.text(value, unit)}" for name, value in names.items())
