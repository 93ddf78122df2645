"""Intervals of smooth statistics from each patient's influence: a studentised bootstrap that draws patients.

Near its value, a mean, a difference, a ratio of sums or a mean over findings is a sum of one term per patient, the
patient's influence. Drawing patients then means drawing influences: no draw can be undefined because a rare finding was
not drawn, and thousands of columns cost two matrix products. Dividing each draw by its own standard error corrects for
the skewness that makes percentile intervals of few patients too short on one side (Hall 1988, Ann Stat 16:927).
Errors allow for patients who have many of the cases (CR2), and in a family of comparisons for one another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import stdtr, stdtrit

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.ratios import ratio
from heatcheck.stats.resampling.bca import NO_PATIENT, NO_VALUE, ONE_PATIENT, Interval
from heatcheck.stats.resampling.clusters import resampled_weights

LEVEL = 0.95
FEWEST_PATIENTS = 6  # intervals of fewer were not simulated, and would be wider than they are useful
FEW_PATIENTS = f"fewer than {FEWEST_PATIENTS} patients"
FEWEST_DRAWS = 40  # of which one may lie beyond either end of a 95 % interval; with fewer no p could be below 0.05
TOO_WIDE = "one patient alone decides it"  # of an interval that reaches to infinity
FEW_DRAWS = f"fewer than {FEWEST_DRAWS} draws"
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
    leverages: Influences | None = None  # each patient's share of what a ratio divides by; None: all have the same

    @property
    def n_patients(self) -> Int[np.ndarray, " columns"]:
        """How many patients each statistic rests on."""
        return np.asarray(self.takes_part.sum(0))

    def only(self, columns: Bool[np.ndarray, " columns"] | Int[np.ndarray, " chosen"]) -> "Linearised":
        """Some of the columns: those that are marked, or those of these numbers."""
        parts = self.influences[:, columns], self.takes_part[:, columns], self.errors[columns], self.freedom[columns]
        return Linearised(self.values[columns], *parts, None if self.leverages is None else self.leverages[:, columns])

    def of(self, patients: Bool[np.ndarray, " patients"]) -> "Linearised":
        """The same statistics without the patients who take no part in any; `patients` marks the others."""
        parts = self.influences[patients], self.takes_part[patients], self.errors, self.freedom
        return Linearised(self.values, *parts, None if self.leverages is None else self.leverages[patients])

    def among(self, present: Bool[np.ndarray, " more"]) -> "Linearised":
        """The same statistics with further patients, who take no part; `present` marks those that do."""
        influences = np.zeros((len(present), self.influences.shape[1]))
        takes_part, leverages = np.zeros(influences.shape, bool), np.zeros(influences.shape)
        influences[present], takes_part[present], leverages[present] = self.influences, self.takes_part, _shares(self)
        return Linearised(self.values, influences, takes_part, self.errors, self.freedom, leverages)


def linearised_ratios(
    parts: Float[np.ndarray, "patients columns"], wholes: Float[np.ndarray, "patients columns"]
) -> Linearised:
    """The ratio of the summed parts to the summed wholes, such as a mean: sums of scores over numbers of cases."""
    values = ratio(parts.sum(0), wholes.sum(0))
    influences = np.nan_to_num(ratio(parts - values * wholes, wholes.sum(0)))
    leverages = np.nan_to_num(ratio(wholes, wholes.sum(0)))
    return _with_errors(values, influences, (parts != 0) | (wholes != 0), leverages)


def contrast(first: Linearised, second: Linearised, weights: tuple[float, float] = (-1.0, 1.0)) -> Linearised:
    """The weighted sum of two statistics, column by column: by default the second less the first."""
    influences = weights[0] * first.influences + weights[1] * second.influences
    leverages = np.maximum(_shares(first), _shares(second))
    values = weights[0] * first.values + weights[1] * second.values
    return _with_errors(values, influences, first.takes_part | second.takes_part, leverages)


def side_by_side(statistics: Sequence[Linearised]) -> Linearised:
    """All columns of several statistics of the same patients."""
    return Linearised(
        np.concatenate([each.values for each in statistics]),
        np.hstack([each.influences for each in statistics]),
        np.hstack([each.takes_part for each in statistics]),
        np.concatenate([each.errors for each in statistics]),
        np.concatenate([each.freedom for each in statistics]),
        np.hstack([_shares(each) for each in statistics]),
    )


def linearised_macro(by_finding: Linearised, findings: int) -> Linearised:
    """Means over the findings of statistics laid out group by group, each with all its findings.

    The variance of a finding with few patients is itself hardly known, and that of one patient not at all: it is drawn
    towards the findings' common variance per patient, as if that had been seen in a few patients more. The degrees of
    freedom follow Satterthwaite 1946, Biometrics Bulletin 2:110. Residuals are divided by 1 − leverage (CR3), not by
    its root: the larger error is what the largest of many such statistics needs where findings are rare.
    """
    n = len(by_finding.influences)
    values = by_finding.values.reshape(-1, findings)
    patients = by_finding.n_patients.reshape(-1, findings)
    degrees = np.maximum(patients - 1, 0)
    residuals = _corrected(by_finding.influences, _shares(by_finding), 1.0).reshape(n, -1, findings)
    per_patient = np.sum(residuals**2, axis=0) * patients
    common = ratio((degrees * per_patient).sum(1), degrees.sum(1))[:, None]
    variances = (degrees * per_patient + _PRIOR_PATIENTS * common) / (degrees + _PRIOR_PATIENTS) / patients
    # a patient's findings go together
    crossed = np.sum(residuals.sum(2) ** 2, axis=0) - np.sum(residuals**2, axis=(0, 2))
    # errors that cancel between findings are believed only in part
    variance = np.maximum(variances.sum(1) + crossed, variances.sum(1) / findings)
    freedom = ratio(variances.sum(1) ** 2, np.sum(variances**2 / (degrees + _PRIOR_PATIENTS), axis=1))
    takes_part = np.asarray(by_finding.takes_part.reshape(n, -1, findings).any(2))
    total = by_finding.influences.reshape(n, -1, findings).sum(2) / findings
    return Linearised(values.mean(1), total, takes_part, np.sqrt(variance) / findings, freedom)


def _with_errors(
    values: Float[np.ndarray, " columns"],
    influences: Influences,
    takes_part: Bool[np.ndarray, "patients columns"],
    leverages: Influences,
) -> Linearised:
    """The statistics with CR2 errors (Bell and McCaffrey 2002): those of a mean of equally many cases per patient."""
    patients = takes_part.sum(0)
    errors = np.sqrt(np.sum(_corrected(influences, leverages, 0.5) ** 2, axis=0))
    return Linearised(values, influences, takes_part, np.where(patients > 1, errors, np.nan), patients - 1.0, leverages)


def _corrected(influences: Influences, leverages: Influences, power: float) -> Influences:
    """Influences as large as if each patient had not drawn the estimate to itself; 0 for a patient who is alone."""
    return np.asarray(np.divide(influences, (1 - leverages) ** power, out=np.zeros_like(influences),
                                where=leverages < 1 - _ROUNDING))  # fmt: skip


def _shares(statistics: Linearised) -> Influences:
    """The leverage of every patient: a share of the cases, or the same for all who take part."""
    if statistics.leverages is not None:
        return statistics.leverages
    return np.asarray(ratio(statistics.takes_part.astype(float), statistics.n_patients.astype(float)))


def studentised_intervals(
    statistics: Linearised, draws: int, generator: np.random.Generator, level: float = LEVEL
) -> tuple[Interval, ...]:
    """The interval of each statistic by itself, with equal tails; columns with the same patients share their draws.

    An end is never nearer than Student's t: that the draws of few patients have a short tail on one side is as often
    chance as skewness.
    """
    seed = int(generator.integers(2**63))
    limits = np.full((2, len(statistics.values)), np.nan)
    patterns, pattern_of = np.unique(statistics.takes_part, axis=1, return_inverse=True)
    for pattern, takes_part in enumerate(patterns.T):
        columns = pattern_of.ravel() == pattern
        if takes_part.sum() >= FEWEST_PATIENTS:
            # every pattern starts from the same seed: the order and number of patterns must not change a result
            # that patients with many cases are drawn more or less often makes intervals wider, and no more often true
            same = replace(statistics.only(columns).of(takes_part), leverages=None)
            drawn = _studentised(same, draws, np.random.default_rng(seed), together=False)
            limits[:, columns] = _outer(draw_limits(drawn, drawn, level), _student(same, level))
    return _intervals(statistics, limits)


def t_intervals(statistics: Linearised, level: float = LEVEL) -> tuple[Interval, ...]:
    """The interval of each statistic by Student's t, for statistics of which one part may rest on few patients."""
    reach = _student(statistics, level)
    return _intervals(statistics, np.stack([-reach, reach]))


