"""Straight axes: where a value lies on the page and which round numbers mark the way."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.report import svg
from heatcheck.report.numbers import MINUS, Unit


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high` laid out from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The value's place; values outside the axis stop at its ends."""
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """About as many round numbers as wanted, between the axis' ends."""
        step = round_step(self.high - self.low, wanted)
        first = math.ceil(self.low / step - 1e-9)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def round_step(length: float, wanted: int) -> float:
    """The step 1, 2 or 5 times a power of ten that cuts the length into about as many parts as wanted."""
    rough = length / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def limits_around(values: Iterable[float], *, ceiling: float = 1.0) -> tuple[float, float]:
    """Round limits that hold 0 and every value, and stop at `ceiling` where no value passes it."""
    defined = [value for value in values if not math.isnan(value)]
    low, high = min([0.0, *defined]), max([0.0, *defined])
    if high == low:
        return low, low + ceiling
    step = round_step(high - low, 5)
    top = math.ceil(high / step - 1e-9) * step
    return math.floor(low / step + 1e-9) * step, min(top, ceiling) if high <= ceiling else top


def tick_label(value: float, unit: Unit) -> str:
    """A tick's number, without needless zeros; the unit's sign stands at the axis' title."""
    text = f"{value * unit.factor:.4g}"
    return "0" if float(text) == 0 else text.replace("-", MINUS)


def grid_below(axis: Axis, unit: Unit, top: float, bottom: float) -> list[Markup]:
    """Vertical grid lines from top to bottom with their numbers below."""
    lines = [svg.line(axis.at(tick), top, axis.at(tick), bottom, "grid") for tick in axis.ticks()]
    labels = [svg.words(axis.at(t), bottom + 15, tick_label(t, unit), "tick", "middle") for t in axis.ticks()]
    return lines + labels
