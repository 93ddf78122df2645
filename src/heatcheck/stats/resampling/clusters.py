"""Cases grouped by patient: images of one patient are not independent, so whole patients are resampled."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

Clusters = Shaped[np.ndarray, " cases"]  # the patient of each case; any names that can be sorted
Weights = Float[np.ndarray, "*draws patients"]  # how often each patient counts
MOST_GROUPS = (
    1000  # left out in turn by a jackknife, whose cost would else grow with the square of the number of patients
)
_BLOCK = 2**21  # numbers held at once, so that many draws over many patients fit into memory


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """Per patient and column: the sum of the defined values, and their number."""

    sums: Float[np.ndarray, "patients columns"]
    counts: Float[np.ndarray, "patients columns"]

    @property
    def joined(self) -> Float[np.ndarray, "patients 2*columns"]:
        """Sums, then counts: the columns that the statistics of `stats.ratios` expect."""
        return np.hstack([self.sums, self.counts])


def cluster_codes(clusters: Clusters) -> Int[np.ndarray, " cases"]:
    """The code of each case's patient, from 0 in sorted order."""
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return np.asarray(codes, dtype=np.intp)


def cluster_totals(values: Float[np.ndarray, "cases columns"], clusters: Clusters) -> ClusterTotals:
    """The totals of every patient, in sorted order; NaN values are left out."""
    codes = cluster_codes(clusters)
    return totals_by_code(values, codes, int(codes.max(initial=-1)) + 1)


def totals_by_code(
    values: Float[np.ndarray, "cases columns"], codes: Int[np.ndarray, " cases"], n_codes: int
) -> ClusterTotals:
    """The totals of the cases that share a code, for every code below `n_codes`; NaN values are left out."""
    if values.ndim != 2 or len(values) != len(codes):
        raise ValueError(f"values must be one row per case, got shape {values.shape} for {len(codes)} cases")
    if np.isinf(values).any():
        raise ValueError("values must be finite, or NaN where undefined, got infinity; check the metric")
    defined = ~np.isnan(values)
    shape = (values.shape[1], n_codes)
    sums = [np.bincount(codes, column, n_codes) for column in np.where(defined, values, 0.0).T]
    counts = [np.bincount(codes, column, n_codes) for column in defined.T]
    return ClusterTotals(np.reshape(sums, shape).T, np.reshape(counts, shape).T)


def resampled_weights(n_clusters: int, draws: int, generator: np.random.Generator) -> Iterator[Weights]:
    """Blocks of rows, one per draw of `n_clusters` patients with replacement: how often each patient is drawn."""
    if draws < 1:
        raise ValueError(f"a bootstrap needs at least one draw, got {draws}")
    rows = max(1, _BLOCK // n_clusters)
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        drawn = generator.integers(0, n_clusters, (count, n_clusters))
        # give every draw a range of codes of its own, so that one bincount counts all draws of the block
        drawn += np.arange(count)[:, None] * n_clusters
        yield np.bincount(drawn.ravel(), minlength=count * n_clusters).reshape(count, n_clusters).astype(np.float64)


def left_out_weights(n_clusters: int, generator: np.random.Generator) -> Iterator[Weights]:
    """Blocks of rows, one per group of patients left out: weight 0 for these, 1 for all others.

    Up to `MOST_GROUPS` patients form a group each, in their order. More are assigned at random to groups whose sizes
    differ by at most one, because neighbours in sorted order may be alike (same hospital, same year).
    """
    groups = min(n_clusters, MOST_GROUPS)
    group_of = np.arange(n_clusters) % groups
    if groups < n_clusters:
        group_of = generator.permutation(group_of)
    rows = max(1, _BLOCK // n_clusters)
    for start in range(0, groups, rows):
        left_out = np.arange(start, min(start + rows, groups))
        yield (group_of != left_out[:, None]).astype(np.float64)
