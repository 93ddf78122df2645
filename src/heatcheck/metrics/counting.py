"""Pixel counts of masks and of their overlap."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.records import Mask


@dataclass(frozen=True, slots=True)
class Overlap:
    """Pixel counts of a region, the truth and their overlap: all that most scores of a region need."""

    inside: int  # in both
    region: int
    truth: int
    grid: int  # all pixels

    @property
    def either(self) -> int:
        """Pixels in the region, in the truth, or in both."""
        return self.region + self.truth - self.inside


def pixels_in(mask: Mask) -> int:
    """The number of pixels in the mask, as a plain integer: ratios of NumPy integers would be NumPy floats."""
    return int(np.count_nonzero(mask))


def overlap(region: Mask, truth: Mask | None) -> Overlap:
    """The pixel counts of region and truth; without a truth, only those of the region."""
    if truth is None:
        return Overlap(0, pixels_in(region), 0, region.size)
    return Overlap(pixels_in(region & truth), pixels_in(region), pixels_in(truth), region.size)
