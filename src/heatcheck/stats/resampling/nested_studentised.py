"""Means over repeated trainings from each patient's influence: single ones, and families that are compared together.

`nested` says what is averaged. A draw has a part from patients drawn again, which is studentised, and one from seeds.
As a few seeds hardly know their own variance, its quantiles are stretched from Student's t with the degrees of freedom
of the patients to that with Satterthwaite's.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import stdtr, stdtrit

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.ratios import ratio
from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.cells import CellTotals, Design, cell_totals, columns_by_pattern, macro
from heatcheck.stats.resampling.nested import (
    NO_SEED,
    ONE_SEED,
    Components,
    NestedEstimate,
    patient_influences,
    variance_components,
    with_counts,
)
from heatcheck.stats.resampling.studentised import (
    FEW_PATIENTS,
    FEWEST_PATIENTS,
    TOO_WIDE,
    draw_limits,
    studentised_draws,
    two_sided_p,
)

_ROUNDING = 1e-12  # relative size below which a difference is rounding
_MOST_ERRORS = 10.0  # by which patients move an estimate; without an odd patient, a draw has no spread of its own
_USUAL = 1.5  # times the median limit; a column with a higher one is far off more often than others
_MOST_FREEDOM = 1e6  # degrees of freedom with which Student's t is the normal distribution
Columns = Float[np.ndarray, " columns"]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ComparedMean:
    """A mean of a family, with p-values from the procedure of its interval."""

    mean: NestedEstimate
    p_value: float  # that it is 0, by itself; NaN where there is no interval
    p_adjusted: float  # corrected for the family; below 1 − level exactly where the interval excludes 0
    influences: Float[np.ndarray, " patients"]  # on the mean, of the patients who have a value
    of_seeds: float  # variance due to the choice of seeds


def separate_means(
    values: Float[np.ndarray, "cases columns"],
    design: Design,
    draws: int,
    generator: np.random.Generator,
    within: Range = (-1.0, 1.0),
) -> tuple[NestedEstimate, ...]:
    """The mean of each column, with an interval that does not depend on the other columns.

    Where all patients and seeds agree, the interval reaches as far as it would if the largest share of patients that
    may well have stayed unseen had values at an end of `within`, the possible values.
    """
    if not len(values):
        return tuple(NestedEstimate(reason=NO_SEED) for _ in range(values.shape[1]))
    totals = cell_totals(values, design)
    family, seed = _family(totals), int(generator.integers(2**63))
    ends = np.full((2, values.shape[1]), np.nan)
    for columns in columns_by_pattern(totals.counts):
        chosen = columns[family.usable[columns]]
        if len(chosen):
            part = family.only(chosen)
            own = [(each.seeds, max(each.n_seeds - 1, 1)) for each in part.components]
            # every pattern starts from the same seed, so that a column's interval does not depend on the others
            drawn = _Drawn.of(part, np.array(own).T, draws, np.random.default_rng(seed), noises=1)
            ends[:, chosen] = drawn.ends(draw_limits(drawn.deviations, drawn.deviations, LEVEL))
    return _with_intervals(family, ends, totals, within, 1)


def simultaneous_means(
    values: Float[np.ndarray, "cases columns"],
    design: Design,
    draws: int,
    generator: np.random.Generator,
    within: Range = (-1.0, 1.0),
) -> tuple[ComparedMean, ...]:
    """The same means with intervals that hold together, and p-values that are corrected for one another.

    The largest deviation of all columns is the yardstick of each (max-T), above and below apart. All columns share the
    patients drawn. A few seeds cannot say which columns vary together, so their part is drawn for each column alone,
    which errs on the safe side (Šidák 1967, JASA 62:626).
    """
    n_columns = values.shape[1]
    if not len(values):
        empty = ComparedMean(NestedEstimate(reason=NO_SEED), math.nan, math.nan, np.zeros(0), 0.0)
        return (empty,) * n_columns
    totals = cell_totals(values, design)
    family = _family(totals)
    ends, (p_values, p_adjusted) = np.full((2, 2, n_columns), np.nan)
    of_seeds = np.zeros(n_columns)
    usable = np.flatnonzero(family.usable)
    if len(usable):
        part = family.only(usable)
        drawn = _Drawn.of(part, _pooled_seeds(part), draws, generator, noises=len(usable))
        lowest, highest = _largest(drawn.deviations)
        ends[:, usable] = drawn.ends(draw_limits(lowest, highest, LEVEL))
        p_values[usable] = drawn.p_values(drawn.deviations, drawn.deviations)
        p_adjusted[usable] = drawn.p_values(lowest, highest)
        of_seeds[usable] = drawn.errors**2 * (1 - drawn.share_of_patients)
    for column in np.flatnonzero(family.agree):
        tail = _tail_of_agreement(float(family.values[column]), family.components[column].n_patients, within)
        p_values[column], p_adjusted[column] = min(1.0, 2 * tail), min(1.0, 2 * tail * n_columns)
    means = _with_intervals(family, ends, totals, within, n_columns)
    influences = [family.influences[family.takes_part[:, column], column] for column in range(n_columns)]
    numbers = p_values.tolist(), p_adjusted.tolist(), influences, of_seeds.tolist()
    return tuple(ComparedMean(*each) for each in zip(means, *numbers, strict=True))


@dataclass(frozen=True, slots=True)
class _Family:
    """The estimates of a family, the influence of every patient on each, and the parts of their variance."""

    values: Columns
    influences: Float[np.ndarray, "patients columns"]
    takes_part: Bool[np.ndarray, "patients columns"]
    components: tuple[Components, ...]

    def only(self, columns: np.ndarray) -> "_Family":
        present = self.takes_part[:, columns].any(1)
        kept = np.ix_(present, columns)
        parts = tuple(self.components[column] for column in columns)
        return _Family(self.values[columns], self.influences[kept], self.takes_part[kept], parts)

    @property
    def n_patients(self) -> Columns:
        return np.array([each.n_patients for each in self.components])

    @property
    def agree(self) -> Bool[np.ndarray, " columns"]:
        """Whether several patients have one value with every seed, but for the last bits."""
        errors = np.sqrt([each.total for each in self.components])
        varies = errors > _ROUNDING * np.maximum(np.abs(np.nan_to_num(self.values)), 1e-6)
        return np.asarray(~varies & (self.n_patients > 1))

    @property
    def usable(self) -> Bool[np.ndarray, " columns"]:
        """Whether the column's interval can be drawn."""
        return np.asarray((self.n_patients >= FEWEST_PATIENTS) & ~self.agree)


