"""Means with equal weight for every fold and, within a fold, for every class, however many cases each has.

Without classes this is the mean over folds; with classes, the mean of 0 (wrong) and 1 (right) is balanced accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int, Shaped

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import MeanEstimate
from heatcheck.stats.resampling.clusters import Clusters, cluster_codes
from heatcheck.stats.resampling.studentised import (
    LEVEL,
    Linearised,
    linearised_macro,
    linearised_ratios,
    t_intervals,
)
from heatcheck.stats.resampling.t_families import UnanimousGroup, unanimous_interval

Labels = Shaped[np.ndarray, " cases"]


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


def linearised_balanced(values: Float[np.ndarray, "cases columns"], strata: Strata, clusters: Clusters) -> Linearised:
    """The same means as sums over patients; every value must be defined, and no fold may lack a class.

    A mean over equal groups is one over findings, so groups of few patients borrow the others' variance; the degrees of
    freedom are at most those of the patients.
    """
    if values.ndim != 2 or len(values) != len(clusters):
        raise ValueError(f"values must be one row per case, got shape {values.shape} for {len(clusters)} cases")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite, got NaN or infinity; leave out cases with an undefined value")
    (codes, shares), patients = strata.codes, cluster_codes(clusters)
    n_groups, n_patients = len(shares), int(patients.max(initial=-1)) + 1
    cell = patients * n_groups + codes
    columns = [np.bincount(cell, column, n_patients * n_groups) for column in (*values.T, np.ones(len(values)))]
    totals = np.stack(columns, -1).reshape(n_patients, n_groups, -1)
    parts = np.moveaxis(totals[..., :-1], 1, 2).reshape(n_patients, -1)
    wholes = np.tile(totals[..., -1], values.shape[1])
    mean = linearised_macro(linearised_ratios(parts, wholes), n_groups)
    return replace(mean, freedom=np.minimum(mean.freedom, max(1, n_patients - n_groups)))


def balanced_means(
    values: Float[np.ndarray, "cases columns"], strata: Strata, clusters: Clusters, ends: tuple[float, float]
) -> tuple[MeanEstimate, ...]:
    """The same means with intervals by Student's t, which cover other patients of the same folds and classes.

    `ends` are the lowest and the highest value possible. Where all patients of each group agree, the interval allows
    for patients who might not.
    """
    n_patients = len(np.unique(clusters))
    if strata.lacking:
        return (MeanEstimate(np.nan, np.nan, np.nan, len(values), n_patients, 0, strata.lacking),) * values.shape[1]
    intervals = with_unanimous(
        t_intervals(linearised_balanced(values, strata, clusters)), values, strata, clusters, ends
    )
    return tuple(MeanEstimate(i.value, i.low, i.high, len(values), n_patients, 0, i.reason) for i in intervals)


def with_unanimous(
    intervals: Sequence[Interval],
    values: Float[np.ndarray, "cases columns"],
    strata: Strata,
    clusters: Clusters,
    ends: tuple[float, float],
    level: float = LEVEL,
) -> tuple[Interval, ...]:
    """The intervals within the ends; where all patients of each group agree, one that allows for others who do not."""
    codes, shares = strata.codes
    members = [codes == group for group in range(len(shares))]
    patients = [len(np.unique(np.asarray(clusters)[group])) for group in members]
    found = []
    for interval, column in zip(intervals, values.T, strict=True):
        if interval.reason == ONE_VALUE:
            groups = [
                UnanimousGroup(float(column[group].mean()), number, float(share))
                for group, number, share in zip(members, patients, shares, strict=True)
            ]
            interval = unanimous_interval(groups, ends, level)  # noqa: PLW2901 - the other one is of no use
        low, high = np.clip([interval.low, interval.high], *ends).tolist()  # NaN stays NaN
        found.append(replace(interval, low=low, high=high))
    return tuple(found)
