"""The size of a mask."""

import numpy as np

from heatcheck.core.records import Mask


def pixels_in(mask: Mask) -> int:
    """How many pixels the mask holds, as a plain integer: ratios of NumPy integers would be NumPy floats."""
    return int(np.count_nonzero(mask))
