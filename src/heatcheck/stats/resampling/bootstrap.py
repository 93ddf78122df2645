"""Intervals by resampling patients, everything that is compared on one draw."""

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
    """The mean of one column with its interval and what it rests on."""

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

    Patients without a defined value in a column take no part in it. Columns with the same patients share their
    draws, and a column's interval does not depend on the columns beside it.
    """
    totals = cluster_totals(values, clusters)
    seed = int(generator.integers(2**63))
    patterns, pattern_of = np.unique(totals.counts > 0, axis=1, return_inverse=True)
    found: dict[int, Interval] = {}
    for number, takes_part in enumerate(patterns.T):
        columns = np.flatnonzero(pattern_of.ravel() == number)
        joined = np.hstack([totals.sums[:, columns], totals.counts[:, columns]])[takes_part]
        intervals = bca_interval(joined, means, draws, np.random.default_rng(seed), level)
        found |= zip(columns.tolist(), intervals, strict=True)
    return tuple(_estimate(found[column], totals.counts[:, column], len(values)) for column in sorted(found))


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
    """One interval per number that the statistic makes of the summed totals of the patients drawn.

    The statistic gets totals[..., columns] and returns one number or several per set of totals, NaN where undefined.
    """
    whole = totals.sum(axis=0)
    value = statistic(whole)
    if len(totals) < 2:
        return _without_interval(value, len(totals))
    drawn = [statistic(weights @ totals) for weights in resampled_weights(len(totals), draws, generator)]
    # `bca_from_weights` for weighted sums; subtracting spares a weight for every pair of patients
    return _intervals(value, np.concatenate(drawn), statistic(whole - totals), level)


def bca_from_weights(
    statistic: Callable[[Weights], Values],
    n_clusters: int,
    draws: int,
    generator: np.random.Generator,
    level: float = LEVEL,
) -> tuple[Interval, ...]:
    """One interval per number that the statistic makes of how often each patient counts.

    The statistic gets weights[..., patients] and returns one number or several per set of weights, NaN where undefined.
    It is asked for no more sets than there are draws and `clusters.MOST_GROUPS`, however many patients there are.
    """
    value = statistic(np.ones(n_clusters))
    if n_clusters < 2:
        return _without_interval(value, n_clusters)
    drawn = [statistic(weights) for weights in resampled_weights(n_clusters, draws, generator)]
    left_out = [statistic(weights) for weights in left_out_weights(n_clusters, generator)]
    return _intervals(value, np.concatenate(drawn), np.concatenate(left_out), level)


def bca_from_case_weights(
    statistic: Callable[[Float[np.ndarray, "*draws cases"]], Values],
    clusters: Clusters,
    draws: int,
    generator: np.random.Generator,
    level: float = LEVEL,
) -> tuple[Interval, ...]:
    """One interval per number that the statistic makes of how often each case counts: as often as its patient.

    For statistics that are no function of sums, such as a weighted AUROC. Leave out cases that take no part first.
    """
    codes = cluster_codes(clusters)
    n_clusters = int(codes.max(initial=-1)) + 1
    return bca_from_weights(lambda weights: statistic(weights[..., codes]), n_clusters, draws, generator, level)


def _without_interval(value: Values, n_clusters: int) -> tuple[Interval, ...]:
    reason = ONE_PATIENT if n_clusters else NO_PATIENT
    return tuple(Interval(float(v), reason=NO_VALUE if n_clusters and np.isnan(v) else reason) for v in value.flat)


def _intervals(value: Values, replicates: np.ndarray, jackknife: np.ndarray, level: float) -> tuple[Interval, ...]:
    by_value = replicates.reshape(len(replicates), -1).T
    without_one = jackknife.reshape(len(jackknife), -1).T
    return tuple(bca(float(v), r, j, level) for v, r, j in zip(value.flat, by_value, without_one, strict=True))