def _family(totals: CellTotals) -> _Family:
    n_patients, _, n_columns = totals.counts.shape
    values, influences = np.full(n_columns, np.nan), np.zeros((n_patients, n_columns))
    takes_part = np.asarray(totals.counts.any(1))
    components = [Components(0.0, 0.0, 0.0, 0, 0)] * n_columns
    for columns in columns_by_pattern(totals.counts):
        part, present = totals.only(columns), takes_part[:, columns[0]]
        if not present.any():
            continue
        values[columns] = macro(part.means[None], np.ones((1, len(part.cells.seeds))), part.cells)[0]
        influences[np.ix_(present, columns)] = patient_influences(part)
        one = Components(0.0, 0.0, 0.0, part.cells.of_seed.shape[1], 1)
        of_columns = variance_components(part) if present.sum() > 1 else [one] * len(columns)
        for column, each in zip(columns.tolist(), of_columns, strict=True):
            components[column] = each
    return _Family(values, influences, takes_part, tuple(components))


def _pooled_seeds(family: _Family) -> Float[np.ndarray, "2 columns"]:
    """The variance from seeds, which the columns lend each other, and its degrees of freedom.

    Of many columns, some have seeds that agree by chance, and would be taken for certain. So the variance from seeds
    is at least in the family's mean proportion to that from patients. It is then better known than from the seeds of
    one column, the more so the less columns go together; half of that gain is believed, since columns may differ.
    """
    parts = [(each.seeds, each.patients, max(each.n_seeds - 1, 1)) for each in family.components]
    own, patients, degrees = np.array(parts).T
    seeds = np.maximum(own, patients * np.nan_to_num(ratio(own.sum(), patients.sum())))
    return np.stack([seeds, degrees * (1 + _independent_columns(family.influences)) / 2])


