"""Ratios of means over repeated trainings, as `stats.nested` has the means themselves."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.cells import CellTotals, Design, alike_columns, cell_totals, drawn_macros, macro
from heatcheck.stats.resampling.nested import NO_SEED, NestedEstimate, components_of, spreads_of, stretched, with_counts

_ROUNDING = 1e-12  # as near to 0 as a mean comes by it


def nested_ratios(
    parts: Float[np.ndarray, "cases columns"],
    wholes: Float[np.ndarray, "cases columns"],
    design: Design,
    draws: int,
    generator: np.random.Generator,
    whole: str = "the whole",
) -> tuple[NestedEstimate, ...]:
    """Each column's mean of the parts over its mean of the wholes, both drawn together as in `nested_means`.

    Both means are over the cases in which both are defined. A ratio exists only where the mean of the wholes is above
    0, and so in each draw: draws without one are left out and told of (`whole` is their name in reasons), and where
    they are more than an interval leaves out there is none. The stretch for few seeds is that of the ratio's linear
    part, (part - ratio · whole) / mean of the wholes.
    """
    if parts.shape != wholes.shape:
        raise ValueError(f"every part needs its whole, got shapes {parts.shape} and {wholes.shape}")
    n_columns = parts.shape[1]
    if not len(parts):
        return tuple(NestedEstimate(reason=NO_SEED) for _ in range(n_columns))
    undefined = np.isnan(parts) | np.isnan(wholes)
    totals = cell_totals(np.hstack([np.where(undefined, np.nan, values) for values in (parts, wholes)]), design)
    seed = int(generator.integers(2**63))
    found: dict[int, NestedEstimate] = {}
    for columns in alike_columns(totals.counts[:, :, :n_columns]):
        both = totals.only(np.concatenate([columns, columns + n_columns]))
        estimates = _of_ratios(both, draws, np.random.default_rng(seed), whole)
        found |= zip(columns.tolist(), estimates, strict=True)
    return with_counts(found, totals)


def _of_ratios(totals: CellTotals, draws: int, generator: np.random.Generator, whole: str) -> Iterator[NestedEstimate]:
    """The first half of the columns over the second half."""
    n_patients, n_cells, both = totals.counts.shape
    if not n_cells:
        yield from (NestedEstimate(reason=NO_VALUE) for _ in range(both // 2))
        return
    parts, wholes = np.split(macro(totals.means[None], np.ones((1, n_cells)), totals.cells)[0], 2)
    exists = wholes > _ROUNDING
    wholes = np.where(exists, wholes, 1.0)  # where there is no ratio, nothing is made of it
    ratios = parts / wholes
    reasons = ["" if one else f"{whole} is not above 0" for one in exists]
    if n_patients == 1:
        for ratio, reason in zip(ratios.tolist(), reasons, strict=True):
            yield NestedEstimate(reason=reason) if reason else NestedEstimate(ratio, reason=ONE_PATIENT)
        return
    drawn_parts, drawn_wholes = np.split(drawn_macros(totals, draws, generator), 2, axis=1)
    above = drawn_wholes > _ROUNDING
    spreads = spreads_of(np.divide(drawn_parts, drawn_wholes, out=np.full(above.shape, np.nan), where=above), LEVEL)
    sums = np.split(totals.sums, 2, axis=2)
    linear = replace(totals, sums=(sums[0] - ratios * sums[1]) / wholes, counts=totals.counts[:, :, : both // 2])
    for ratio, reason, spread, components in zip(ratios.tolist(), reasons, spreads, components_of(linear), strict=True):
        one = NestedEstimate(reason=reason) if reason else stretched(ratio, spread, components, LEVEL)
        crossed = f"{whole} is not above 0 in {spread.undefined} of {draws} draws"
        yield one if reason or not spread.undefined else _told(one, crossed)


def _told(estimate: NestedEstimate, crossed: str) -> NestedEstimate:
    """The same, with what is to be said of the draws that have no ratio."""
    if math.isnan(estimate.low):
        return replace(estimate, reason=crossed)
    return replace(estimate, note="; ".join(filter(None, (estimate.note, crossed))))
