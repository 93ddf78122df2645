"""Intervals from resampling patients; what is compared with each other is computed on the same draws."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heatcheck.stats.ratios import Totals, Values, means
from heatcheck.stats.resampling.bca import NO_PATIENT, NO_VALUE, ONE_PATIENT, Interval, bca
from heatcheck.stats.resampling.clusters import (
    Clusters,
    Weights,
    cluster_codes,
    cluster_totals,
    left_out_weights,
    resampled_weights,
)

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """The mean of one column with its interval, and how many cases and patients it is based on."""

    value: float
    low: float
    high: float
    n_cases: int  # with a defined value
    n_patients: int  # with at least one such case
    n_undefined: int
    reason: str = ""


def mean_estimates(
    values: Float[np.ndarray, "cases columns"],
    clusters: Clusters,
    draws: int,
    generator: np.random.Generator,
    level: float = LEVEL,
) -> tuple[MeanEstimate, ...]:
    """The mean of each column over its defined values, with an interval from resampling that column's patients.

    Patients without a defined value in a column are not drawn for it. Columns with the same patients share their
    draws, and a column's interval does not depend on which other columns are given.
    """
    totals = cluster_totals(values, clusters)
    seed = int(generator.integers(2**63))
    patterns, pattern_of = np.unique(totals.counts > 0, axis=1, return_inverse=True)
    by_column: dict[int, Interval] = {}
    for pattern, has_value in enumerate(patterns.T):
        columns = np.flatnonzero(pattern_of.ravel() == pattern)
        joined = np.hstack([totals.sums[:, columns], totals.counts[:, columns]])[has_value]
        # every pattern starts from the same seed: the order and number of patterns must not change a result
        intervals = bca_interval(joined, means, draws, np.random.default_rng(seed), level)
        by_column |= zip(columns.tolist(), intervals, strict=True)
    return tuple(_estimate(by_column[column], totals.counts[:, column], len(values)) for column in sorted(by_column))


def _estimate(interval: Interval, counts: Float[np.ndarray, " patients"], n_cases: int) -> MeanEstimate:
    defined = int(counts.sum())
    return MeanEstimate(
        interval.value,
        interval.low,
        interval.high,
        n_cases=defined,
        n_patients=int(np.count_nonzero(counts)),
        n_undefined=n_cases - defined,
        reason=interval.reason,
    )


def bca_interval(
    totals: Float[np.ndarray, "patients columns"],
    statistic: Callable[[Totals], Values],
    draws: int,
    generator: np.random.Generator,
    level: float = LEVEL,
) -> tuple[Interval, ...]:
    """One interval for each number that the statistic returns for the summed totals of the patients drawn.

    The statistic gets totals[..., columns] and returns one or several numbers per set of totals, NaN where undefined.
    """
    grand_total = totals.sum(axis=0)
    value = statistic(grand_total)
    if len(totals) < 2:
        return _without_interval(value, len(totals))
    drawn = [statistic(weights @ totals) for weights in resampled_weights(len(totals), draws, generator)]
    # row i of the differences leaves patient i out: the jackknife, without the patients × patients weights that
    # `bca_from_weights` needs
    return bca_of_each(value, np.concatenate(drawn), statistic(grand_total - totals), level)


def bca_from_weights(
    statistic: Callable[[Weights], Values],
    n_clusters: int,
    draws: int,
    generator: np.random.Generator,
    level: float = LEVEL,
) -> tuple[Interval, ...]:
    """One interval for each number that the statistic returns for given weights of the patients.

    The statistic gets weights[..., patients] and returns one or several numbers per set of weights, NaN where
    undefined. It is evaluated on at most `draws` + `clusters.MOST_GROUPS` + 1 sets, however many patients there are.
    """
    value = statistic(np.ones(n_clusters))
    if n_clusters < 2:
        return _without_interval(value, n_clusters)
    drawn = [statistic(weights) for weights in resampled_weights(n_clusters, draws, generator)]
    left_out = [statistic(weights) for weights in left_out_weights(n_clusters, generator)]
    return bca_of_each(value, np.concatenate(drawn), np.concatenate(left_out), level)


def bca_from_case_weights(
    statistic: Callable[[Float[np.ndarray, "*draws cases"]], Values],
    clusters: Clusters,
    draws: int,
    generator: np.random.Generator,
    level: float = LEVEL,
) -> tuple[Interval, ...]:
    """One interval for each number that the statistic returns for given weights of the cases: those of their patients.

    For statistics that are not a function of sums, such as a weighted AUROC. Pass only the cases that it uses.
    """
    codes = cluster_codes(clusters)
    n_clusters = int(codes.max(initial=-1)) + 1
    return bca_from_weights(lambda weights: statistic(weights[..., codes]), n_clusters, draws, generator, level)


def _without_interval(value: Values, n_clusters: int) -> tuple[Interval, ...]:
    reason = ONE_PATIENT if n_clusters else NO_PATIENT
    return tuple(Interval(float(v), reason=NO_VALUE if n_clusters and np.isnan(v) else reason) for v in value.flat)


def bca_of_each(value: Values, replicates: np.ndarray, jackknife: np.ndarray, level: float) -> tuple[Interval, ...]:
    """The interval of each number of a statistic; replicates and jackknife have one row per draw or group left out."""
    drawn = replicates.reshape(len(replicates), -1).T
    left_out = jackknife.reshape(len(jackknife), -1).T
    return tuple(bca(float(v), r, j, level) for v, r, j in zip(value.flat, drawn, left_out, strict=True))
