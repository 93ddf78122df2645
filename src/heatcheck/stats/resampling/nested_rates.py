"""Rates over repeated trainings, such as the share of images that recover; `nested` says what is averaged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from heatcheck.stats.rates import clopper_pearson
from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.cells import CellTotals, Design, cell_totals, columns_by_pattern, macro
from heatcheck.stats.resampling.nested import (
    NO_SEED,
    ONE_SEED,
    Components,
    NestedEstimate,
    variance_components,
    with_counts,
)
from heatcheck.stats.resampling.nested_studentised import ComparedMean

_SMALLEST_P, _HALVINGS = 1e-12, 40  # of the search for a p-value
_ROUNDING = 1e-9  # rates this near to 0 or 1 are meant to be 0 or 1


def nested_rates(
    values: Float[np.ndarray, "cases columns"], design: Design, level: float = LEVEL
) -> tuple[NestedEstimate, ...]:
    """The mean of each column of zeros and ones, with an interval that exists where all are ones.

    Clopper and Pearson's interval for the number of independent cases that would know the rate as well as these seeds
    and patients do, fewer still where few of them say how much they agree (`rates.rate_interval`, with the variance
    and the degrees of freedom of `nested.Components`). If all or none are ones, every patient counts as one case.
    """
    if not len(values):
        return tuple(NestedEstimate(reason=NO_SEED) for _ in range(values.shape[1]))
    totals = cell_totals(values, design)
    return with_counts(dict(enumerate(rate.estimate(level) for rate in _rates(totals))), totals)


def rates_against(
    values: Float[np.ndarray, "cases columns"], design: Design, share: float, level: float = LEVEL
) -> tuple[ComparedMean, ...]:
    """By how much each column's rate exceeds a share, with intervals that hold together (Bonferroni) and p-values.

    The p-value is the smallest at which the interval of that level excludes the share.
    """
    together = values.shape[1]
    if not len(values):
        empty = ComparedMean(NestedEstimate(reason=NO_SEED), math.nan, math.nan, np.zeros(0), 0.0)
        return (empty,) * together
    totals = cell_totals(values, design)
    rates = _rates(totals)
    corrected = 1 - (1 - level) / together
    compared = []
    for rate, mean in zip(
        rates, with_counts(dict(enumerate(r.estimate(corrected) for r in rates)), totals), strict=True
    ):
        above = replace(mean, value=mean.value - share, low=mean.low - share, high=mean.high - share)
        p_value = math.nan if math.isnan(mean.low) else rate.p_value(share)
        p_adjusted = p_value if math.isnan(p_value) else min(1.0, p_value * together)
        compared.append(ComparedMean(above, p_value, p_adjusted, np.zeros(0), 0.0))
    return tuple(compared)


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate with the parts of its variance."""

    value: float
    cases: float
    components: Components | None  # None for fewer than two patients

    def estimate(self, level: float) -> NestedEstimate:
        """The rate with the interval of that level, without counts."""
        if math.isnan(self.value):
            return NestedEstimate(reason=NO_VALUE)
        if self.components is None:
            return NestedEstimate(self.value, reason=ONE_PATIENT)
        note = ONE_SEED if self.components.n_seeds == 1 else ""
        return NestedEstimate(self.value, *_limits(self.value, self.cases, self.components, level), note=note)

    def p_value(self, share: float) -> float:
        """The smallest α at which the interval of level 1 − α excludes the share."""
        smallest, largest = _SMALLEST_P, 1.0
        for _ in range(_HALVINGS):
            middle = math.sqrt(smallest * largest)
            given = self.estimate(1 - middle)
            if given.low > share or given.high < share:
                largest = middle
            else:
                smallest = middle
        return largest


def _rates(totals: CellTotals) -> list[_Rate]:
    """The rate of each column."""
    found: dict[int, _Rate] = {}
    for columns in columns_by_pattern(totals.counts):
        part = totals.only(columns)
        n_patients, n_cells, n_columns = part.counts.shape
        values, components = [math.nan] * n_columns, [None] * n_columns
        if n_cells:
            values = macro(part.means[None], np.ones((1, n_cells)), part.cells)[0].tolist()
        several: Sequence[Components | None] = variance_components(part) if n_patients > 1 and n_cells else components
        cases = part.counts.sum((0, 1)).tolist()
        each = (_Rate(*parts) for parts in zip(values, cases, several, strict=True))
        found |= zip(columns.tolist(), each, strict=True)
    return [found[column] for column in sorted(found)]


def _limits(rate: float, cases: float, components: Components, level: float) -> tuple[float, float]:
    if min(rate, 1 - rate) < _ROUNDING:
        return clopper_pearson(float(round(rate)), float(components.n_patients), level)
    independent = rate * (1 - rate)
    size = min(independent / components.total, cases) if components.total > 0 else float(components.n_patients)
    known, estimated = (stdtrit(degrees, (1 + level) / 2) for degrees in (cases - 1, components.degrees_of_freedom))
    return clopper_pearson(rate, size * min(1.0, float(known / estimated)) ** 2, level)
