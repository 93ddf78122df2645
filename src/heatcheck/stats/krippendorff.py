"""Agreement of readers of whom each rates some of the same units on a scale: Krippendorff's alpha.

Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, University of Pennsylvania.
"""

import numpy as np
from jaxtyping import Float

from heatcheck.stats.ratios import Totals, Values
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import LEVEL, bca_interval
from heatcheck.stats.resampling.clusters import Clusters, cluster_codes

NO_PAIR = "nothing was rated by two readers"
ALL_ALIKE = "all ratings are the same"

Ratings = Float[np.ndarray, "units readers"]  # NaN where a reader did not rate


def krippendorff_alpha(
    ratings: Ratings, clusters: Clusters, draws: int, generator: np.random.Generator, level: float = LEVEL
) -> Interval:
    """Alpha for ratings on an interval scale, with patients resampled: 1 agreement, 0 chance, below 0 opposition.

    1 − observed / expected disagreement: the mean squared differences between ratings of one unit, and between any two
    ratings. Units with fewer than two ratings are left out. `clusters` is the patient of each unit.
    """
    if ratings.ndim != 2 or len(ratings) != len(clusters):
        raise ValueError(f"ratings must be one row per unit, got shape {ratings.shape} for {len(clusters)} patients")
    rated = ~np.isnan(ratings)
    paired = rated.sum(1) >= 2
    if not paired.any():
        return Interval(np.nan, reason=NO_PAIR)
    kept, codes = ratings[paired], cluster_codes(np.asarray(clusters)[paired])
    if np.nanmin(kept) == np.nanmax(kept):
        return Interval(np.nan, reason=ALL_ALIKE)
    totals = np.stack([np.bincount(codes, column) for column in _unit_sums(kept).T], 1)
    return bca_interval(totals, _alpha, draws, generator, level)[0]


def _unit_sums(ratings: Ratings) -> Float[np.ndarray, "units 4"]:
    """Per unit: the number of ratings, their sum, their sum of squares, and their squared differences over n − 1."""
    rated = ~np.isnan(ratings)
    centred = np.where(rated, ratings - np.nanmean(ratings), 0)  # else differences of squares would lose digits
    n, summed, squared = rated.sum(1), centred.sum(1), (centred**2).sum(1)
    return np.stack([n, summed, squared, 2 * (n * squared - summed**2) / (n - 1)], 1)


def _alpha(totals: Totals) -> Values:
    """Alpha from the totals of the units drawn; NaN where their ratings do not differ."""
    n, summed, squared, observed = np.moveaxis(totals, -1, 0)
    differences = 2 * (n * squared - summed**2)  # Σ over all pairs of ratings of their squared difference
    differ = differences > 1e-9 * np.maximum(n * squared, 1e-300)
    expected = np.where(differ, differences / np.maximum(n - 1, 1), np.nan)
    return np.asarray(1 - observed / expected)[..., None]
