"""The verdict of a report, and the words of its judgements: what is shown, what would decide, what was out of sight."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from heatcheck.core.glossary import meaning
from heatcheck.core.records import Estimate
from heatcheck.judging.judgement import Answer, judgement_of
from heatcheck.report.numbers import Unit, count, interval, number

LEVEL = 0.05
MOST_METHODS = 3  # of a line
FEW_PATIENTS = 30
CLEARLY = f"\u201cClearly\u201d is {meaning('clearly')[0].lower()}{meaning('clearly')[1:]}"
NOT_SHOWN = f"\u201cNot shown\u201d is {meaning('not shown')[0].lower()}{meaning('not shown')[1:]}"
_WORDS = {Answer.YES: "yes", Answer.NO: "no", Answer.OPEN: "not shown"}

Scored = tuple[str, Estimate | None]  # a method's label with its score


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two or three sentences."""

    first: str
    second: str
    third: str = ""

    @property
    def text(self) -> str:
        """The sentences as one line."""
        return " ".join(filter(None, (self.first, self.second, self.third)))


def answer(row: Estimate | None) -> str:
    """Yes, no or not shown: whether the estimate is above 0 by a size that matters."""
    return _WORDS[judgement_of(row).answer]


def would_decide(row: Estimate) -> str:
    """How many patients would decide a claim that is open; empty where it is decided or the number is out of sight."""
    if judgement_of(row).answer is not Answer.OPEN or not row.n_needed:
        return ""
    return f"about {count(_rounded(row.n_needed), 'patient')} would decide it"


def _rounded(patients: int) -> int:
    """Two digits: the number is itself an estimate."""
    step = 10 ** max(0, len(str(patients)) - 2)
    return math.ceil(patients / step) * step


def smallest_visible(rows: Iterable[Estimate]) -> float:
    """The difference that half of such runs would show: as far as intervals usually reach below their values.

    At least the size that matters, below which nothing is called a difference. A smaller true difference is missed
    more often than shown. NaN without an interval.
    """
    reaches = [
        max(row.value - row.low, 0.0 if math.isnan(row.size) else row.size)
        for row in rows
        if math.isfinite(row.low) and not math.isnan(row.value)
    ]
    return statistics.median(reaches) if reaches else math.nan


def highest_first(rows: Iterable[Scored]) -> list[Scored]:
    """The rows from the highest score on; those without one come last."""
    return sorted(rows, key=lambda each: -each[1].value if each[1] and not math.isnan(each[1].value) else math.inf)


def first_methods(opening: str, rows: Iterable[Scored], unit: Unit) -> tuple[str, ...]:
    """A line with the first methods of the rows, each with its score and interval; none where no score is defined."""
    scored = [(label, row) for label, row in rows if row is not None and not math.isnan(row.value)]
    if not scored:
        return ()
    named = [_with_interval(label, row, unit) for label, row in scored[:MOST_METHODS]]
    more = [f"and {len(scored) - MOST_METHODS} more"] if len(scored) > MOST_METHODS else []
    return (f"{opening}: {', '.join(named + more)}.",)


def _with_interval(label: str, row: Estimate, unit: Unit) -> str:
    between = interval(row.low, row.high, unit)
    return f"{label} {number(row.value, unit)} ({between or 'no interval'})"
