"""Small strips: what the four networks of one row score, a line each, beside marks of little and much."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from heatcheck.core.records import Estimate
from heatcheck.report import svg
from heatcheck.report.axes import Axis, round_step
from heatcheck.report.numbers import SCORE, Unit, interval, number

WIDTH = 330.0
_LEFT, _RIGHT = 74.0, 288.0  # of the axis: names stand before it, numbers behind it
_TOP, _STEP = 20.0, 19.0
_UNIT = SCORE.rounded(2)


@dataclass(frozen=True, slots=True)
class Line:
    """One network: which arm picks colour and shape."""

    arm: str
    label: str
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class Strip:
    """A strip before it is drawn; `marks` name values of the axis, `limits` are shared by strips to be compared."""

    title: str
    lines: tuple[Line, ...]
    limits: tuple[float, float]
    marks: Mapping[float, str] = field(default_factory=dict)
    unit: Unit = _UNIT


def limits_of(
    rows: Sequence[Estimate | None], always: Sequence[float], furthest: tuple[float, float]
) -> tuple[float, float]:
    """Round limits around all values and interval ends, which never reach beyond the furthest."""
    ends = [value for row in rows if row for value in (row.value, row.low, row.high) if not math.isnan(value)]
    low, high = min([*always, *ends]), max([*always, *ends])
    low, high = max(low, furthest[0]), min(high, furthest[1])
    step = round_step(high - low, 10) if high > low else 1.0
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def draw(strip: Strip) -> Markup:
    """The strip as inline SVG."""
    axis = Axis(*strip.limits, _LEFT, _RIGHT)
    bottom = _TOP + _STEP * len(strip.lines)
    parts = _marks(strip, axis, bottom)
    for i, line in enumerate(strip.lines):
        parts.append(_drawn(line, axis, _TOP + _STEP * (i + 0.5), strip.unit))
    told = "; ".join(f"{line.label} {_told(line.estimate, strip.unit)}" for line in strip.lines)
    return svg.picture((WIDTH, bottom + 6), strip.title, f"{told}.", parts)


def _marks(strip: Strip, axis: Axis, bottom: float) -> list[Markup]:
    parts = []
    for value, name in strip.marks.items():
        x = axis.at(value)
        anchor = "start" if x < _LEFT + 30 else "end" if x > _RIGHT - 30 else "middle"
        parts.append(svg.line(x, _TOP - 4, x, bottom, "end-mark"))
        parts.append(svg.words(x, _TOP - 8, name, "tick", anchor))
    return parts


def _drawn(line: Line, axis: Axis, y: float, unit: Unit) -> Markup:
    label = svg.words(_LEFT - 8, y + 4, line.label, "tick", "end")
    row = line.estimate
    if row is None or math.isnan(row.value):
        return svg.group(f"{line.label}: {_told(row, unit)}", label, svg.words(_LEFT + 4, y + 4, "undefined", "tick"))
    marks = [svg.words(WIDTH, y + 4, number(row.value, unit), "value", "end")]
    if not math.isnan(row.low) and not math.isnan(row.high):
        marks.append(svg.line(axis.at(row.low), y, axis.at(row.high), y, f"whisker arm-{line.arm}"))
    marks.append(shape(line.arm, axis.at(row.value), y))
    return svg.group(f"{line.label}: {_told(row, unit)}", label, *marks)


def shape(arm: str, x: float, y: float) -> Markup:
    """The arm's mark: ring, square, disc and diamond, so that colour is not needed."""
    named = f"point arm-{arm}"
    shapes = {
        "base": svg.circle(x, y, 3.8, f"{named} hollow"),
        "control": svg.square(x, y, 3.4, f"{named} hollow"),
        "align": svg.circle(x, y, 4.4, named),
        "misalign": svg.diamond(x, y, 5.0, named),
    }
    return shapes.get(arm) or svg.circle(x, y, 4.0, "point")


def _told(row: Estimate | None, unit: Unit) -> str:
    if row is None:
        return "not computed in this run"
    if math.isnan(row.value):
        return f"undefined: {row.reason or 'no reason recorded'}"
    between = interval(row.low, row.high, unit)
    return number(row.value, unit) + (f" ({between})" if between else "")
