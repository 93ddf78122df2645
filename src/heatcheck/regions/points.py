"""Where a map peaks."""

import math

import numpy as np

from heatcheck.core.records import Map, Mask


def peaks(raw: Map) -> Mask:
    """Every position that holds the map's maximum; all of them for a constant map.

    Taking the first maximum only would move the peak of a plateau (occlusion, superpixels) to the top left.
    """
    highest = raw.max()
    if not math.isfinite(highest):
        raise ValueError(f"a map must hold finite numbers only, its maximum is {highest}; look at its method")
    return np.asarray(raw == highest)


def first_peak(raw: Map) -> Mask:
    """The first position, in the order of rows, that holds the map's maximum: the CheXlocalize benchmark's point."""
    tied = peaks(raw)
    first = np.zeros(tied.shape, bool)
    first.flat[int(tied.argmax())] = True
    return first
