"""Mean ranks on one axis, with a bar beside methods that differ by chance at most: Demšar's, read downwards."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis
from heatcheck.report.numbers import Unit, number

_WIDTH, _LEFT, _STEP, _TOP = 330.0, 10.0, 31.0, 52.0
_GROUPS = 14.0  # between the bars that join methods
_ABOVE = 38.0  # room above the axis for the difference that is needed
_FEW = 9  # methods, of which each rank gets its line
RANK = Unit(1, 2)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A method and its mean rank; 1 is best."""

    label: str
    rank: float


@dataclass(frozen=True, slots=True)
class RankDiagram:
    """Methods with their mean ranks, and the difference above which two of them differ beyond chance.

    Where that is unknown (NaN), `groups` gives the first and last position of each run of methods that do not differ.
    """

    title: str
    methods: tuple[Ranked, ...]
    critical: float
    groups: tuple[tuple[int, int], ...] = ()


def joined(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """First and last of each longest run of sorted ranks within which none differs from another beyond chance."""
    alike = ([i for i, rank in enumerate(ranks) if rank - first < critical] for first in ranks)
    ends = [max(others, default=start) for start, others in enumerate(alike)]  # no two are alike by a difference of 0
    runs = [(start, end) for start, end in enumerate(ends) if end > start]
    return [run for i, run in enumerate(runs) if i == 0 or run[1] > runs[i - 1][1]]


def lanes_of(groups: Sequence[tuple[int, int]]) -> list[int]:
    """The column of each group's bar, such that as few columns are used as bars overlap."""
    ends: list[int] = []  # the last position in each column
    lanes = []
    for first, last in groups:
        lane = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[lane : lane + 1] = [last]
        lanes.append(lane)
    return lanes


def draw(diagram: RankDiagram) -> Markup:
    """The diagram as inline SVG."""
    ranked = sorted(diagram.methods, key=lambda each: each.rank)
    known = not math.isnan(diagram.critical)
    groups = joined([each.rank for each in ranked], diagram.critical) if known else list(diagram.groups)
    lanes = lanes_of(groups)
    right = _WIDTH - 16 - _GROUPS * (max(lanes, default=-1) + 1)
    axis = Axis(1, max(len(ranked), 2), _LEFT + 4, right)
    top = _TOP if known else _TOP - _ABOVE
    bottom = top + _STEP * len(ranked)
    parts = _grid(axis, len(ranked), (top, bottom)) + (_critical(diagram.critical, axis) if known else [])
    for i, each in enumerate(ranked):
        y = top + _STEP * i
        text = f"{each.label}: mean rank {number(each.rank, RANK)}"
        label = svg.words(_LEFT, y + 11, svg.shortened(each.label, 30), "row-label")
        rank = svg.words(right, y + 11, number(each.rank, RANK), "aside", "end")
        parts.append(svg.group(text, label, rank, svg.circle(axis.at(each.rank), y + 20, 4.2, "point method")))
    for (first, last), lane in zip(groups, lanes, strict=True):
        x = right + 14 + _GROUPS * lane
        names = ", ".join(each.label for each in ranked[first : last + 1])
        stroke = svg.line(x, top + _STEP * first + 6, x, top + _STEP * last + 24, "alike")
        parts.append(svg.group(f"may be chance: {names}", stroke))
    parts.append(svg.words((_LEFT + right) / 2, bottom + 30, "mean rank (1 is best)", "axis-title", "middle"))
    return svg.picture((_WIDTH, bottom + 38), diagram.title, _alt_text(ranked, groups, diagram.critical), parts)


def _grid(axis: Axis, methods: int, ends: tuple[float, float]) -> list[Markup]:
    top, bottom = ends
    step = 1 if methods <= _FEW else 2 if methods <= 2 * _FEW else 5
    ticks = [t for t in range(1, max(methods, 2) + 1) if t == 1 or t % step == 0]
    lines = [svg.line(axis.at(t), top - 6, axis.at(t), bottom, "grid") for t in ticks]
    return lines + [svg.words(axis.at(t), bottom + 14, str(t), "tick", "middle") for t in ticks]


def _critical(critical: float, axis: Axis) -> list[Markup]:
    """The difference that is needed, drawn to scale above the axis."""
    start, end = axis.at(1), axis.at(min(1 + critical, axis.high))
    text = f"critical difference {number(critical, RANK)}"
    ends = [svg.line(x, 22, x, 32, "critical") for x in (start, end)]
    return [svg.words(_LEFT, 14, text, "aside"), svg.group(text, svg.line(start, 27, end, 27, "critical"), *ends)]


def _alt_text(ranked: Sequence[Ranked], groups: Sequence[tuple[int, int]], critical: float) -> str:
    ranks = "; ".join(f"{each.label} {number(each.rank, RANK)}" for each in ranked)
    alike = " ".join(
        f"May be chance: {', '.join(each.label for each in ranked[first : last + 1])}." for first, last in groups
    )
    if math.isnan(critical):
        return f"Mean ranks: {ranks}. {alike}".strip()
    apart = [f"{a.label} and {b.label}" for a, b in pairwise(ranked) if b.rank - a.rank >= critical]
    gaps = f" Apart beyond chance: {'; '.join(apart)}." if apart else ""
    return f"Mean ranks: {ranks}. Critical difference {number(critical, RANK)}. {alike}{gaps}".strip()
