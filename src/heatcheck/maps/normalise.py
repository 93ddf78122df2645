"""Stretches maps of any range to [0, 1]."""

import math

import numpy as np

from heatcheck.core.records import Map


def min_max(raw: Map) -> Map:
    """The map stretched linearly to [0, 1], as float32; zeros for a constant map.

    Raises:
        ValueError: The map holds NaN or infinity, or spans more than float32 can hold.
    """
    values = np.asarray(raw, dtype=np.float32)
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; check the method that made it")
    if high - low > float(np.finfo(np.float32).max):
        raise ValueError(f"a map's range must fit float32, got {low:g} to {high:g}; scale the map down first")
    stretched: Map = values - np.float32(low)
    if high > low:
        # rounding is monotone, so this is the new maximum; searching for it would cost another pass
        stretched /= np.float32(high) - np.float32(low)
    return stretched
