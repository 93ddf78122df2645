"""Small strips: the values of four networks, one line each, with marks for reference values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from heatcheck.core.records import Estimate
from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, round_step
from heatcheck.report.charts.legend import Key, key
from heatcheck.report.numbers import SCORE, Unit, interval, number

WIDTH = 330.0
_LEFT, _RIGHT = 74.0, 288.0  # of the axis: names stand before it, numbers behind it
_TOP, _STEP = 20.0, 19.0
_ROW = 13.0  # between the names of marks that stand above each other
_LETTER = 6.2  # how wide a letter of a name is, about
_UNIT = SCORE.rounded(2)


@dataclass(frozen=True, slots=True)
class Line:
    """One network; its arm decides colour and shape."""

    arm: str
    label: str
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class ScoreStrip:
    """A strip before it is drawn; `marks` name values of the axis, `limits` are the same for strips to be compared."""

    title: str
    lines: tuple[Line, ...]
    limits: tuple[float, float]
    marks: Mapping[float, str] = field(default_factory=dict)
    unit: Unit = _UNIT


def limits_of(
    rows: Sequence[Estimate | None], always: Sequence[float], furthest: tuple[float, float]
) -> tuple[float, float]:
    """Round limits around all values and interval ends, within `furthest` and of some width."""
    ends = [value for row in rows if row for value in (row.value, row.low, row.high) if not math.isnan(value)]
    low, high = min([*always, *ends]), max([*always, *ends])
    low, high = max(low, furthest[0]), min(high, furthest[1])
    if not high > low:
        return math.floor(low), math.floor(low) + 1
    step = round_step(high - low, 10)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def draw(strip: ScoreStrip) -> Markup:
    """The strip as inline SVG."""
    axis = Axis(*strip.limits, _LEFT, _RIGHT)
    names = _apart([_Name(axis.at(value), name) for value, name in sorted(strip.marks.items())])
    top = _TOP + _ROW * max((each.row for each in names), default=0)
    bottom = top + _STEP * len(strip.lines)
    parts = _marks(names, top, bottom)
    for i, line in enumerate(strip.lines):
        parts.append(_drawn(line, axis, top + _STEP * (i + 0.5), strip.unit))
    description = "; ".join(f"{line.label} {_value_text(line.estimate, strip.unit)}" for line in strip.lines)
    return svg.picture((WIDTH, bottom + 6), strip.title, f"{description}.", parts)


def _marks(names: Sequence["_Name"], top: float, bottom: float) -> list[Markup]:
    """A line for each mark, up to its name."""
    lines = [svg.line(each.at, top - 4 - _ROW * each.row, each.at, bottom, "end-mark") for each in names]
    return lines + [svg.words(each.x, top - 8 - _ROW * each.row, each.words, "tick", each.anchor) for each in names]


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a mark, and its alignment to the mark."""

    at: float  # where the mark is
    words: str
    anchor: str = ""
    row: int = 0  # above the lowest
    shift: float = 0.0  # away from a mark nearby

    @property
    def x(self) -> float:
        """Where the words are held."""
        return self.at + self.shift

    @property
    def ends(self) -> tuple[float, float]:
        """About where the words begin and end."""
        width = _LETTER * len(self.words)
        start = self.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return start, start + width


def _apart(names: Sequence[_Name]) -> list[_Name]:
    """The names from left to right; of two that would touch each turns away, or the second stands a row higher."""
    placed: list[_Name] = []
    for name in names:
        anchor = "start" if name.at < _LEFT + 30 else "end" if name.at > _RIGHT - 30 else "middle"
        new = replace(name, anchor=anchor)
        if placed and new.ends[0] < placed[-1].ends[1] + _LETTER:
            before = replace(placed[-1], anchor="end", shift=1.0)
            away = replace(new, anchor="start", shift=3.0)
            if before.ends[0] > _end_before(placed, before.row):
                placed[-1] = before
            fits = placed[-1] is before and away.ends[1] <= WIDTH
            new = replace(away, row=before.row) if fits else replace(new, row=before.row + 1)
        placed.append(new)
    return placed


def _end_before(placed: Sequence[_Name], row: int) -> float:
    """Where the name before the last ends in this row; the edge of the strip where there is none."""
    return next((each.ends[1] + _LETTER for each in reversed(placed[:-1]) if each.row == row), 0.0)


def _drawn(line: Line, axis: Axis, y: float, unit: Unit) -> Markup:
    label = svg.words(_LEFT - 8, y + 4, line.label, "tick", "end")
    row = line.estimate
    if row is None or math.isnan(row.value):
        return svg.group(
            f"{line.label}: {_value_text(row, unit)}", label, svg.words(_LEFT + 4, y + 4, "undefined", "tick")
        )
    marks = [svg.words(WIDTH, y + 4, number(row.value, unit), "value", "end")]
    if not math.isnan(row.low) and not math.isnan(row.high):
        marks.append(svg.line(axis.at(row.low), y, axis.at(row.high), y, f"whisker arm-{line.arm}"))
    marks.append(shape(line.arm, axis.at(row.value), y))
    return svg.group(f"{line.label}: {_value_text(row, unit)}", label, *marks)


def shape(arm: str, x: float, y: float) -> Markup:
    """The arm's mark: ring, square, disc or diamond, distinct without colour."""
    named = f"point arm-{arm}"
    shapes = {
        "base": svg.circle(x, y, 3.8, f"{named} hollow"),
        "control": svg.square(x, y, 3.4, f"{named} hollow"),
        "align": svg.circle(x, y, 4.4, named),
        "misalign": svg.diamond(x, y, 5.0, named),
    }
    return shapes.get(arm) or svg.circle(x, y, 4.0, "point")


MEANINGS = {
    "base": "base: before fine-tuning",
    "control": "control: fine-tuned without a map loss",
    "align": "aligned: fine-tuned toward the outlines",
    "misalign": "misaligned: fine-tuned away from them",
}


def arm_keys() -> tuple[Key, ...]:
    """The marks of the four networks, with what each network is."""
    return tuple(
        key(meaning, svg.line(2, 8, 36, 8, f"whisker arm-{arm}"), shape(arm, 19, 8))
        for arm, meaning in MEANINGS.items()
    )


def _value_text(row: Estimate | None, unit: Unit) -> str:
    if row is None:
        return "not computed in this run"
    if math.isnan(row.value):
        return f"undefined: {row.reason or 'no reason recorded'}"
    between = interval(row.low, row.high, unit)
    return number(row.value, unit) + (f" ({between})" if between else "")
