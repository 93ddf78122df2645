"""Cases that belong together: images of one patient are not independent, so patients are what is resampled."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

Clusters = Shaped[np.ndarray, " cases"]  # the patient of each case, by any name that can be sorted
Weights = Float[np.ndarray, "*draws patients"]  # how often each patient counts
MOST_GROUPS = 1000  # left out in turn by a jackknife; one patient each would make its cost grow with their square
_BLOCK = 2**21  # numbers held at once, so that many draws over many patients fit into memory


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """Per patient and column: the sum of the defined values, and how many there are."""

    sums: Float[np.ndarray, "patients columns"]
    counts: Float[np.ndarray, "patients columns"]

    @property
    def joined(self) -> Float[np.ndarray, "patients 2*columns"]:
        """Sums, then counts: what the statistics of `stats.ratios` expect along the last axis."""
        return np.hstack([self.sums, self.counts])


def cluster_codes(clusters: Clusters) -> Int[np.ndarray, " cases"]:
    """The number of each case's patient, counted from 0 in sorted order."""
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return np.asarray(codes, dtype=np.intp)


def cluster_totals(values: Float[np.ndarray, "cases columns"], clusters: Clusters) -> ClusterTotals:
    """The totals of every patient, in sorted order; NaN values are left out."""
    codes = cluster_codes(clusters)
    if values.ndim != 2 or len(values) != len(codes):
        raise ValueError(f"values must be one row per case, got shape {values.shape} for {len(codes)} cases")
    if np.isinf(values).any():
        raise ValueError("values must be finite, or NaN where undefined, got infinity; look at the metric that made it")
    defined = ~np.isnan(values)
    patients = int(codes.max(initial=-1)) + 1
    filled = np.where(defined, values, 0.0)
    sums = [np.bincount(codes, column, patients) for column in filled.T]
    counts = [np.bincount(codes, column, patients) for column in defined.T]
    shape = (patients, values.shape[1])
    return ClusterTotals(np.reshape(sums, shape[::-1]).T, np.reshape(counts, shape[::-1]).T)


def resampled_weights(n_clusters: int, draws: int, generator: np.random.Generator) -> Iterator[Weights]:
    """Blocks of rows, one per draw: how often each patient comes up when as many are drawn with replacement."""
    if draws < 1:
        raise ValueError(f"a bootstrap needs at least one draw, got {draws}")
    rows = max(1, _BLOCK // n_clusters)
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        drawn = generator.integers(0, n_clusters, (count, n_clusters))
        drawn += np.arange(count)[:, None] * n_clusters
        yield np.bincount(drawn.ravel(), minlength=count * n_clusters).reshape(count, n_clusters).astype(np.float64)


def left_out_weights(n_clusters: int, generator: np.random.Generator) -> Iterator[Weights]:
    """Blocks of rows, one per group of patients: those count 0, the others 1.

    Up to `MOST_GROUPS` patients are a group each, in their order. More are shared out at random, because neighbours
    in sorted order may be alike (one hospital, one year); the groups' sizes then differ by one at most.
    """
    groups = min(n_clusters, MOST_GROUPS)
    group_of = np.arange(n_clusters) % groups
    if groups < n_clusters:
        group_of = generator.permutation(group_of)
    rows = max(1, _BLOCK // n_clusters)
    for start in range(0, groups, rows):
        left_out = np.arange(start, min(start + rows, groups))
        yield (group_of != left_out[:, None]).astype(np.float64)
