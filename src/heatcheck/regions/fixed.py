"""The region above a threshold chosen beforehand."""

import numpy as np

from heatcheck.core.records import Map, Mask
from heatcheck.regions.unit_range import require_unit_range


def fixed_region(normalised: Map, threshold: float) -> Mask:
    """The pixels strictly above the threshold; no holes are filled, no specks dropped."""
    require_unit_range(normalised)
    return np.asarray(normalised > threshold)
