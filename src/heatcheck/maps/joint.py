"""Maps of several modalities of one image, brought to [0, 1] together."""

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Mask

OUTLIERS = 1.0  # percent of the positive values that are capped
Channels = Float[np.ndarray, "channel *space"]


def joint(values: Channels, head: Mask) -> Channels:
    """The map without what speaks against the class, capped and scaled to [0, 1] by one factor for all channels.

    The cap is the 99th percentile of the positive values inside the head: over the whole volume, most of which is
    air, it could be 0 and erase a sparse map. Where nothing inside is positive, that of all positive values is taken.
    A map without positive values becomes zeros.

    Raises:
        ValueError: The map holds NaN or infinity, or the head lies on another grid.
    """
    if values.shape[1:] != head.shape:
        raise ValueError(f"map and head must share one grid, got {values.shape[1:]} and {head.shape}; resize the map")
    positive = np.maximum(np.asarray(values, dtype=np.float32), 0)  # NaN stays NaN
    seen = positive[:, head]
    seen = seen[seen > 0] if (seen > 0).any() else positive[positive > 0]
    # −infinity would pass for 0, so the given values are asked
    if not np.isfinite(values).all():
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; look at the method that made it")
    if not len(seen):
        return positive
    cap = np.float32(np.percentile(seen, 100 - OUTLIERS))
    np.minimum(positive, cap, out=positive)
    positive /= cap
    return positive
