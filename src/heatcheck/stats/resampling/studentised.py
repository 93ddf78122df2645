"""Intervals of smooth statistics from each patient's influence: a studentised bootstrap that draws patients.

Near its value, a mean, a difference, a ratio of sums or a mean over findings is a sum of one term per patient, the
patient's influence. Drawing patients then means drawing influences: no draw can be undefined because a rare finding was
not drawn, and thousands of columns cost two matrix products. Dividing each draw by its own standard error corrects for
the skewness that makes percentile intervals of few patients too short on one side (Hall 1988, Ann Stat 16:927).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.ratios import ratio
from heatcheck.stats.resampling.bca import NO_PATIENT, NO_VALUE, ONE_PATIENT, Interval
from heatcheck.stats.resampling.clusters import resampled_weights

LEVEL = 0.95
FEWEST_PATIENTS = 6  # intervals of fewer were not simulated, and would be wider than they are useful
FEW_PATIENTS = f"fewer than {FEWEST_PATIENTS} patients"
_PRIOR_PATIENTS = 4  # by how many patients' worth a finding's variance is drawn towards that of all findings
_ROUNDING = 1e-12  # relative size below which a difference is rounding

Influences = Float[np.ndarray, "patients columns"]


@dataclass(frozen=True, slots=True)
class Linearised:
    """Statistics with the influence of every patient on each, their standard errors and degrees of freedom."""

    values: Float[np.ndarray, " columns"]
    influences: Influences  # each column sums to 0
    takes_part: Bool[np.ndarray, "patients columns"]  # False for a patient who has no case in a column
    errors: Float[np.ndarray, " columns"]
    freedom: Float[np.ndarray, " columns"]

    @property
    def n_patients(self) -> Int[np.ndarray, " columns"]:
        """How many patients each statistic rests on."""
        return np.asarray(self.takes_part.sum(0))

    def only(self, columns: Bool[np.ndarray, " columns"]) -> "Linearised":
        """Some of the columns."""
        parts = self.influences[:, columns], self.takes_part[:, columns], self.errors[columns], self.freedom[columns]
        return Linearised(self.values[columns], *parts)

    def among(self, present: Bool[np.ndarray, " more"]) -> "Linearised":
        """The same statistics with further patients, who take no part; `present` marks those that do."""
        influences = np.zeros((len(present), self.influences.shape[1]))
        takes_part = np.zeros(influences.shape, bool)
        influences[present], takes_part[present] = self.influences, self.takes_part
        return Linearised(self.values, influences, takes_part, self.errors, self.freedom)


def linearised_ratios(
    parts: Float[np.ndarray, "patients columns"], wholes: Float[np.ndarray, "patients columns"]
) -> Linearised:
    """The ratio of the summed parts to the summed wholes, such as a mean: sums of scores over numbers of cases."""
    values = ratio(parts.sum(0), wholes.sum(0))
    influences = np.nan_to_num(ratio(parts - values * wholes, wholes.sum(0)))
    takes_part = (parts != 0) | (wholes != 0)
    patients = takes_part.sum(0)
    return Linearised(values, influences, takes_part, np.sqrt(_variances(influences, patients)), patients - 1.0)


def contrast(first: Linearised, second: Linearised, weights: tuple[float, float] = (-1.0, 1.0)) -> Linearised:
    """The weighted sum of two statistics, column by column: by default the second less the first."""
    influences = weights[0] * first.influences + weights[1] * second.influences
    takes_part = first.takes_part | second.takes_part
    patients = takes_part.sum(0)
    values = weights[0] * first.values + weights[1] * second.values
    return Linearised(values, influences, takes_part, np.sqrt(_variances(influences, patients)), patients - 1.0)


def side_by_side(statistics: Sequence[Linearised]) -> Linearised:
    """All columns of several statistics of the same patients."""
    return Linearised(
        np.concatenate([each.values for each in statistics]),
        np.hstack([each.influences for each in statistics]),
        np.hstack([each.takes_part for each in statistics]),
        np.concatenate([each.errors for each in statistics]),
        np.concatenate([each.freedom for each in statistics]),
    )


def linearised_macro(by_finding: Linearised, findings: int) -> Linearised:
    """Means over the findings of statistics laid out group by group, each with all its findings.

    The variance of a finding with few patients is itself hardly known, and that of one patient not at all: it is drawn
    towards the findings' common variance per patient, as if that had been seen in a few patients more. The degrees of
    freedom follow Satterthwaite 1946, Biometrics Bulletin 2:110.
    """
    n = len(by_finding.influences)
    values = by_finding.values.reshape(-1, findings)
    influences = by_finding.influences.reshape(n, -1, findings)
    patients = by_finding.n_patients.reshape(-1, findings)
    degrees = np.maximum(patients - 1, 0)
    per_patient = (
        np.nan_to_num(_variances(by_finding.influences, by_finding.n_patients)).reshape(values.shape) * patients
    )
    common = ratio((degrees * per_patient).sum(1), degrees.sum(1))[:, None]
    variances = (degrees * per_patient + _PRIOR_PATIENTS * common) / (degrees + _PRIOR_PATIENTS) / patients
    total = influences.sum(2)
    crossed = np.sum(total**2, axis=0) - np.sum(influences**2, axis=(0, 2))  # a patient's findings go together
    # errors that cancel between findings are believed only in part
    variance = np.maximum(variances.sum(1) + crossed, variances.sum(1) / findings)
    freedom = ratio(variances.sum(1) ** 2, np.sum(variances**2 / (degrees + _PRIOR_PATIENTS), axis=1))
    takes_part = np.asarray(by_finding.takes_part.reshape(n, -1, findings).any(2))
    return Linearised(values.mean(1), total / findings, takes_part, np.sqrt(variance) / findings, freedom)


def _variances(influences: Influences, patients: Int[np.ndarray, " columns"]) -> Float[np.ndarray, " columns"]:
    """The variance of each column: the squared influences, with the usual factor for few patients."""
    return np.asarray(np.sum(influences**2, axis=0) * ratio(patients.astype(float), patients - 1.0))


def studentised_intervals(
    statistics: Linearised, draws: int, generator: np.random.Generator, level: float = LEVEL
) -> tuple[Interval, ...]:
    """The interval of each statistic by itself, with equal tails; columns with the same patients share their draws."""
    seed = int(generator.integers(2**63))
    limits = np.full((2, len(statistics.values)), np.nan)
    patterns, pattern_of = np.unique(statistics.takes_part, axis=1, return_inverse=True)
    for pattern, takes_part in enumerate(patterns.T):
        columns = pattern_of.ravel() == pattern
        if takes_part.sum() >= FEWEST_PATIENTS:
            # every pattern starts from the same seed: the order and number of patterns must not change a result
            drawn = studentised_draws(statistics.influences[takes_part][:, columns], draws, np.random.default_rng(seed))
            limits[:, columns] = draw_limits(drawn, drawn, level)
    return _intervals(statistics, limits)


def t_intervals(statistics: Linearised, level: float = LEVEL) -> tuple[Interval, ...]:
    """The interval of each statistic by Student's t, for statistics of which one part may rest on few patients."""
    reach = stdtrit(statistics.freedom, (1 + level) / 2)
    return _intervals(statistics, np.stack([-reach, reach]))


