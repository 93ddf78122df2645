"""How closely several scores go together, every pair of them, with patients resampled.

`stats.spearman` takes rows for independent, as published figures do; here the rows of one patient are drawn together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from heatcheck.stats.ratios import Totals, Values
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import bca_from_weights, bca_interval
from heatcheck.stats.resampling.clusters import Clusters, Weights, cluster_codes
from heatcheck.stats.spearman import ranks

FEW_ROWS = "fewer than three rows"
MOST_STEPS = 2048  # of ranks; more rows than steps share them
_AT_ONCE = 64  # draws whose ranks are in memory together

Rows = Float[np.ndarray, "rows columns"]


@dataclass(frozen=True, slots=True)
class Correlations:
    """The correlation of each pair of columns (first and second, first and third, …), and what all of them rest on."""

    pearson: tuple[Interval, ...]
    spearman: tuple[Interval, ...]
    n_cases: int  # rows in which every column is defined
    n_patients: int
    n_undefined: int


def correlations(values: Rows, clusters: Clusters, draws: int, generator: np.random.Generator) -> Correlations:
    """Pearson's and Spearman's correlation of each pair of columns, over the rows in which every column is defined.

    Spearman's ranks are taken anew in every draw: kept as they are in the whole, they would hide that other patients
    would have ranked otherwise.
    """
    defined = ~np.isnan(values).any(1)
    rows, codes = values[defined], cluster_codes(np.asarray(clusters)[defined])
    n_patients = int(codes.max(initial=-1)) + 1
    n_pairs = values.shape[1] * (values.shape[1] - 1) // 2
    if len(rows) < 3:
        none = (Interval(np.nan, reason=FEW_ROWS),) * n_pairs
        return Correlations(none, none, len(rows), n_patients, len(values) - len(rows))
    of_ranks = bca_from_weights(_ranked(rows, codes), n_patients, draws, generator)
    totals, statistic = _products(rows, codes, n_patients)
    of_values = bca_interval(totals, statistic, draws, generator)
    totals, statistic = _products(np.stack([ranks(column) for column in rows.T], 1), codes, n_patients)
    exact = statistic(totals.sum(0)).tolist()  # where rows are many, draws rank them in steps
    of_ranks = tuple(replace(one, value=value) for one, value in zip(of_ranks, exact, strict=True))
    return Correlations(of_values, of_ranks, len(rows), n_patients, len(values) - len(rows))


def _products(
    rows: Rows, codes: Int[np.ndarray, " rows"], n_patients: int
) -> tuple[Float[np.ndarray, "patients totals"], Callable[[Totals], Values]]:
    """Each patient's sums, squares and products, and what makes correlations of their totals."""
    spread = rows.std(0)
    scaled = (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)  # near 0 and 1: differences of squares keep digits
    scaled[:, spread <= 1e-12 * np.abs(rows).max(0)] = 0  # the rest of a constant is rounding
    first, second = np.triu_indices(rows.shape[1])
    columns = [np.ones(len(rows)), *scaled.T, *(scaled[:, first] * scaled[:, second]).T]
    totals = np.stack([np.bincount(codes, column, n_patients) for column in columns], 1)
    n_columns = rows.shape[1]

    def statistic(summed: Totals) -> Values:
        means = summed[..., 1:] / summed[..., :1]
        centre, products = means[..., :n_columns], np.empty((*means.shape[:-1], n_columns, n_columns))
        products[..., first, second] = means[..., n_columns:]
        return _of_products(products - centre[..., :, None] * centre[..., None, :])

    return totals, statistic


def _of_products(products: Float[np.ndarray, "*draws columns columns"]) -> Values:
    """The correlations above the diagonal; NaN where a column does not vary."""
    spread = np.sqrt(np.maximum(np.diagonal(products, axis1=-2, axis2=-1), 0))
    spread = np.where(spread > 1e-9, spread, np.nan)
    first, second = np.triu_indices(products.shape[-1], 1)
    found = products[..., first, second] / (spread[..., first] * spread[..., second])
    return np.asarray(np.clip(found, -1, 1))  # NaN stays


def _ranked(rows: Rows, codes: Int[np.ndarray, " rows"]) -> Callable[[Weights], Values]:
    """What makes rank correlations of how often each patient counts."""
    steps = np.stack([_steps(column) for column in rows.T])
    below = [_rows_below(step, codes) for step in steps]

    def statistic(weights: Weights) -> Values:
        flat = weights.reshape(-1, weights.shape[-1])
        found = [one for start in range(0, len(flat), _AT_ONCE) for one in block(flat[start : start + _AT_ONCE])]
        return np.stack(found).reshape(*weights.shape[:-1], -1)

    def block(weights: Float[np.ndarray, "draws patients"]) -> Iterator[Float[np.ndarray, " pairs"]]:
        middles = [weights @ each for each in below]  # of every step, in every draw
        drawn = np.empty(steps.shape)
        for number, own in enumerate(weights):
            counted = own[codes]
            for column, step in enumerate(steps):
                np.take(middles[column][number], step, out=drawn[column])
            total = counted.sum()
            drawn /= total
            drawn -= 0.5  # the mean of all midranks, whatever is drawn
            yield _of_products((drawn * counted) @ drawn.T / total)

    return statistic


def _steps(values: Float[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Which step each row stands on, counted from 0: rows of one value share it, and neighbours where values are many.

    What neighbours on one step lose of their order moves a correlation by some 1 / (MOST_STEPS √rows) at most.
    """
    place = ranks(values)
    if len(np.unique(place)) > MOST_STEPS:
        place = np.floor((place - 0.5) * MOST_STEPS / len(values))
    return np.asarray(np.unique(place, return_inverse=True)[1])


def _rows_below(
    steps: Int[np.ndarray, " rows"], codes: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, "patients steps"]:
    """How many rows of each patient lie below each step, those on it counting half."""
    n_steps, n_patients = int(steps.max()) + 1, int(codes.max()) + 1
    on_step = np.bincount(codes * n_steps + steps, minlength=n_patients * n_steps).reshape(n_patients, n_steps)
    return np.asarray(np.cumsum(on_step, 1) - on_step / 2)
