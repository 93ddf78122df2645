"""How values are spread: one row per finding or method, as letter values, or as median, middle half and nine in ten."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, Scale, SecondsAxis, grid_below, limits_around
from heatcheck.report.numbers import SECONDS, Unit

_WIDTH, _MARGIN, _STEP = 330.0, 10.0, 30.0


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Five quantiles and the letter values of one row's values, and how many there are."""

    label: str
    quantiles: tuple[float, float, float, float, float]  # 5, 25, 50, 75 and 95 in a hundred
    cases: int
    letters: tuple[tuple[float, float], ...] = ()  # with 1/4 of the cases beyond each of them, 1/8, 1/16, …


def spread_of(label: str, values: Sequence[float]) -> Quantiles | None:
    """The spread of the defined values; None when there is none."""
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return None
    low, lower, middle, upper, high = (float(q) for q in np.quantile(defined, [0.05, 0.25, 0.5, 0.75, 0.95]))
    return Quantiles(label, (low, lower, middle, upper, high), len(defined), _letter_values(defined))


def _letter_values(defined: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Pairs of quantiles, halving what lies beyond as long as the cases there can show it (Tukey's rule of depth)."""
    beyond = [0.5 ** (2 + i) for i in range(max(1, int(math.log2(len(defined))) - 2))]
    low, high = np.quantile(defined, beyond), np.quantile(defined, [1 - share for share in beyond])
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def draw(title: str, spreads: Sequence[Quantiles], unit: Unit, by: str = "finding") -> Markup:
    """The rows as nested boxes of their letter values, inline SVG on one axis; `by` says what a row is."""
    limits = limits_around([spread.letters[-1][1] for spread in spreads])
    axis = Axis(*limits, _MARGIN, _WIDTH - _MARGIN)
    return _drawn(f"{title} by {by}", title, spreads, unit, axis, _LETTERS)


def draw_seconds(title: str, spreads: Sequence[Quantiles], by: str) -> Markup:
    """Lengths of time as inline SVG, on a logarithmic axis."""
    ends = [value for spread in spreads for value in (spread.quantiles[0], spread.quantiles[-1])]
    axis = SecondsAxis.around(ends, _MARGIN + 10, _WIDTH - _MARGIN - 10)
    return _drawn(f"{title} by {by}", title, spreads, SECONDS, axis, _NINE_IN_TEN)


def _drawn(name: str, title: str, spreads: Sequence[Quantiles], unit: Unit, axis: Scale, shape: "_Shape") -> Markup:
    bottom = 6 + _STEP * len(spreads)
    parts = grid_below(axis, unit, 4, bottom)
    for i, spread in enumerate(spreads):
        parts += _row(spread, axis, 6 + _STEP * i, unit, shape)
    parts.append(svg.words(_WIDTH / 2, bottom + 33, title, "axis-title", "middle"))
    text = " ".join(f"{spread.label}: {shape.words(spread, axis, unit)}." for spread in spreads)
    return svg.picture((_WIDTH, bottom + 42), name, text, parts)


def _row(spread: Quantiles, axis: Scale, top: float, unit: Unit, shape: "_Shape") -> list[Markup]:
    middle, y = axis.at(spread.quantiles[2]), top + 20
    marks = (*shape.marks(spread, axis, y), svg.line(middle, y - 6, middle, y + 6, "median"))
    aside = svg.words(_WIDTH - _MARGIN, top + 11, f"n {spread.cases:,}", "aside", "end")
    label = svg.words(_MARGIN, top + 11, svg.shortened(spread.label, 34), "row-label")
    return [svg.group(f"{spread.label}: {shape.words(spread, axis, unit)}", label, *marks), aside]


def _box(low: float, high: float, y: float, height: float) -> Markup:
    return svg.tag("rect", x=low, y=y - height / 2, width=max(high - low, 0.5), height=height, class_="middle-half")


def _box_and_reach(spread: Quantiles, axis: Scale, y: float) -> tuple[Markup, ...]:
    low, lower, _, upper, high = (axis.at(value) for value in spread.quantiles)
    return svg.line(low, y, high, y, "reach"), _box(lower, upper, y, 8)


def _nested_boxes(spread: Quantiles, axis: Scale, y: float) -> tuple[Markup, ...]:
    """The widest box first, so that the narrower and higher ones lie on it."""
    each = [_box(axis.at(low), axis.at(high), y, 9 * 0.72**i) for i, (low, high) in enumerate(spread.letters)]
    return tuple(reversed(each))


def _letter_words(spread: Quantiles, axis: Scale, unit: Unit) -> str:
    ranges = [
        f"{100 * (1 - 0.5 ** (1 + i)):.4g} % between {axis.text(low, unit)} and {axis.text(high, unit)}"
        for i, (low, high) in enumerate(spread.letters)
    ]
    return ", ".join([f"median {axis.text(spread.quantiles[2], unit)}", *ranges])


def _alt_text(spread: Quantiles, axis: Scale, unit: Unit) -> str:
    names: Mapping[str, float] = dict(zip(("5 %", "25 %", "median", "75 %", "95 %"), spread.quantiles, strict=True))
    return ", ".join(f"{name} {axis.text(value, unit)}" for name, value in names.items())


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a row is drawn, and said in words."""

    marks: Callable[[Quantiles, Scale, float], tuple[Markup, ...]]
    words: Callable[[Quantiles, Scale, Unit], str]


_LETTERS, _NINE_IN_TEN = _Shape(_nested_boxes, _letter_words), _Shape(_box_and_reach, _alt_text)