def _student(statistics: Linearised, level: float) -> Float[np.ndarray, " columns"]:
    return np.asarray(stdtrit(statistics.freedom, (1 + level) / 2))


def _outer(limits: Float[np.ndarray, "2 columns"], reach: Float[np.ndarray, " columns"]) -> np.ndarray:
    """The limits, moved outwards to at least `reach` from 0."""
    return np.stack([np.minimum(limits[0], -reach), np.maximum(limits[1], reach)])


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
    Young 1993), above and below apart, since scores are skewed. Statistics of different degrees of freedom are compared
    by their tails of Student's t: one of few patients has long tails, which must neither widen the intervals of all
    others nor leave its own too short. As in `studentised_intervals`, no end is nearer than Student's t.

    A corrected p is a share of the draws, however many statistics there are: the number of draws that a family needs
    does not grow with it.
    """
    usable = (statistics.n_patients >= FEWEST_PATIENTS) & _varies(statistics) & (draws >= FEWEST_DRAWS)
    limits, (p_values, p_adjusted) = np.full((2, 2, len(usable)), np.nan)
    errors = statistics.errors.copy()
    if usable.any():
        family = _with_family_errors(statistics.only(usable))
        patients = family.n_patients - 1.0
        gained = family.freedom - np.minimum(statistics.freedom[usable], patients)
        freedom, own, common = family.freedom, patients + gained, (patients + gained).max()
        drawn = _studentised(family, draws, generator, together=True)
        lowest, highest = _extremes(drawn, own, common)
        ends = np.repeat(draw_limits(lowest, highest, level)[:, None], len(patients), axis=1)
        limits[:, usable] = _outer(_by_tails(ends, common, freedom), _student(family, level))
        errors[usable], observed = family.errors, family.values / family.errors
        by_student = 2 * stdtr(freedom, -np.abs(observed))
        alone = _by_tails(observed, freedom, own)
        p_values[usable] = np.maximum(by_student, two_sided_p((drawn >= alone).sum(0), (drawn <= alone).sum(0), draws))
        together = _by_tails(observed, freedom, common)
        beyond = (highest[:, None] >= together).sum(0), (lowest[:, None] <= together).sum(0)
        p_adjusted[usable] = np.maximum(by_student, two_sided_p(*beyond, draws))
    intervals = _intervals(replace(statistics, errors=errors), limits)
    if draws < FEWEST_DRAWS:
        intervals = tuple(Interval(each.value, reason=each.reason or FEW_DRAWS) for each in intervals)
    return SimultaneousIntervals(intervals, p_values, p_adjusted)


def _with_family_errors(family: Linearised) -> Linearised:
    """The statistics with errors that are drawn towards each other, and the degrees of freedom that this gains."""
    patients, degrees = family.n_patients, family.n_patients - 1.0
    errors = np.sqrt(_moderated(family.errors**2 * patients, degrees) / patients)
    gained = _PRIOR_PATIENTS * (1 - degrees / degrees.sum())  # none for a statistic that is alone
    return replace(family, errors=errors, freedom=np.clip(family.freedom, 1, degrees) + gained)


def _extremes(
    drawn: Float[np.ndarray, "draws columns"], freedom: Float[np.ndarray, " columns"], common: float
) -> tuple[Float[np.ndarray, " draws"], Float[np.ndarray, " draws"]]:
    """The smallest and largest value of each draw, as values of the common degrees of freedom."""
    kinds = np.unique(freedom)
    ends = [
        _by_tails(np.stack([end(drawn[:, freedom == kind], axis=1) for kind in kinds], axis=1), kinds, common)
        for end in (np.min, np.max)
    ]
    return ends[0].min(1), ends[1].max(1)


def _by_tails(values: np.ndarray, freedom: np.ndarray | float, other: np.ndarray | float) -> np.ndarray:
    """Values of Student's t, by column, as those of other degrees of freedom that have the same tails."""
    changes = np.broadcast_to(freedom != other, values.shape[-1:])
    changed = values.copy()
    if changes.any():
        old, new = (np.broadcast_to(each, values.shape[-1:])[changes] for each in (freedom, other))
        tails = stdtr(old, -np.abs(values[..., changes]))
        changed[..., changes] = np.copysign(stdtrit(new, tails), values[..., changes])
    return changed


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
    """By how many of its own standard errors each column's sum of influences moves when patients are drawn again."""
    n, columns = influences.shape
    numbers = np.zeros((3, columns))
    return _studentised(
        Linearised(numbers[0], influences, np.ones((n, columns), bool), *numbers[1:]), draws, generator, together=False
    )


