"""Means over repeated trainings: each seed trains a new model, and all models are tested on the same images.

A value belongs to a seed, a patient and, where several things are averaged, a group (such as a trigger). The estimate
is the mean over groups of the mean over seeds of the mean over images: every group has the same weight however many
seeds it has, and every seed of a group however many images.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri, stdtrit

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.cells import CellTotals, Design, cell_totals, columns_by_pattern, drawn_macros, macro

NO_SEED = "no seed was graded"
ONE_SEED = "one seed: the interval covers differences between images, not between trainings"


@dataclass(frozen=True, slots=True)
class NestedEstimate:
    """A mean over seeds and images with its interval, and how many cases, patients and seeds it is based on."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n_cases: int = 0  # defined values
    n_patients: int = 0  # with at least one such value
    n_seeds: int = 0  # with at least one such value
    n_undefined: int = 0
    reason: str = ""  # why the value or the interval is NaN
    note: str = ""  # what the interval does not cover


def nested_means(
    values: Float[np.ndarray, "cases columns"],
    design: Design,
    draws: int,
    generator: np.random.Generator,
    level: float = LEVEL,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[NestedEstimate, ...]:
    """The mean of each column, with an interval from resampling seeds and patients.

    To compare two columns, pass their differences per case: the images are then paired.

    Each draw takes as many seeds and as many patients as there are, with replacement. One draw serves all groups, and
    one draw of patients all seeds, because a seed trains the models of all groups, and all models are tested on the
    same images. If patients were drawn anew for each seed, an image that is hard for every model would count as chance
    that averages out over the seeds: in simulations, intervals of 95 % then covered the truth in only 61 to 88 %.

    The interval runs between two percentiles of the draws, both moved away from the estimate (`_stretch`), because few
    seeds vary less than the population of seeds. In simulations with 80 patients, whether seeds or images varied more,
    intervals of 95 % covered the truth in 93 to 99 % with 5 seeds, in 91 to 98 % with 3, and in 87 to 99 % with 2,
    where they are wide; without stretching, coverage fell to 82, 75 and 64 %. `within` clips the interval to the range
    of possible values, such as 0 to 1.
    """
    if not len(values):
        return tuple(NestedEstimate(reason=NO_SEED) for _ in range(values.shape[1]))
    totals = cell_totals(values, design)
    seed = int(generator.integers(2**63))
    by_column: dict[int, NestedEstimate] = {}
    for columns in columns_by_pattern(totals.counts):
        # every pattern starts from the same seed, so that a column's interval does not depend on the other columns
        estimates = _estimates(totals.only(columns), draws, np.random.default_rng(seed), level)
        by_column |= zip(columns.tolist(), estimates, strict=True)
    return with_counts({column: _clipped(estimate, within) for column, estimate in by_column.items()}, totals)


def _estimates(
    totals: CellTotals, draws: int, generator: np.random.Generator, level: float
) -> Iterator[NestedEstimate]:
    """The estimate of each column, without counts; all columns have values of the same patients in the same cells."""
    n_patients, n_cells, n_columns = totals.counts.shape
    if not n_cells:
        yield from (NestedEstimate(reason=NO_VALUE) for _ in range(n_columns))
        return
    values = macro(totals.means[None], np.ones((1, n_cells)), totals.cells)[0]
    if n_patients == 1:
        yield from (NestedEstimate(float(value), reason=ONE_PATIENT) for value in values)
        return
    spreads = draw_spreads(drawn_macros(totals, draws, generator), level)
    for value, spread, components in zip(values.tolist(), spreads, variance_components(totals), strict=True):
        yield stretched(value, spread, components, level)


@dataclass(frozen=True, slots=True)
class Components:
    """The parts of the estimate's variance that are due to the choice of seeds and of patients.

    With one image per patient and seed they are those of a two-way analysis of variance: the mean squares of seeds, of
    patients and of the residual (`rest`), each divided by the number of values. The mean squares of seeds and of
    patients both contain the residual, so their sum counts it twice and it is subtracted once.
    """

    seeds: float
    patients: float
    rest: float
    n_seeds: int
    n_patients: int

    @property
    def total(self) -> float:
        """The variance of the estimate; at least that from seeds alone and from patients alone."""
        return self.rest if self._only_rest else self._of_sources

    @property
    def degrees_of_freedom(self) -> float:
        """Satterthwaite's: near the number of seeds where seeds dominate the variance, else near that of patients."""
        if self._only_rest:
            return max(1, self.n_seeds - 1) * (self.n_patients - 1)
        by_seeds = self.seeds**2 / (self.n_seeds - 1) if self.n_seeds > 1 else 0.0
        return self.total**2 / (by_seeds + self.patients**2 / (self.n_patients - 1))

    @property
    def _of_sources(self) -> float:
        return max(self.seeds + self.patients - self.rest, self.seeds, self.patients)

    @property
    def _only_rest(self) -> bool:
        """Whether seeds have equal means and patients have equal means, though single values differ."""
        return self._of_sources <= 1e-12 * self.rest


def patient_influences(totals: CellTotals) -> Float[np.ndarray, "patients columns"]:
    """The influence of each patient on each column's estimate; a column's influences sum to 0."""
    in_group = totals.cells.in_group
    return np.asarray((_influences_on_cells(totals) @ in_group / in_group.sum(0)).mean(2))


def _influences_on_cells(totals: CellTotals) -> Float[np.ndarray, "patients columns cells"]:
    """The influence of a patient on the mean of each cell: the first-order change of a ratio sum / count."""
    return np.asarray(((totals.sums - totals.counts * totals.means) / totals.counts.sum(0)).transpose(0, 2, 1))


def variance_components(totals: CellTotals) -> list[Components]:
    """The variance components of each column, from the influence of each seed and each patient on the estimate."""
    cells, means = totals.cells, totals.means
    n_patients, n_seeds = len(totals.counts), cells.of_seed.shape[1]
    cells_in_group = cells.in_group.sum(0)
    n_groups = len(cells_in_group)
    patient_influence = _influences_on_cells(totals)

    def seed_influence(by_cell: Float[np.ndarray, "*many columns cells"]) -> Float[np.ndarray, "many columns seeds"]:
        # deviation from the group's mean, so that differences between groups are no variance of seeds; a seed that
        # several groups share moves them together, so its deviations are added before they are squared
        from_group = by_cell - (by_cell @ cells.in_group / cells_in_group)[..., cells.groups]
        influence = (from_group / cells_in_group[cells.groups]) @ cells.of_seed * n_seeds / n_groups
        return np.asarray(influence.reshape(-1, *influence.shape[-2:]))

    def variance_of_mean(influence: Float[np.ndarray, "many columns seeds"]) -> Float[np.ndarray, " columns"]:
        if n_seeds == 1:
            return np.zeros(influence.shape[1])
        return np.sum(influence**2, axis=(0, 2)) / (n_seeds * (n_seeds - 1))

    on_estimate = patient_influences(totals)
    unbiased = n_patients / (n_patients - 1)
    of_seeds = variance_of_mean(seed_influence(means.T))
    of_patients = unbiased * np.sum(on_estimate**2, axis=0)
    # how differently a patient moves different seeds: the interaction of seeds and patients
    rest = unbiased * variance_of_mean(seed_influence(patient_influence))
    by_column = zip(of_seeds.tolist(), of_patients.tolist(), rest.tolist(), strict=True)
    return [Components(*variances, n_seeds, n_patients) for variances in by_column]


@dataclass(frozen=True, slots=True)
class DrawSpread:
    """The spread of the draws of one column."""

    draws: int
    undefined: int
    ends: Float[np.ndarray, " two"]  # the percentiles between which the interval runs
    width: float  # from the lowest to the highest draw
    variance: float


def draw_spreads(replicates: Float[np.ndarray, "draws columns"], level: float) -> list[DrawSpread]:
    """The spread of each column over its defined draws; columns without an undefined draw in one pass, for speed."""
    draws, tails = len(replicates), [(1 - level) / 2, (1 + level) / 2]
    columns, undefined = np.ascontiguousarray(replicates.T), np.isnan(replicates).sum(0)
    complete = columns[undefined == 0]
    ends = iter(np.quantile(complete, tails, axis=1).T) if len(complete) else iter(())
    widths, variances = iter(np.ptp(complete, axis=1).tolist()), iter(complete.var(axis=1).tolist())
    spreads = []
    for column, missing in zip(columns, undefined.tolist(), strict=True):
        if not missing:
            spreads.append(DrawSpread(draws, 0, next(ends), next(widths), next(variances)))
        elif missing == draws:
            spreads.append(DrawSpread(draws, missing, np.full(2, np.nan), 0.0, 0.0))
        else:
            defined = column[~np.isnan(column)]
            width, variance = float(np.ptp(defined)), float(defined.var())
            spreads.append(DrawSpread(draws, missing, np.quantile(defined, tails), width, variance))
    return spreads


def stretched(value: float, spread: DrawSpread, components: Components, level: float) -> NestedEstimate:
    """The value with its interval, stretched from the percentiles of the draws; or the reason why there is none."""
    if spread.undefined > (1 - level) * spread.draws:
        return NestedEstimate(value, reason=f"undefined in {spread.undefined} of {spread.draws} draws")
    if spread.width <= 1e-12 * max(1.0, abs(value)):
        return NestedEstimate(value, reason=ONE_VALUE)
    low, high = value + _stretch(components, spread.variance, level) * (spread.ends - value)
    note = ONE_SEED if components.n_seeds == 1 else ""
    return NestedEstimate(value, float(low), float(high), note=note)


def _stretch(components: Components, draw_variance: float, level: float) -> float:
    """The factor by which the distances of the percentiles of the draws from the estimate are multiplied."""
    tail = (1 - level) / 2
    # few seeds estimate their own variance poorly: Student's quantile instead of the normal one
    student = stdtrit(components.degrees_of_freedom, tail) / ndtri(tail)
    # n seeds drawn with replacement vary by (n − 1)/n too little: scaled to the unbiased standard error
    return float(student * math.sqrt(components.total / draw_variance))


def _clipped(estimate: NestedEstimate, within: tuple[float, float]) -> NestedEstimate:
    """The same estimate with its interval clipped to the possible values."""
    slack = 1e-9  # for rounding
    if not (math.isnan(estimate.value) or within[0] - slack <= estimate.value <= within[1] + slack):
        raise ValueError(f"the mean must lie between {within[0]:g} and {within[1]:g}, got {estimate.value:g}")
    low, high = np.clip([estimate.low, estimate.high], *within)  # NaN stays NaN
    return replace(estimate, low=float(low), high=float(high))


def with_counts(by_column: Mapping[int, NestedEstimate], totals: CellTotals) -> tuple[NestedEstimate, ...]:
    """The estimates in the order of their columns, with the numbers of cases, patients and seeds."""
    has_value = totals.counts > 0
    n_cases = totals.counts.sum((0, 1)).astype(int)
    n_patients = has_value.any(1).sum(0)
    n_seeds = (has_value.any(0).T @ totals.cells.of_seed > 0).sum(1)
    return tuple(
        replace(
            by_column[column],
            n_cases=int(n_cases[column]),
            n_patients=int(n_patients[column]),
            n_seeds=int(n_seeds[column]),
            n_undefined=totals.n_cases - int(n_cases[column]),
        )
        for column in sorted(by_column)
    )
