"""Maps as they are stored for display, never for scoring."""

import numpy as np

from heatcheck.core.records import Map


def half_precision(values: Map) -> Map:
    """The map at half precision, scaled to a largest magnitude of 1 because raw gradients would underflow."""
    largest = float(np.abs(values).max(initial=0))
    return np.ascontiguousarray(values / largest if largest > 0 else values, np.float16)
