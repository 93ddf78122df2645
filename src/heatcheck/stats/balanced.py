"""Means in which groups of cases count the same, however many cases they have: classes within folds, and folds.

With one group a fold this is the mean over folds; with a group for each class it is that of balanced values.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from heatcheck.stats.bootstrap import MeanEstimate, bca_interval
from heatcheck.stats.clusters import Clusters, cluster_codes
from heatcheck.stats.ratios import Totals, Values

Labels = Shaped[np.ndarray, " cases"]


@dataclass(frozen=True, slots=True)
class Strata:
    """The group of each case: its fold and, where classes are to count the same, its class."""

    folds: Labels
    classes: Labels | None = None

    @property
    def codes(self) -> tuple[Shaped[np.ndarray, " cases"], Float[np.ndarray, " groups"]]:
        """The number of each case's group, and how much each group counts in the whole."""
        folds = cluster_codes(self.folds)
        classes = np.zeros_like(folds) if self.classes is None else cluster_codes(self.classes)
        pairs, codes = np.unique(np.stack([folds, classes]), axis=1, return_inverse=True)
        of_fold = np.bincount(pairs[0])
        return codes.ravel(), 1 / (len(of_fold) * of_fold[pairs[0]])


def balanced_values(values: Float[np.ndarray, "cases columns"], strata: Strata) -> Float[np.ndarray, " columns"]:
    """The mean over folds of each column's mean over classes of the cases' means."""
    codes, shares = strata.codes
    return np.asarray((shares / np.bincount(codes))[codes] @ values)


def balanced_means(
    values: Float[np.ndarray, "cases columns"],
    strata: Strata,
    clusters: Clusters,
    draws: int,
    generator: np.random.Generator,
) -> tuple[MeanEstimate, ...]:
    """The same with intervals, patients resampled; every value must be defined.

    A draw that misses a class says nothing of it: such draws are left out, and there is no interval where they are
    many.
    """
    if values.ndim != 2 or len(values) != len(clusters):
        raise ValueError(f"values must be one row per case, got shape {values.shape} for {len(clusters)} cases")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; leave out cases of which one is undefined")
    (codes, shares), patients = strata.codes, cluster_codes(clusters)
    n_groups, n_patients, n_columns = len(shares), int(patients.max(initial=-1)) + 1, values.shape[1]
    place, cells = patients * n_groups + codes, n_patients * n_groups
    columns = [np.bincount(place, column, cells) for column in (*values.T, np.ones(len(values)))]
    totals = np.stack(columns, -1).reshape(n_patients, -1)

    def statistic(summed: Totals) -> Values:
        by_group = summed.reshape(*summed.shape[:-1], n_groups, n_columns + 1)
        counts = by_group[..., -1:]
        sums = by_group[..., :-1]
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        return np.asarray(np.einsum("g,...gc->...c", shares, means))

    found = bca_interval(totals, statistic, draws, generator)
    return tuple(MeanEstimate(one.value, one.low, one.high, len(values), n_patients, 0, one.reason) for one in found)
