"""Means in which groups of cases count the same, however many cases they have: classes within folds, and folds.

With one group a fold this is the mean over folds; with a group for each class it is that of balanced values.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from heatcheck.stats.ratios import Totals, Values
from heatcheck.stats.resampling.bca import Interval, bca
from heatcheck.stats.resampling.bootstrap import LEVEL, MeanEstimate
from heatcheck.stats.resampling.clusters import Clusters, Weights, cluster_codes

Labels = Shaped[np.ndarray, " cases"]
ONE_IN_A_GROUP = "one patient alone stands for a fold, or for a class in it, so resampling cannot say how sure it is"
_BLOCK = 2**21  # numbers held at once


@dataclass(frozen=True, slots=True)
class Strata:
    """The group of each case: its fold and, where classes are to count the same, its class."""

    folds: Labels
    classes: Labels | None = None
    wanted: Sequence[str] = ()  # classes that every fold must have, beside those that any fold has

    @property
    def codes(self) -> tuple[Int[np.ndarray, " cases"], Float[np.ndarray, " groups"]]:
        """The number of each case's group, and how much each group counts in the whole."""
        folds = cluster_codes(self.folds)
        classes = np.zeros_like(folds) if self.classes is None else cluster_codes(self.classes)
        pairs, codes = np.unique(np.stack([folds, classes]), axis=1, return_inverse=True)
        of_fold = np.bincount(pairs[0])
        return codes.ravel(), 1 / (len(of_fold) * of_fold[pairs[0]])

    @property
    def lacking(self) -> str:
        """Which class has no case in which fold, in words; empty where every fold has every class."""
        if self.classes is None:
            return ""
        everyone = dict.fromkeys([*self.wanted, *np.unique(self.classes).tolist()])
        for fold in np.unique(self.folds).tolist():
            there = set(self.classes[self.folds == fold].tolist())
            names = [str(name) for name in everyone if name not in there]
            if names:
                return f"fold {fold} has no test case of {' or '.join(names)}, so no balanced accuracy"
        return ""


def balanced_values(values: Float[np.ndarray, "cases columns"], strata: Strata) -> Float[np.ndarray, " columns"]:
    """The mean over folds of each column's mean over classes of the cases' means; NaN where a fold lacks a class."""
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
    """The same with intervals, patients resampled within their group; every value must be defined.

    Drawing within groups, no draw misses one, however small they are; the interval thus speaks of other patients in
    the same folds and classes. Of n patients n − 1 are drawn, for as many as there are would give small groups too
    narrow an interval (Rao and Wu 1988, J Am Stat Assoc 83:231). A patient with cases of several classes is drawn with
    those of the first one; where that leaves many draws without a class, there is no interval, nor where a group has
    one patient only.
    """
    if values.ndim != 2 or len(values) != len(clusters):
        raise ValueError(f"values must be one row per case, got shape {values.shape} for {len(clusters)} cases")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; leave out cases of which one is undefined")
    (codes, shares), patients = strata.codes, cluster_codes(clusters)
    n_groups, n_patients, n_columns = len(shares), int(patients.max(initial=-1)) + 1, values.shape[1]
    if strata.lacking:
        nothing = MeanEstimate(np.nan, np.nan, np.nan, len(values), n_patients, 0, strata.lacking)
        return (nothing,) * n_columns
    place, cells = patients * n_groups + codes, n_patients * n_groups
    columns = [np.bincount(place, column, cells) for column in (*values.T, np.ones(len(values)))]
    totals = np.stack(columns, -1).reshape(n_patients, -1)

    def statistic(summed: Totals) -> Values:
        by_group = summed.reshape(*summed.shape[:-1], n_groups, n_columns + 1)
        counts = by_group[..., -1:]
        sums = by_group[..., :-1]
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        return np.asarray(np.einsum("g,...gc->...c", shares, means))

    _, first = np.unique(patients, return_index=True)
    found = _intervals(totals, codes[first], statistic, draws, generator)
    return tuple(MeanEstimate(one.value, one.low, one.high, len(values), n_patients, 0, one.reason) for one in found)


def _intervals(
    totals: Float[np.ndarray, "patients columns"],
    groups: Int[np.ndarray, " patients"],
    statistic: Callable[[Totals], Values],
    draws: int,
    generator: np.random.Generator,
) -> list[Interval]:
    """One interval per number that the statistic makes of the summed totals of the patients drawn."""
    whole = totals.sum(axis=0)
    value = statistic(whole)
    if (np.unique(groups, return_counts=True)[1] < 2).any():
        return [Interval(float(one), reason=ONE_IN_A_GROUP) for one in value]
    drawn = np.concatenate([statistic(weights @ totals) for weights in _within(groups, draws, generator)])
    without_one = statistic(whole - totals)
    return [bca(float(v), r, j, LEVEL) for v, r, j in zip(value, drawn.T, without_one.T, strict=True)]


def _within(groups: Int[np.ndarray, " patients"], draws: int, generator: np.random.Generator) -> Iterator[Weights]:
    """Blocks of rows, one per draw: how much each patient counts when one fewer than its group has are drawn from it.

    The weights of a group add up to its patients all the same.
    """
    if draws < 1:
        raise ValueError(f"a bootstrap needs at least one draw, got {draws}")
    rows = max(1, _BLOCK // len(groups))
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    for start in range(0, draws, rows):
        weights = np.empty((min(rows, draws - start), len(groups)))
        for own in members:
            n = len(own)
            times = generator.multinomial(n - 1, np.full(n, 1 / n), len(weights))
            weights[:, own] = times * (n / (n - 1))
        yield weights