def _studentised(
    statistics: Linearised, draws: int, generator: np.random.Generator, *, together: bool
) -> Float[np.ndarray, "draws columns"]:
    """By how many of its own standard errors each statistic moves when patients are drawn again.

    A draw may hold more or fewer of the patients of a column: what moves is divided by what was drawn of them, and so
    are their residuals. `together` draws the variances of a family towards each other, as those of the data are.
    """
    influences, shares = statistics.influences, _shares(statistics)
    squares, crossed = influences**2, influences * shares
    patterns, pattern_of = np.unique(shares, axis=1, return_inverse=True)
    blocks = []
    for weights in resampled_weights(len(influences), draws, generator):
        drawn, twice, patients = (
            (weights @ each)[:, pattern_of.ravel()] for each in (patterns, patterns**2, (patterns > 0).astype(float))
        )
        moved = np.nan_to_num(ratio(weights @ influences, drawn))
        residual = np.maximum(weights @ squares - 2 * moved * (weights @ crossed) + moved**2 * twice, 0)
        spread = np.nan_to_num(ratio(residual * patients**2, drawn**2 * (patients - 1)))
        if together:
            spread = _moderated(spread, np.maximum(patients - 1, 0))
        # a draw of one patient alone has no spread: it says that the statistic could be anywhere on that side
        flat = ~(spread > _ROUNDING * squares.sum(0) * patients)  # NaN where each column has one patient
        blocks.append(np.where(flat, np.where(moved == 0, 0.0, np.copysign(np.inf, moved)),
                               moved * np.sqrt(patients / np.where(flat, 1, spread))))  # fmt: skip
    return np.concatenate(blocks)


def _moderated(
    variances: Float[np.ndarray, "*draws columns"], degrees: Float[np.ndarray, "*draws columns"]
) -> Float[np.ndarray, "*draws columns"]:
    """Variances per patient, drawn towards that of all columns as if it had been seen in a few patients more.

    The largest of many statistics is mostly one whose variance was taken for too small (Smyth 2004, Stat Appl Genet
    Mol Biol 3:3); that all patients of a rare finding agree is no proof that others would.
    """
    common = ratio((degrees * variances).sum(-1), degrees.sum(-1))[..., None]
    return np.asarray((degrees * variances + _PRIOR_PATIENTS * common) / (degrees + _PRIOR_PATIENTS))


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
