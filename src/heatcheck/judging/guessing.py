"""Models that are right clearly less often than by guessing: their outputs, labels or images are mixed up."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN, PLAIN, Statistic, condition
from heatcheck.judging.judgement import judge

GUESS = 0.5  # the AUROC of a model that guesses
LEAST = 0.1  # below that of guessing, for something to be wrong
FEWEST = 5  # cases with a finding, and as many without it, that say whose labels an output fits
_ERRORS = 3.0  # standard errors that an output must fit other labels better by: all pairs are compared
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


@dataclass(frozen=True, slots=True)
class Misplaced:
    """An output, by its column, that clearly fits the labels of another column better than its own."""

    output: int
    fits: int
    auroc: float  # on those labels


def misplaced_outputs(
    answers: Float[np.ndarray, "case finding"], labels: Float[np.ndarray, "case finding"]
) -> list[Misplaced]:
    """The outputs that another order of the outputs would move, where each moved one fits clearly better there.

    Labels other than 0 and 1, and answers that are NaN, are left out, pair by pair.
    """
    size = answers.shape[1]
    pairs = [[_auroc(answers[:, i], labels[:, j]) for j in range(size)] for i in range(size)]
    worth = np.full((size, size), -float(size))  # a move that is not clearly better is none
    for i, row in enumerate(pairs):
        value, error = row[i]
        worth[i, i] = 0.0
        for j, (other, other_error) in enumerate(row):
            least = max(LEAST, _ERRORS * math.hypot(error, other_error))
            if other - value >= least:  # not so for NaN
                worth[i, j] = other - value
    order = linear_sum_assignment(worth, maximize=True)[1]
    return [Misplaced(i, int(j), pairs[i][j][0]) for i, j in enumerate(order) if i != j]


def _auroc(answers: Float[np.ndarray, " case"], labels: Float[np.ndarray, " case"]) -> tuple[float, float]:
    """The AUROC and its standard error (Hanley and McNeil 1982); NaN where a class has few cases."""
    known = np.isin(labels, (0, 1)) & ~np.isnan(answers)
    present = labels[known] == 1
    n, m = int(present.sum()), int((~present).sum())
    if min(n, m) < FEWEST:
        return math.nan, math.nan
    area = float((rankdata(answers[known])[present].sum() - n * (n + 1) / 2) / (n * m))
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (n - 1) * (one - area**2) + (m - 1) * (two - area**2)
    return area, math.sqrt(max(0.0, variance) / (n * m))
