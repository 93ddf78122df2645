"""Axes: the position of a value on the page, and round numbers as ticks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.numbers import MINUS, SPACE, Unit, brief, number

_LABEL = 42.0  # width of the label of a length of time, with some air


class Scale(Protocol):
    """An axis of any kind."""

    def at(self, value: float) -> float:
        """The value's position."""

    def ticks(self) -> list[float]:
        """The values of the ticks."""

    def label(self, tick: float, unit: Unit) -> str:
        """The text at a tick."""

    def text(self, value: float, unit: Unit) -> str:
        """A value in words."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high` laid out from `start` to `end`; where both are one value, it lies in the middle."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The value's position; values outside the axis stop at its ends."""
        if not self.high > self.low:
            return (self.start + self.end) / 2
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """About as many round numbers as wanted, between the axis' ends."""
        if not self.high > self.low:
            return [self.low]
        step = round_step(self.high - self.low, wanted)
        first = math.ceil(self.low / step - 1e-9)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def label(self, tick: float, unit: Unit) -> str:
        """The tick's number; the unit's sign stands at the axis' title."""
        return tick_label(tick, unit)

    def text(self, value: float, unit: Unit) -> str:
        """The value in its unit."""
        return number(value, unit)


@dataclass(frozen=True, slots=True)
class SecondsAxis:
    """Seconds on a logarithmic scale: whole powers of ten from `low` to `high`, laid out from `start` to `end`."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def around(cls, seconds: Sequence[float], start: float, end: float) -> "SecondsAxis":
        """The axis that holds all these lengths of time; what took no time at all lies at its start."""
        taken = [value for value in seconds if 0 < value < math.inf] or [1.0]
        low, high = math.floor(math.log10(min(taken))), math.ceil(math.log10(max(taken)))
        return cls(low, max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        """The position of a length of time; what lies outside the axis stops at its ends."""
        inside = min(max(math.log10(value), self.low), self.high) if value > 0 else self.low
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]

    def label(self, tick: float, unit: Unit) -> str:  # noqa: ARG002 - seconds have their own units
        """The power of ten with its unit; every second one where they would touch."""
        power = round(math.log10(tick))
        if (self.end - self.start) / (self.high - self.low) < _LABEL and power % 2:
            return ""
        for sign, exponent in (("µs", -6), ("ms", -3), ("s", 0)):
            if power < exponent + 3 or exponent == 0:
                return f"{10.0 ** (power - exponent):g}{SPACE}{sign}"
        return ""

    def text(self, value: float, unit: Unit) -> str:  # noqa: ARG002 - seconds have their own units
        """The length of time."""
        return brief(value)


def round_step(length: float, wanted: int) -> float:
    """The step 1, 2 or 5 times a power of ten that cuts the length into about as many parts as wanted."""
    rough = length / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def limits_around(values: Iterable[float], *, ceiling: float = 1.0) -> tuple[float, float]:
    """Round limits that hold 0 and every number, and stop at `ceiling` where none passes it; never an empty range."""
    defined = [value for value in values if math.isfinite(value)]
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


def grid_below(axis: Scale, unit: Unit, top: float, bottom: float) -> list[Markup]:
    """Vertical grid lines from top to bottom with their numbers below."""
    lines = [svg.line(axis.at(tick), top, axis.at(tick), bottom, "grid") for tick in axis.ticks()]
    named = [(tick, label) for tick in axis.ticks() if (label := axis.label(tick, unit))]
    return lines + [svg.words(axis.at(tick), bottom + 15, label, "tick", "middle") for tick, label in named]
