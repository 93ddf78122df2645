"""Models that are right clearly less often than by guessing: their outputs, labels or images are mixed up."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN, PLAIN, Statistic, condition
from heatcheck.judging.judgement import judge

GUESS = 0.5  # the AUROC of a model that guesses
LEAST = 0.1  # below that of guessing, for something to be wrong
_OF_FINDINGS = {(AUROC, "auroc", PLAIN), (AUROC, "auroc", condition(arm="base"))}
# over all classes: how good a guess is depends on how many there are
_OF_CLASSES = {(MEAN, "balanced_accuracy", condition(fold="all")), (Statistic("attack"), "cda", PLAIN)}
_WORDS: Mapping[str, str] = {"auroc": "AUROC", "balanced_accuracy": "balanced accuracy", "cda": "accuracy"}


@dataclass(frozen=True, slots=True)
class BelowChance:
    """An answer that is clearly worse than a guess."""

    row: Estimate
    chance: float

    @property
    def words(self) -> str:
        """The number with its name, its interval and that of guessing."""
        row = self.row
        numbers = f"{row.value:.2f}, 95 % interval {row.low:.2f} to {row.high:.2f}, by guessing {self.chance:.2f}"
        return f"{_WORDS[row.metric]} {numbers}"


def is_below(row: Estimate, chance: float) -> bool:
    """Whether the value is clearly below that of guessing."""
    return judge(chance - row.value, chance - row.high, chance - row.low, LEAST).is_yes


def may_be_a_guess(row: Estimate) -> bool:
    """Whether an AUROC is neither above that of guessing nor clearly below it; without an interval, by its value."""
    if is_below(row, GUESS):
        return False
    if math.isnan(row.low):
        return row.value <= GUESS
    return not judge(row.value - GUESS, row.low - GUESS, row.high - GUESS, 0).is_yes


def below_chance(rows: Iterable[Estimate], classes: int) -> list[BelowChance]:
    """The answers of networks as they were given that are clearly worse than guesses among so many classes."""
    found = []
    for row in rows:
        kind = (row.statistic, row.metric, row.condition)
        if row.method or not (kind in _OF_CLASSES or (kind in _OF_FINDINGS and row.finding != ALL_FINDINGS)):
            continue
        chance = GUESS if kind in _OF_FINDINGS else 1 / max(2, classes)
        if is_below(row, chance):
            found.append(BelowChance(row, chance))
    return found
