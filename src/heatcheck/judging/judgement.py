"""What may be claimed of a difference: yes, no, or cannot say, by its corrected interval and a size that matters."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from heatcheck.core.records import Estimate

LEVEL = 0.95  # of every interval that a claim rests on


class Answer(StrEnum):
    """What an interval says of a claim."""

    YES = "yes"  # above 0 beyond chance, and large enough to matter
    NO = "no"  # too small to matter, beyond chance
    OPEN = "cannot say"


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer with the size that it was judged by."""

    answer: Answer
    size: float  # the smallest value that matters; NaN where none is defined
    reason: str = ""  # why nothing can be said, where it is not the width of the interval

    @property
    def is_yes(self) -> bool:
        """Whether the claim holds: the word "clearly" stands for this."""
        return self.answer is Answer.YES

    @property
    def is_no(self) -> bool:
        """Whether the opposite holds: "does not" stands for this."""
        return self.answer is Answer.NO


NO_INTERVAL = "no interval"
NO_SIZE = "no size that matters is defined"
NOT_COMPUTED = "not computed"


def judge(value: float, low: float, high: float, size: float) -> Judgement:
    """Yes where the interval lies above 0 and the value is at least the size; no where all of it lies below the size.

    A size of 0 asks for the direction alone. An interval between 0 and the size is a no: beyond chance, too small.
    """
    if math.isnan(size) or size < 0:
        return Judgement(Answer.OPEN, size, NO_SIZE)
    if math.isnan(low) or math.isnan(high):
        return Judgement(Answer.OPEN, size, NO_INTERVAL)
    if low > 0 and value >= size:
        return Judgement(Answer.YES, size)
    if high < size:
        return Judgement(Answer.NO, size)
    return Judgement(Answer.OPEN, size)


def both(first: Judgement, *others: Judgement) -> Judgement:
    """The judgement of several claims that must all hold: no if one does not, yes if all do."""
    judgements = (first, *others)
    for answer in (Answer.NO, Answer.OPEN):
        failing = [each for each in judgements if each.answer is answer]
        if failing:
            return failing[0]
    return first


def judgement_of(row: Estimate | None) -> Judgement:
    """Whether an estimate is above 0 by a size that matters, such as a method that is better than a floor."""
    if row is None:
        return Judgement(Answer.OPEN, math.nan, NOT_COMPUTED)
    return _with_reason(judge(row.value, row.low, row.high, row.size), row)


def opposite_of(row: Estimate | None) -> Judgement:
    """Whether it is below 0 by that size, such as a method that is worse than a floor."""
    if row is None:
        return Judgement(Answer.OPEN, math.nan, NOT_COMPUTED)
    return _with_reason(judge(-row.value, -row.high, -row.low, row.size), row)


def _with_reason(judgement: Judgement, row: Estimate) -> Judgement:
    """The judgement with the estimate's own reason, such as a single training, where nothing can be said."""
    return replace(judgement, reason=row.reason) if judgement.reason and row.reason else judgement
