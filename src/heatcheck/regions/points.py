"""Where a map peaks."""

import math

import numpy as np

from heatcheck.core.records import Map, Mask


def peaks(raw: Map) -> Mask:
    """Every position with the map's maximum; all positions for a constant map.

    Using only the first maximum would move the peak of a plateau (occlusion, superpixels) to the top left.
    """
    highest = raw.max()
    if not math.isfinite(highest):
        raise ValueError(
            f"a map must hold finite numbers only, got a maximum of {highest}; check the method that made it"
        )
    return np.asarray(raw == highest)


def first_peak(raw: Map) -> Mask:
    """The first position in row order with the map's maximum, as in the CheXlocalize benchmark."""
    tied = peaks(raw)
    first = np.zeros(tied.shape, bool)
    first.flat[int(tied.argmax())] = True
    return first
