"""Intervals of several statistics that hold together, by Student's t: for statistics that few patients decide.

A bootstrap that divides each draw by its own error has no limits where most patients do not differ at all, such as the
importance of a modality that changes the answer on two cases of thirty: draws without these two have no error. Here the
largest of correlated normal deviates is the yardstick instead, turned into Student's t by each statistic's degrees of
freedom (Hothorn, Bretz and Westfall 2008, Biometrical Journal 50:346).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.studentised import (
    FEWEST_PATIENTS,
    LEVEL,
    Linearised,
    SimultaneousIntervals,
    t_intervals,
)

_ROUNDING = 1e-9  # errors below are those of sums in another order
_SMALLEST = 1e-300  # p-value of which the normal deviate is finite


def simultaneous_t(
    statistics: Linearised, draws: int, generator: np.random.Generator, level: float = LEVEL
) -> SimultaneousIntervals:
    """Intervals and corrected p-values of a family from one procedure: an interval excludes 0 where its p is small.

    Statistics of fewer than six patients, or on which all patients agree, have none and do not count in the family.
    """
    intervals = list(t_intervals(statistics, level))
    p_values, p_adjusted = np.full((2, len(intervals)), np.nan)
    usable = np.flatnonzero((statistics.n_patients >= FEWEST_PATIENTS) & (statistics.errors > _ROUNDING))
    if not len(usable):
        return SimultaneousIntervals(tuple(intervals), p_values, p_adjusted)
    scaled = statistics.influences[:, usable] / np.sqrt(np.sum(statistics.influences[:, usable] ** 2, axis=0))
    variances, directions = np.linalg.eigh(scaled.T @ scaled)
    spread = directions * np.sqrt(np.maximum(variances, 0))  # correlated as the statistics are
    largest = np.sort(np.abs(generator.standard_normal((draws, len(usable))) @ spread.T).max(1))
    # the level of one interval such that all hold at once
    reach = float(np.quantile(largest, level, method="higher"))
    freedom = np.maximum(statistics.freedom[usable], 1)
    limits = stdtrit(freedom, ndtr(reach)) * statistics.errors[usable]
    for column, limit in zip(usable, limits, strict=True):
        value = float(statistics.values[column])
        intervals[column] = Interval(value, value - float(limit), value + float(limit))
    observed = np.abs(statistics.values[usable]) / statistics.errors[usable]
    p_values[usable] = 2 * stdtr(freedom, -observed)
    beyond = draws - np.searchsorted(largest, -ndtri(np.maximum(p_values[usable] / 2, _SMALLEST)), side="left")
    p_adjusted[usable] = (1 + beyond) / (1 + draws)  # the data count as one more draw
    return SimultaneousIntervals(tuple(intervals), p_values, p_adjusted)


@dataclass(frozen=True, slots=True)
class UnanimousGroup:
    """A group of patients whose values all agree."""

    value: float
    patients: int
    share: float = 1.0  # in the mean over groups


def unanimous_interval(groups: Sequence[UnanimousGroup], ends: tuple[float, float], level: float = LEVEL) -> Interval:
    """The interval of a mean over groups of values between two ends, where the patients of each group agree.

    So many patients would hardly agree if more of all patients differed: the limit is that of Clopper and Pearson,
    spread over the groups such that it moves the mean most. The values of those who differ may lie at either end.
    """
    value = sum(group.share * group.value for group in groups)
    low, high = (_furthest(groups, end, (1 - level) / 2) for end in ends)
    return Interval(value, value - low, value + high)


def _furthest(groups: Sequence[UnanimousGroup], end: float, chance: float) -> float:
    """How far patients who differ could move the mean towards an end, if nobody met them with this chance."""
    reach = np.array([group.share * abs(group.value - end) for group in groups])
    patients = np.array([group.patients for group in groups], float)
    reach, patients = reach[reach > 0], patients[reach > 0]
    if not len(reach):
        return 0.0
    steepest = patients / reach
    # of each group, `same` is the share of patients who agree; the chance to meet only these is ∏ same^patients
    low, high = np.log(chance) / patients.min() - np.log(steepest.max()) - 1, float(-np.log(steepest.min()))
    for _ in range(60):
        middle = (low + high) / 2
        met = float(patients @ np.minimum(0, middle + np.log(steepest)))
        low, high = (middle, high) if met < np.log(chance) else (low, middle)
    same = np.exp(np.minimum(0, high + np.log(steepest)))
    return float(reach @ (1 - same))


def unanimous_p(value: float, patients: int, ends: tuple[float, float]) -> float:
    """The smallest α at which the interval of one group, at level 1 − α, excludes 0."""
    end = ends[0] if value > 0 else ends[1]
    return 1.0 if value == 0 else min(1.0, 2 * (1 - value / (value - end)) ** patients)
