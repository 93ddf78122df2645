"""Maps that show nothing: the same value everywhere."""

import numpy as np

from heatcheck.core.records import Map, Measured
from heatcheck.metrics.undefined import NO_RELEVANCE

EMPTY_MAP = "empty map: the same value everywhere"


def failed(measured: Measured) -> Measured:
    """The score of a map that has no heat to compare with the truth: 0 instead of undefined, with the reason.

    Left out, a method that shows nothing would look better than one that errs.
    """
    return Measured(0.0, measured.reason) if measured.reason == NO_RELEVANCE else measured


def without_marks(values: Map) -> np.ndarray:
    """An empty region on the map's grid."""
    return np.zeros(values.shape, bool)
