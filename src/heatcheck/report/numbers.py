"""How numbers become text: decimals, percent, intervals, p-values, counts and lists of names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

MISSING = "\u2013"
MINUS = "\u2212"
DASH = "\u2013"
SPACE = "\u00a0"  # keeps a number and its unit on one line


@dataclass(frozen=True, slots=True)
class Unit:
    """How a quantity is written: multiplied, rounded and followed by a sign."""

    factor: float
    decimals: int
    sign: str = ""

    def rounded(self, decimals: int) -> "Unit":
        """The same unit with another number of decimals."""
        return Unit(self.factor, decimals, self.sign)


SCORE = Unit(1, 3)  # 0 to 1, written as a decimal
SHARE = Unit(100, 1, f"{SPACE}%")  # 0 to 1, written as a percentage
PERCENT = Unit(1, 1, f"{SPACE}%")  # already in percent
POINTS = Unit(100, 1, f"{SPACE}pp")  # differences of shares, in percentage points
SECONDS = Unit(1, 3, f"{SPACE}s")
UNITS = {"score": SCORE, "share": SHARE, "fine": Unit(1, 4), "whole": Unit(1, 0)}  # by the word in run.json


def difference_of(unit: Unit) -> Unit:
    """The unit in which two values of this unit differ."""
    return POINTS if unit == SHARE else unit


def number(value: float, unit: Unit = SCORE, *, signed: bool = False) -> str:
    """The value in its unit, or a dash when it is undefined."""
    return MISSING if math.isnan(value) else _digits(value, unit, signed) + unit.sign


def interval(low: float, high: float, unit: Unit = SCORE, *, signed: bool = False) -> str:
    """Both ends in their unit, or nothing when an end is undefined."""
    if math.isnan(low) or math.isnan(high):
        return ""
    middle = " to " if signed or low < 0 else DASH
    return f"{_digits(low, unit, signed)}{middle}{_digits(high, unit, signed)}{unit.sign}"


def _digits(value: float, unit: Unit, signed: bool) -> str:
    text = f"{value * unit.factor:.{unit.decimals}f}"
    if float(text) == 0:
        return text.lstrip("-")
    if text.startswith("-"):
        return MINUS + text[1:]
    return f"+{text}" if signed else text


def probability(p: float) -> str:
    """A p-value the way papers write it."""
    if math.isnan(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def count(n: int, singular: str, plural: str = "") -> str:
    """The number with its noun."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def spread(values: Sequence[int]) -> str:
    """The one value all share, or the lowest and the highest."""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}{DASH}{high:,}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """The names with commas and a last "and"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def few(names: Sequence[str], last: str = "and") -> str:
    """The names when they are few, else the first two and how many more: a sentence must not become a list."""
    return listed(names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"], last)


def moment(text: str) -> str:
    """An ISO time to the minute, or the text itself when it is none."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return text


def brief(seconds: float) -> str:
    """A length of time in two digits that matter, in milliseconds where it is short."""
    if math.isnan(seconds):
        return number(seconds)
    milliseconds = seconds < 0.1
    value = seconds * 1000 if milliseconds else seconds
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{min(digits, 2)}f}{SPACE}{'ms' if milliseconds else 's'}"


def duration(seconds: float) -> str:
    """A length of time in the two largest units that matter."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(rounded, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
