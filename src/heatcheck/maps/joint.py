"""Scales the maps of all modalities of one image to [0, 1] together."""

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Mask

OUTLIERS = 1.0  # percent of the positive values that are capped
Channels = Float[np.ndarray, "channel *space"]


def joint(values: Channels, head: Mask) -> Channels:
    """The positive part of the map, capped and scaled to [0, 1] by one factor for all channels.

    The cap is the 99th percentile of the positive values inside the head. The percentile of the whole volume, mostly
    air, could be 0 and erase a sparse map. If nothing inside the head is positive, all positive values are used; a
    map without positive values becomes zeros.

    Raises:
        ValueError: The map holds NaN or infinity, or the head lies on another grid.
    """
    if values.shape[1:] != head.shape:
        raise ValueError(f"map and head must share one grid, got {values.shape[1:]} and {head.shape}; resize the map")
    positive = np.maximum(np.asarray(values, dtype=np.float32), 0)  # NaN stays NaN
    counted = positive[:, head]
    counted = counted[counted > 0] if (counted > 0).any() else positive[positive > 0]
    # clipping has turned −infinity into 0, so the original values are checked
    if not np.isfinite(values).all():
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; check the method that made it")
    if not len(counted):
        return positive
    cap = np.float32(np.percentile(counted, 100 - OUTLIERS))
    np.minimum(positive, cap, out=positive)
    positive /= cap
    return positive
