"""The sizes of masks, and of what two have in common."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.records import Mask


@dataclass(frozen=True, slots=True)
class Overlap:
    """The pixels of a region and of the truth on one grid: all that most scores of a region need."""

    inside: int  # in both
    region: int
    truth: int
    grid: int  # all pixels

    @property
    def either(self) -> int:
        """Pixels in the region, in the truth, or in both."""
        return self.region + self.truth - self.inside


def pixels_in(mask: Mask) -> int:
    """How many pixels the mask holds, as a plain integer: ratios of NumPy integers would be NumPy floats."""
    return int(np.count_nonzero(mask))


def overlap(region: Mask, truth: Mask | None) -> Overlap:
    """What the region has in common with the truth; without a truth nothing is looked at but the region's size."""
    if truth is None:
        return Overlap(0, pixels_in(region), 0, region.size)
    return Overlap(pixels_in(region & truth), pixels_in(region), pixels_in(truth), region.size)
