"""Maps as they are stored: for looking at, never for scoring."""

import numpy as np

from heatcheck.core.records import Map


def for_keeping(values: Map) -> Map:
    """The map at half precision, its largest magnitude scaled to 1: raw gradients fall below what that can hold."""
    largest = float(np.abs(values).max(initial=0))
    return np.ascontiguousarray(values / largest if largest > 0 else values, np.float16)
