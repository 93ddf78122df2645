"""Correlations of every pair of several scores, with intervals from resampling patients.

`stats.spearman` treats rows as independent, as published figures do; here the rows of one patient are drawn together.
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
MOST_STEPS = 2048  # ranks that are distinguished; with more rows, neighbours share a step
_BLOCK = 64  # draws whose ranks are in memory together

Rows = Float[np.ndarray, "rows columns"]


@dataclass(frozen=True, slots=True)
class Correlations:
    """The correlation of each pair of columns (first and second, first and third, …), and the number of rows used."""

    pearson: tuple[Interval, ...]
    spearman: tuple[Interval, ...]
    n_cases: int  # rows in which every column is defined
    n_patients: int
    n_undefined: int


def correlations(values: Rows, clusters: Clusters, draws: int, generator: np.random.Generator) -> Correlations:
    """Pearson's and Spearman's correlation of each pair of columns, over the rows in which every column is defined.

    Spearman's ranks are computed anew in every draw, because the ranks of a row depend on which patients are drawn.
    """
    defined = ~np.isnan(values).any(1)
    rows, codes = values[defined], cluster_codes(np.asarray(clusters)[defined])
    n_patients = int(codes.max(initial=-1)) + 1
    n_pairs = values.shape[1] * (values.shape[1] - 1) // 2
    if len(rows) < 3:
        none = (Interval(np.nan, reason=FEW_ROWS),) * n_pairs
        return Correlations(none, none, len(rows), n_patients, len(values) - len(rows))
    spearman = bca_from_weights(_rank_correlations(rows, codes), n_patients, draws, generator)
    totals, statistic = _products(rows, codes, n_patients)
    pearson = bca_interval(totals, statistic, draws, generator)
    totals, statistic = _products(np.stack([ranks(column) for column in rows.T], 1), codes, n_patients)
    exact = statistic(totals.sum(0)).tolist()  # draws may rank in steps, but the value itself is exact
    spearman = tuple(replace(interval, value=value) for interval, value in zip(spearman, exact, strict=True))
    return Correlations(pearson, spearman, len(rows), n_patients, len(values) - len(rows))


def _products(
    rows: Rows, codes: Int[np.ndarray, " rows"], n_patients: int
) -> tuple[Float[np.ndarray, "patients totals"], Callable[[Totals], Values]]:
    """Each patient's sums, squares and products, and the statistic that turns their totals into correlations."""
    spread = rows.std(0)
    # standardized columns: else the difference of mean square and squared mean would lose digits
    scaled = (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)
    scaled[:, spread <= 1e-12 * np.abs(rows).max(0)] = 0  # a constant column, up to rounding
    first, second = np.triu_indices(rows.shape[1])
    columns = [np.ones(len(rows)), *scaled.T, *(scaled[:, first] * scaled[:, second]).T]
    totals = np.stack([np.bincount(codes, column, n_patients) for column in columns], 1)
    n_columns = rows.shape[1]

    def statistic(summed: Totals) -> Values:
        means = summed[..., 1:] / summed[..., :1]
        centre, products = means[..., :n_columns], np.zeros((*means.shape[:-1], n_columns, n_columns))
        products[..., first, second] = means[..., n_columns:]
        return _from_covariances(products - centre[..., :, None] * centre[..., None, :])

    return totals, statistic


def _from_covariances(covariances: Float[np.ndarray, "*draws columns columns"]) -> Values:
    """The correlations above the diagonal; NaN where a column does not vary."""
    spread = np.sqrt(np.maximum(np.diagonal(covariances, axis1=-2, axis2=-1), 0))
    spread = np.where(spread > 1e-9, spread, np.nan)
    first, second = np.triu_indices(covariances.shape[-1], 1)
    correlation = covariances[..., first, second] / (spread[..., first] * spread[..., second])
    return np.asarray(np.clip(correlation, -1, 1))  # NaN stays NaN


def _rank_correlations(rows: Rows, codes: Int[np.ndarray, " rows"]) -> Callable[[Weights], Values]:
    """The statistic that returns the rank correlations for given weights of the patients."""
    steps = np.stack([_steps(column) for column in rows.T])
    below = [_rows_below(column_steps, codes) for column_steps in steps]

    def statistic(weights: Weights) -> Values:
        flat = weights.reshape(-1, weights.shape[-1])
        drawn = [pairs for start in range(0, len(flat), _BLOCK) for pairs in block(flat[start : start + _BLOCK])]
        return np.stack(drawn).reshape(*weights.shape[:-1], -1)

    def block(weights: Float[np.ndarray, "draws patients"]) -> Iterator[Float[np.ndarray, " pairs"]]:
        # the midrank of a step is the number of drawn rows below it plus half of those on it: a product with the
        # weights, so that no draw has to be sorted
        midranks = [weights @ rows_below for rows_below in below]
        drawn = np.empty(steps.shape)
        for draw, patient_weights in enumerate(weights):
            row_weights = patient_weights[codes]
            for column, column_steps in enumerate(steps):
                np.take(midranks[column][draw], column_steps, out=drawn[column])
            total = row_weights.sum()
            drawn /= total
            drawn -= 0.5  # the mean of all midranks in any draw
            yield _from_covariances((drawn * row_weights) @ drawn.T / total)

    return statistic


def _steps(values: Float[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """The rank of each row as a step from 0: equal values share a step and, where values are many, so do neighbours.

    The order lost among neighbours on one step changes a correlation by at most about 1 / (MOST_STEPS √rows).
    """
    position = ranks(values)
    if len(np.unique(position)) > MOST_STEPS:
        position = np.floor((position - 0.5) * MOST_STEPS / len(values))
    return np.asarray(np.unique(position, return_inverse=True)[1])


def _rows_below(
    steps: Int[np.ndarray, " rows"], codes: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, "patients steps"]:
    """The number of rows of each patient below each step, plus half of those on it."""
    n_steps, n_patients = int(steps.max()) + 1, int(codes.max()) + 1
    on_step = np.bincount(codes * n_steps + steps, minlength=n_patients * n_steps).reshape(n_patients, n_steps)
    return np.asarray(np.cumsum(on_step, 1) - on_step / 2)
