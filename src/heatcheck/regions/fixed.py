"""The region above a threshold chosen beforehand."""

import numpy as np

from heatcheck.core.records import Map, Mask
from heatcheck.regions.unit_range import require_unit_range


def fixed_region(normalised: Map, threshold: float) -> Mask:
    """The part of the map that lies strictly above the threshold, as it is: no filling, no dropping."""
    require_unit_range(normalised)
    return np.asarray(normalised > threshold)
