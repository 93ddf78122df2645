"""Rates over repeated trainings, such as the share of images that recover; `nested` says what is averaged."""

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
    by_column: dict[int, NestedEstimate] = {}
    for columns in columns_by_pattern(totals.counts):
        by_column |= zip(columns.tolist(), _estimates(totals.only(columns), level), strict=True)
    return with_counts(by_column, totals)


def _estimates(totals: CellTotals, level: float) -> list[NestedEstimate]:
    n_patients, n_cells, n_columns = totals.counts.shape
    if not n_cells:
        return [NestedEstimate(reason=NO_VALUE) for _ in range(n_columns)]
    rates = macro(totals.means[None], np.ones((1, n_cells)), totals.cells)[0].tolist()
    if n_patients == 1:
        return [NestedEstimate(rate, reason=ONE_PATIENT) for rate in rates]
    cases = totals.counts.sum((0, 1)).tolist()
    parts = zip(rates, cases, variance_components(totals), strict=True)
    note = ONE_SEED if totals.cells.of_seed.shape[1] == 1 else ""
    return [NestedEstimate(rate, *_limits(rate, n, each, level), note=note) for rate, n, each in parts]


def _limits(rate: float, cases: float, components: Components, level: float) -> tuple[float, float]:
    if min(rate, 1 - rate) < _ROUNDING:
        return clopper_pearson(float(round(rate)), float(components.n_patients), level)
    independent = rate * (1 - rate)
    size = min(independent / components.total, cases) if components.total > 0 else float(components.n_patients)
    known, estimated = (stdtrit(degrees, (1 + level) / 2) for degrees in (cases - 1, components.degrees_of_freedom))
    return clopper_pearson(rate, size * min(1.0, float(known / estimated)) ** 2, level)
