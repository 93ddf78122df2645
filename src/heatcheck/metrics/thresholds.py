"""Overlap with the truth at several fixed thresholds, in one pass over the map."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from heatcheck.core.records import Map, Mask
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.grids import require_truth

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # the grid on which a map's threshold is tuned
_BLOCK = 2**15  # pixels compared together: they stay in the processor's cache for all thresholds


@dataclass(frozen=True, slots=True)
class ThresholdCounts:
    """Pixel counts of the region at each threshold, of its part inside the truth, and of the truth."""

    region: Int[np.ndarray, " thresholds"]
    inside: Int[np.ndarray, " thresholds"]
    truth: int

    @property
    def ious(self) -> Float[np.ndarray, " thresholds"]:
        """Intersection over union at each threshold, 0 for an empty region; NaN without truth."""
        union = self.region + self.truth - self.inside
        return np.where(self.truth > 0, self.inside / np.maximum(union, 1), np.nan)


def threshold_counts(normalised: Map, truth: Mask, thresholds: Sequence[float] = THRESHOLDS) -> ThresholdCounts:
    """The counts of the regions `normalised > threshold`, the same to the pixel as those of `regions.fixed`.

    Map and thresholds are compared in float32: the double 0.3 lies between two float32 numbers.
    """
    require_truth(normalised, truth)
    if normalised.dtype != np.float32:
        raise ValueError(
            f"a map must be float32 to be compared with thresholds, got {normalised.dtype}; call maps.prepare first"
        )
    values, marked = np.ravel(normalised), np.ravel(truth)
    levels = np.asarray(thresholds, np.float32)
    return ThresholdCounts(_count_above(values, levels), _count_above(values[marked], levels), pixels_in(truth))


def _count_above(
    values: Float[np.ndarray, " pixels"], levels: Float[np.ndarray, " thresholds"]
) -> Int[np.ndarray, " thresholds"]:
    counts = np.zeros(len(levels), np.int64)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        counts += [np.count_nonzero(block > level) for level in levels]
    return counts
