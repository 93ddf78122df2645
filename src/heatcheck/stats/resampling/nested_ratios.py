"""Ratios of means over repeated trainings; `nested` has the means themselves."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.cells import CellTotals, Design, cell_totals, columns_by_pattern, drawn_macros, macro
from heatcheck.stats.resampling.nested import (
    NO_SEED,
    NestedEstimate,
    draw_spreads,
    stretched,
    variance_components,
    with_counts,
)

_ROUNDING = 1e-12  # a mean that is this near to 0 differs from it by rounding only


def nested_ratios(
    parts: Float[np.ndarray, "cases columns"],
    wholes: Float[np.ndarray, "cases columns"],
    design: Design,
    draws: int,
    generator: np.random.Generator,
    whole: str = "the whole",
) -> tuple[NestedEstimate, ...]:
    """Each column's mean of the parts over its mean of the wholes, both resampled together as in `nested_means`.

    Both means are over the cases in which both are defined. A ratio exists only where the mean of the wholes is above
    0. Draws without one are left out and counted in the note (`whole` is the name used there); if they are more than
    the share that an interval cuts off, there is no interval.
    """
    if parts.shape != wholes.shape:
        raise ValueError(f"parts and wholes must have the same shape, got {parts.shape} and {wholes.shape}")
    n_columns = parts.shape[1]
    if not len(parts):
        return tuple(NestedEstimate(reason=NO_SEED) for _ in range(n_columns))
    undefined = np.isnan(parts) | np.isnan(wholes)
    totals = cell_totals(np.hstack([np.where(undefined, np.nan, values) for values in (parts, wholes)]), design)
    seed = int(generator.integers(2**63))
    by_column: dict[int, NestedEstimate] = {}
    for columns in columns_by_pattern(totals.counts[:, :, :n_columns]):
        parts_and_wholes = totals.only(np.concatenate([columns, columns + n_columns]))
        estimates = _estimates(parts_and_wholes, draws, np.random.default_rng(seed), whole)
        by_column |= zip(columns.tolist(), estimates, strict=True)
    return with_counts(by_column, totals)


def _estimates(
    totals: CellTotals, draws: int, generator: np.random.Generator, whole_name: str
) -> Iterator[NestedEstimate]:
    """The ratios of the first half of the columns to the second half, without counts."""
    n_patients, n_cells, n_columns = totals.counts.shape
    if not n_cells:
        yield from (NestedEstimate(reason=NO_VALUE) for _ in range(n_columns // 2))
        return
    parts, wholes = np.split(macro(totals.means[None], np.ones((1, n_cells)), totals.cells)[0], 2)
    exists = wholes > _ROUNDING
    wholes = np.where(exists, wholes, 1.0)  # avoids a division by 0; the quotient is not used
    ratios = parts / wholes
    reasons = ["" if has_ratio else f"{whole_name} is not above 0" for has_ratio in exists]
    if n_patients == 1:
        for ratio, reason in zip(ratios.tolist(), reasons, strict=True):
            yield NestedEstimate(reason=reason) if reason else NestedEstimate(ratio, reason=ONE_PATIENT)
        return
    drawn_parts, drawn_wholes = np.split(drawn_macros(totals, draws, generator), 2, axis=1)
    positive = drawn_wholes > _ROUNDING
    drawn_ratios = np.divide(drawn_parts, drawn_wholes, out=np.full(positive.shape, np.nan), where=positive)
    # the variance components of a ratio are those of its linearization, (part − ratio · whole) / mean of the wholes
    sums = np.split(totals.sums, 2, axis=2)
    linear = replace(totals, sums=(sums[0] - ratios * sums[1]) / wholes, counts=totals.counts[:, :, : n_columns // 2])
    spreads, components = draw_spreads(drawn_ratios, LEVEL), variance_components(linear)
    for ratio, reason, spread, parts_of_variance in zip(ratios.tolist(), reasons, spreads, components, strict=True):
        if reason:
            yield NestedEstimate(reason=reason)
            continue
        estimate = stretched(ratio, spread, parts_of_variance, LEVEL)
        if spread.undefined:
            estimate = _with_remark(estimate, f"{whole_name} is not above 0 in {spread.undefined} of {draws} draws")
        yield estimate


def _with_remark(estimate: NestedEstimate, remark: str) -> NestedEstimate:
    """The estimate with the remark as its reason if it has no interval, else added to its note."""
    if math.isnan(estimate.low):
        return replace(estimate, reason=remark)
    return replace(estimate, note="; ".join(filter(None, (estimate.note, remark))))