def _independent_columns(influences: Float[np.ndarray, "patients columns"]) -> float:
    """The number of columns, each counted the less the more others go with it: K² over the sum of r², at least 1."""
    scaled = np.nan_to_num(ratio(influences, np.sqrt(np.sum(influences**2, axis=0, keepdims=True))))
    return float(influences.shape[1] ** 2 / max(np.sum((scaled.T @ scaled) ** 2), influences.shape[1]))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """By how many of its errors each estimate moves when patients and seeds are drawn again."""

    values: Columns
    errors: Columns  # standard errors, over seeds and patients
    share_of_patients: Columns  # of the variance
    deviations: Float[np.ndarray, "draws columns"]
    freedom_of_draws: Columns  # degrees of freedom if the variance from seeds were known
    freedom: Columns

    @classmethod
    def of(
        cls,
        family: _Family,
        seeds_and_freedom: Float[np.ndarray, "2 columns"],
        draws: int,
        generator: np.random.Generator,
        noises: int,
    ) -> "_Drawn":
        """The draws, with one noise from seeds for each column, or one for all where they are not compared."""
        seeds, freedom_of_seeds = seeds_and_freedom
        patients, rest = np.array([(each.patients, each.rest) for each in family.components]).T
        total = np.maximum.reduce([seeds + patients - rest, seeds, patients, rest])
        by_patients, by_seeds = patients**2 / (family.n_patients - 1), seeds**2 / freedom_of_seeds
        freedoms = (
            np.minimum(np.nan_to_num(ratio(total**2, each), nan=_MOST_FREEDOM), _MOST_FREEDOM)
            for each in (by_patients, by_patients + by_seeds)
        )
        # patients who differ in the last bits only have no part in a difference between seeds
        influences = np.where(patients > _ROUNDING * total, family.influences, 0.0)
        share = patients / total
        moved = np.clip(studentised_draws(influences, draws, generator), -_MOST_ERRORS, _MOST_ERRORS) * np.sqrt(share)
        moved += generator.standard_normal((draws, noises)) * np.sqrt(1 - share)
        return cls(family.values, np.sqrt(total), share, moved, *freedoms)

    def ends(self, limits: Float[np.ndarray, "2 columns"]) -> Float[np.ndarray, "2 columns"]:
        """The estimates less their error times the limits of the deviations, stretched."""
        return np.asarray(self.values - _stretched(limits, self.freedom_of_draws, self.freedom)[::-1] * self.errors)

    def p_values(self, lowest: np.ndarray, highest: np.ndarray) -> Columns:
        """How often the deviations reach the estimates' distances from 0."""
        observed = _stretched(self.values / self.errors, self.freedom, self.freedom_of_draws)
        return two_sided_p((highest >= observed).sum(0), (lowest <= observed).sum(0), len(self.deviations))


def _largest(deviations: Float[np.ndarray, "draws columns"]) -> np.ndarray:
    """The deviations of each draw that are furthest below and above 0, for every column.

    A column that is far off more often than others, such as a rate with one odd patient, is measured by its own limits
    (Beran 1988, JASA 83:679), so that it does not widen the others.
    """
    limits = np.abs(draw_limits(deviations, deviations, LEVEL))
    usual = _USUAL * np.median(limits, axis=1, keepdims=True)
    scales = np.where(limits > usual, limits / usual, 1.0)
    furthest = (deviations / scales[0]).min(1), (deviations / scales[1]).max(1)
    return np.stack([each[:, None] * scale for each, scale in zip(furthest, scales, strict=True)])


def _stretched(quantiles: np.ndarray, given: Columns, wanted: Columns) -> np.ndarray:
    """Quantiles of Student's t with given degrees of freedom, as those with others; infinity where none is so far."""
    tails = stdtr(given, -np.abs(quantiles))
    reach = np.where(tails > 0, -stdtrit(wanted, np.where(tails > 0, tails, 0.5)), np.inf)
    return np.asarray(np.sign(quantiles) * reach)


def _with_intervals(
    family: _Family, ends: Float[np.ndarray, "2 columns"], totals: CellTotals, within: Range, together: int
) -> tuple[NestedEstimate, ...]:
    """The means with these intervals; where all agree, with those of agreement, corrected for so many together."""
    agree, means = family.agree.tolist(), {}
    for column, (value, each) in enumerate(zip(family.values.tolist(), family.components, strict=True)):
        low, high = ends[:, column]
        if agree[column]:
            low, high = _ends_of_agreement(value, each.n_patients, (1 - LEVEL) / 2 / together, within)
        low, high = np.clip([low, high], *within).tolist()  # NaN stays NaN
        reason = "" if agree[column] else _why_none(value, each.n_patients)
        if math.isinf(low) or math.isinf(high):
            low, high, reason = math.nan, math.nan, ONE_VALUE if agree[column] else TOO_WIDE
        note = ONE_SEED if each.n_seeds == 1 and not reason else ""
        means[column] = NestedEstimate(value, low, high, reason=reason, note=note)
    return with_counts(means, totals)


def _why_none(value: float, n_patients: int) -> str:
    if math.isnan(value):
        return NO_VALUE
    if n_patients == 1:
        return ONE_PATIENT
    return "" if n_patients >= FEWEST_PATIENTS else FEW_PATIENTS


def _ends_of_agreement(value: float, n_patients: int, tail: float, within: Range) -> Range:
    """The interval of a value on which all patients agree; each end is missed with the probability `tail` at most."""
    unseen = 1 - tail ** (1 / n_patients)
    return value - unseen * (value - within[0]), value + unseen * (within[1] - value)


def _tail_of_agreement(value: float, n_patients: int, within: Range) -> float:
    """The largest tail with which that interval excludes 0."""
    if value == 0:
        return 1.0
    far = within[0] if value > 0 else within[1]
    return float((1 - value / (value - far)) ** n_patients)
