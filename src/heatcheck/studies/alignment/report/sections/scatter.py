"""Rank difference against mass difference by image: one plot per pipeline, one colour and shape per finding."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, round_step, tick_label
from heatcheck.report.charts.legend import Key, key
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, count
from heatcheck.studies.alignment.report.facts import pipelines
from heatcheck.studies.alignment.report.scores import ImageScores

NARROWEST = 0.05  # width of the axes, also where no score moved
MOST = 12_000  # points of all plots together
COLOURS = 6
_WIDTH, _HEIGHT = 240.0, 236.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 44.0, 8.0, 232.0, 196.0


@dataclass(frozen=True, slots=True)
class Scatter:
    """The plots, their legend and a sentence on how many points there are."""

    panels: tuple[Panel, ...]
    keys: tuple[Key, ...]
    sentence: str


def scatter(evidence: Evidence, scores: ImageScores) -> Scatter | None:
    """The plots; None when there are no points."""
    pairs = _differences(scores.table)
    if pairs.empty:
        return None
    shown = _thinned(pairs, MOST)
    findings = [name for name in evidence.findings if (pairs["finding"] == name).any()]
    marks = {name: f"dots family{i % COLOURS}{' squared' if i >= COLOURS else ''}" for i, name in enumerate(findings)}
    axis = _limits(pairs)
    panels = []
    for pipeline in pipelines(evidence):
        rows = ImageScores(shown).rows_of(pipeline)
        if len(rows):
            panels.append(Panel(pipeline.label, _draw(pipeline.label, rows, marks, axis)))
    keys = (key(finding, svg.tag("path", d="M8 8h0", class_=mark), width=16, class_="plot key")
            for finding, mark in marks.items())  # fmt: skip
    return Scatter(tuple(panels), tuple(keys), _counted(len(shown), len(pairs)))


def _counted(shown: int, every: int) -> str:
    if shown == every:
        return f"Every point is one image and finding ({count(every, 'point')})."
    return f"Every point is one image and finding; {shown:,} of {every:,} points, drawn at random, are shown."


def _differences(table: pd.DataFrame) -> pd.DataFrame:
    if table.empty:
        return table
    pairs = table.assign(
        mass=table["mass_align"] - table["mass_misalign"], rank=table["rank_align"] - table["rank_misalign"]
    )
    return pairs.dropna(subset=["mass", "rank"])


def _thinned(pairs: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many rows, chosen by a hash of their names: always the same ones, whatever their kind."""
    if len(pairs) <= most:
        return pairs
    names = pairs["model"] + "/" + pairs["method"] + "/" + pairs["finding"] + "/" + pairs["case"]
    order = names.map(lambda name: zlib.crc32(name.encode()))
    return pairs.loc[order.sort_values(kind="stable").index[:most]].sort_index()


def _limits(pairs: pd.DataFrame) -> tuple[float, float]:
    """One pair of limits for both axes of all plots, so that slopes can be compared."""
    low = min(0.0, float(pairs[["mass", "rank"]].min().min()))
    high = max(0.0, float(pairs[["mass", "rank"]].max().max()))
    if low == high:
        return -NARROWEST, NARROWEST
    step = round_step(max(high - low, NARROWEST), 5)
    return step * (low // step), step * -(-high // step)


def _draw(label: str, pairs: pd.DataFrame, marks: Mapping[str, str], limits: tuple[float, float]) -> Markup:
    across, up = Axis(*limits, _LEFT, _RIGHT), Axis(*limits, _BOTTOM, _TOP)
    parts = _grid(across, up)
    for finding, named in marks.items():
        rows = pairs[pairs["finding"] == finding]
        if len(rows):
            dots = [(across.at(x), up.at(y)) for x, y in zip(rows["mass"], rows["rank"], strict=True)]
            parts.append(svg.group(f"{finding}, n {len(rows):,}", svg.dots(dots, named)))
    mass, rank = (f"{pairs[name].mean():.3f}" for name in ("mass", "rank"))
    description = f"Mean difference of mass {mass}, of rank {rank}, n {len(pairs):,}."
    return svg.picture((_WIDTH, _HEIGHT), f"Rank against mass difference, {label}", description, parts)


def _grid(across: Axis, up: Axis) -> list[Markup]:
    parts = []
    for tick in across.ticks(4):
        named = "zero" if abs(tick) < 1e-9 else "grid"
        parts += [svg.line(across.at(tick), _TOP, across.at(tick), _BOTTOM, named)]
        parts += [svg.line(_LEFT, up.at(tick), _RIGHT, up.at(tick), named)]
        parts.append(svg.words(across.at(tick), _BOTTOM + 14, tick_label(tick, SCORE), "tick", "middle"))
        parts.append(svg.words(_LEFT - 5, up.at(tick) + 4, tick_label(tick, SCORE), "tick", "end"))
    ends = (across.low, up.low), (across.high, up.high)
    parts.append(svg.path([(across.at(x), up.at(y)) for x, y in ends], "ideal"))
    parts.append(svg.words((_LEFT + _RIGHT) / 2, _BOTTOM + 30, "mass difference", "axis-title", "middle"))
    turned = svg.tag("text", "rank difference", x=0.0, y=0.0, class_="axis-title", text_anchor="middle",
                     transform=f"translate(9 {(_TOP + _BOTTOM) / 2:.0f}) rotate(-90)")  # fmt: skip
    return [*parts, turned]
