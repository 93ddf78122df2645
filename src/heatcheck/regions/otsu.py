"""The region that Otsu's threshold separates from the rest of the map."""

import cv2
import numpy as np
from jaxtyping import UInt8

from heatcheck.core.records import Map, Mask
from heatcheck.regions.solid import drop_specks, fill_holes
from heatcheck.regions.unit_range import require_unit_range

GreyLevels = UInt8[np.ndarray, "*space"]


def otsu_region(normalised: Map) -> Mask:
    """The part of the map above Otsu's threshold, holes filled and single pixels dropped.

    The threshold is chosen among 256 levels, truncated as in the CheXlocalize benchmark. A map without contrast has no
    region.
    """
    levels = grey_levels(normalised)
    if levels.min() == levels.max():
        return np.zeros(levels.shape, dtype=bool)
    return above_otsu(levels)


def grey_levels(normalised: Map) -> GreyLevels:
    """The map in 256 levels, by truncation."""
    require_unit_range(normalised)
    return np.multiply(normalised, 255, dtype=np.float32).astype(np.uint8)


def above_otsu(levels: GreyLevels) -> Mask:
    """The levels above Otsu's threshold, holes filled and single pixels dropped."""
    # the threshold depends on the histogram alone, so a volume may be reshaped into one tall plane
    _, above = cv2.threshold(levels.reshape(-1, levels.shape[-1]), 0, 1, cv2.THRESH_OTSU)
    return drop_specks(fill_holes(above.reshape(levels.shape).view(bool)))


def has_otsu_region(normalised: Map) -> bool:
    """Whether `otsu_region` has any pixels; the neighbours of the peak usually suffice to decide."""
    levels = grey_levels(normalised)
    if levels.ndim != 2 or levels.min() == levels.max():
        return bool(otsu_region(normalised).any())
    threshold, _ = cv2.threshold(levels, 0, 1, cv2.THRESH_OTSU)
    row, column = np.unravel_index(int(levels.argmax()), levels.shape)
    near = levels[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2]
    # two touching pixels are not a speck, and filling holes removes nothing
    return bool(np.count_nonzero(near > threshold) > 1 or otsu_region(normalised).any())