@dataclass(frozen=True, slots=True)
class SimultaneousIntervals:
    """The intervals of several statistics, all of which hold together, and p-values corrected for one another."""

    intervals: tuple[Interval, ...]
    p_values: Float[np.ndarray, " columns"]  # that the statistic is 0, each by itself; NaN where there is no interval
    p_adjusted: Float[np.ndarray, " columns"]


def simultaneous_intervals(
    statistics: Linearised, draws: int, generator: np.random.Generator, level: float = LEVEL
) -> SimultaneousIntervals:
    """Intervals and tests of a family from one procedure: an interval excludes 0 where its corrected p is small.

    The largest studentised deviation of all statistics on the same draws is the yardstick of each (max-T, Westfall and
    Young 1993), above and below apart, since scores are skewed. Where a part of a statistic rests on few patients, its
    degrees of freedom widen its interval and raise its p-values as they do in `t_intervals`.
    """
    usable = (statistics.n_patients >= FEWEST_PATIENTS) & _varies(statistics)
    limits, (p_values, p_adjusted) = np.full((2, 2, len(usable)), np.nan)
    if usable.any():
        family = statistics.only(usable)
        drawn = studentised_draws(family.influences, draws, generator)
        # Student's t of few degrees of freedom against that of the patients drawn
        degrees = np.maximum(family.freedom, 1), family.n_patients - 1.0
        wider = np.maximum(1, stdtrit(degrees[0], (1 + level) / 2) / stdtrit(degrees[1], (1 + level) / 2))
        lowest, highest = drawn.min(1), drawn.max(1)
        limits[:, usable] = draw_limits(lowest, highest, level)[:, None] * wider
        observed = family.values / family.errors / wider
        p_values[usable] = two_sided_p((drawn >= observed).sum(0), (drawn <= observed).sum(0), draws)
        p_adjusted[usable] = two_sided_p(
            (highest[:, None] >= observed).sum(0), (lowest[:, None] <= observed).sum(0), draws
        )
    return SimultaneousIntervals(_intervals(statistics, limits), p_values, p_adjusted)


