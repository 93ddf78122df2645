"""Means with equal weight for every fold and, within a fold, for every class, however many cases each has.

Without classes this is the mean over folds; with classes, the mean of 0 (wrong) and 1 (right) is balanced accuracy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from heatcheck.stats.ratios import Totals, Values, ratio
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import LEVEL, MeanEstimate, bca_of_each
from heatcheck.stats.resampling.clusters import Clusters, Weights, cluster_codes

Labels = Shaped[np.ndarray, " cases"]
ONE_IN_A_GROUP = "a fold, or a class in it, has only one patient"
_BLOCK = 2**21  # numbers held at once


@dataclass(frozen=True, slots=True)
class Strata:
    """The group of each case: its fold and, where classes get equal weight, its class."""

    folds: Labels
    classes: Labels | None = None
    wanted: Sequence[str] = ()  # classes that every fold must have, in addition to those that any fold has

    @property
    def codes(self) -> tuple[Int[np.ndarray, " cases"], Float[np.ndarray, " groups"]]:
        """The code of each case's group, and the weight of each group in the mean."""
        folds = cluster_codes(self.folds)
        classes = np.zeros_like(folds) if self.classes is None else cluster_codes(self.classes)
        pairs, codes = np.unique(np.stack([folds, classes]), axis=1, return_inverse=True)
        groups_in_fold = np.bincount(pairs[0])
        return codes.ravel(), 1 / (len(groups_in_fold) * groups_in_fold[pairs[0]])

    @property
    def lacking(self) -> str:
        """A sentence that names a fold and the classes missing in it; empty where every fold has every class."""
        if self.classes is None:
            return ""
        every_class = dict.fromkeys([*self.wanted, *np.unique(self.classes).tolist()])
        for fold in np.unique(self.folds).tolist():
            present = set(self.classes[self.folds == fold].tolist())
            missing = [str(name) for name in every_class if name not in present]
            if missing:
                return f"fold {fold} has no test case of {' or '.join(missing)}, so no balanced accuracy"
        return ""


def balanced_values(values: Float[np.ndarray, "cases columns"], strata: Strata) -> Float[np.ndarray, " columns"]:
    """The mean of each column with equal weight for folds and for classes in a fold; NaN where a fold lacks a class."""
    if strata.lacking:
        return np.full(values.shape[1], np.nan)
    codes, shares = strata.codes
    return np.asarray((shares / np.bincount(codes))[codes] @ values)


def balanced_means(
    values: Float[np.ndarray, "cases columns"],
    strata: Strata,
    clusters: Clusters,
    draws: int,
    generator: np.random.Generator,
) -> tuple[MeanEstimate, ...]:
    """The same means with intervals from resampling patients within their group; every value must be defined.

    Patients are drawn within groups so that no draw misses a group, however small; the interval therefore covers other
    patients in the same folds and classes. A patient with cases of several classes is drawn with the group of the
    first. There is no interval where many draws then lack a class, nor where a group has only one patient.
    """
    if values.ndim != 2 or len(values) != len(clusters):
        raise ValueError(f"values must be one row per case, got shape {values.shape} for {len(clusters)} cases")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite, got NaN or infinity; leave out cases with an undefined value")
    (codes, shares), patients = strata.codes, cluster_codes(clusters)
    n_groups, n_patients, n_columns = len(shares), int(patients.max(initial=-1)) + 1, values.shape[1]
    if strata.lacking:
        undefined = MeanEstimate(np.nan, np.nan, np.nan, len(values), n_patients, 0, strata.lacking)
        return (undefined,) * n_columns
    # one row per patient, with the sums and the number of its cases in every group
    cell = patients * n_groups + codes
    columns = [np.bincount(cell, column, n_patients * n_groups) for column in (*values.T, np.ones(len(values)))]
    totals = np.stack(columns, -1).reshape(n_patients, -1)

    def statistic(summed: Totals) -> Values:
        by_group = summed.reshape(*summed.shape[:-1], n_groups, n_columns + 1)
        means = ratio(by_group[..., :-1], by_group[..., -1:])
        return np.asarray(np.einsum("g,...gc->...c", shares, means))

    grand_total = totals.sum(axis=0)
    value = statistic(grand_total)
    _, first_case = np.unique(patients, return_index=True)
    group_of = codes[first_case]
    if (np.unique(group_of, return_counts=True)[1] < 2).any():
        intervals = tuple(Interval(float(v), reason=ONE_IN_A_GROUP) for v in value)
    else:
        drawn = [statistic(weights @ totals) for weights in _weights_within(group_of, draws, generator)]
        # row i of the differences leaves patient i out: the jackknife
        intervals = bca_of_each(value, np.concatenate(drawn), statistic(grand_total - totals), LEVEL)
    return tuple(MeanEstimate(i.value, i.low, i.high, len(values), n_patients, 0, i.reason) for i in intervals)


def _weights_within(
    groups: Int[np.ndarray, " patients"], draws: int, generator: np.random.Generator
) -> Iterator[Weights]:
    """Blocks of rows, one per draw: the weight of each patient when each group is resampled on its own."""
    if draws < 1:
        raise ValueError(f"a bootstrap needs at least one draw, got {draws}")
    rows = max(1, _BLOCK // len(groups))
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    for start in range(0, draws, rows):
        weights = np.empty((min(rows, draws - start), len(groups)))
        for group in members:
            # n draws from n patients would make the variance of a mean too small by (n − 1)/n, which matters in small
            # groups; n − 1 draws, weighted up to n, are unbiased (Rao and Wu 1988, J Am Stat Assoc 83:231)
            n = len(group)
            times = generator.multinomial(n - 1, np.full(n, 1 / n), len(weights))
            weights[:, group] = times * (n / (n - 1))
        yield weights
