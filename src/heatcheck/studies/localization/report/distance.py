"""How far a method is from the human readers on the cases both have, in words that can be read aloud."""

import math
from dataclasses import dataclass

from heatcheck.core.records import Estimate
from heatcheck.report.footnotes import lacks_interval
from heatcheck.report.numbers import POINTS, SPACE, Unit, count, difference_of, number


@dataclass(frozen=True, slots=True)
class _Words:
    less: str
    more: str
    same: str


_WORDS = {
    "iou": _Words("which is {} less than", "which is {} more than", "which is about as much as"),
    "hit": _Words("{} less often than", "{} more often than", "about as often as"),
}


def from_readers(difference: Estimate | None, unit: Unit, *, name_level: bool) -> str:
    """The difference as a clause, such as "which is 0.40 less than the readers\u2019 (95 % interval 0.38 to 0.41)".

    `unit` is that of the two scores. Without an interval there are no brackets, without a difference no clause.
    """
    if difference is None or math.isnan(difference.value):
        return ""
    unit = difference_of(unit)
    digits, side = _digits(difference.value, unit), _side(difference.value, unit)
    words = _WORDS[difference.metric]
    amount = count(int(digits), "percentage point") if unit == POINTS else digits
    clause = {"less": words.less, "more": words.more, "": words.same}[side].format(amount) + " the readers\u2019"
    if lacks_interval(difference):
        return clause
    level = f"95{SPACE}% interval " if name_level else ""
    return f"{clause} ({level}{_between(difference, unit, side)})"


def _between(difference: Estimate, unit: Unit, side: str) -> str:
    """Both ends: bare amounts, smaller first, where they lie on the value's own side; else each with its side."""
    ends = (difference.low, difference.high)
    sides = [_side(end, unit) for end in ends]
    if side and set(sides) <= {side, ""}:
        return " to ".join(_digits(end, unit) for end in sorted(ends, key=abs))
    return " to ".join(f"{_digits(end, unit)} {where}".rstrip() for end, where in zip(ends, sides, strict=True))


def _digits(value: float, unit: Unit) -> str:
    """The amount as briefly as the sentence writes scores: one decimal less than the tables."""
    return number(abs(value), Unit(unit.factor, unit.decimals - 1))


def _side(value: float, unit: Unit) -> str:
    if float(_digits(value, unit)) == 0:
        return ""
    return "less" if value < 0 else "more"