def draw_limits(
    lowest: Float[np.ndarray, "draws *columns"], highest: Float[np.ndarray, "draws *columns"], level: float
) -> Float[np.ndarray, "2 *columns"]:
    """The ends of an interval in studentised values; it excludes 0 exactly where `two_sided_p` is below 1 − level.

    Of too few draws the limits are infinite, as no p-value of theirs could be small.
    """
    beyond = math.ceil(round((1 - level) / 2 * (1 + len(lowest)), 9)) - 1  # rounding: 0.025 · 1000 is 25.00…02
    if beyond < 1:
        return np.stack([np.full(lowest.shape[1:], -np.inf), np.full(highest.shape[1:], np.inf)])
    return np.stack([np.sort(lowest, axis=0)[beyond - 1], np.sort(highest, axis=0)[-beyond]])


def two_sided_p(above: np.ndarray, below: np.ndarray, draws: int) -> np.ndarray:
    """The p-value from the draws at or beyond the observed value on either side; the data count as one more."""
    return np.asarray(np.minimum(1, 2 * (1 + np.minimum(above, below)) / (1 + draws)))


def _varies(statistics: Linearised) -> Bool[np.ndarray, " columns"]:
    """Whether the patients differ; sums in another order differ in the last bits."""
    return np.asarray(statistics.errors > _ROUNDING * np.maximum(np.abs(statistics.values), 1e-6))


def studentised_draws(
    influences: Influences, draws: int, generator: np.random.Generator
) -> Float[np.ndarray, "draws columns"]:
    """By how many of its own standard errors each statistic moves when patients are drawn again."""
    n, squares = len(influences), influences**2
    blocks = []
    for weights in resampled_weights(n, draws, generator):
        moved = weights @ influences
        variance = np.maximum(weights @ squares - moved**2 / n, 0) * n / (n - 1)
        # a draw of one patient alone has no spread: it says that the statistic could be anywhere on that side
        flat = variance <= _ROUNDING * squares.sum(0)
        blocks.append(np.where(flat, np.where(moved == 0, 0.0, np.copysign(np.inf, moved)),
                               moved / np.sqrt(np.where(flat, 1, variance))))  # fmt: skip
    return np.concatenate(blocks)


def _intervals(statistics: Linearised, limits: Float[np.ndarray, "2 columns"]) -> tuple[Interval, ...]:
    """The statistics less their error times the limits of the studentised value."""
    varies, patients = _varies(statistics), statistics.n_patients
    lows, highs = statistics.values - limits[::-1] * statistics.errors
    found = []
    for value, low, high, moves, n in zip(statistics.values, lows, highs, varies, patients, strict=True):
        reason = _why_none(float(value), bool(moves), int(n))
        found.append(
            Interval(float(value), reason=reason) if reason else Interval(float(value), float(low), float(high))
        )
    return tuple(found)


def _why_none(value: float, varies: bool, n_patients: int) -> str:
    if not n_patients:
        return NO_PATIENT
    if math.isnan(value):
        return NO_VALUE
    if n_patients < FEWEST_PATIENTS:
        return ONE_PATIENT if n_patients == 1 else FEW_PATIENTS
    return "" if varies else ONE_VALUE
