"""Reasons why a score is undefined; tables count undefined scores by reason."""

import math

import numpy as np

from heatcheck.core.records import Map, Measured

NO_TRUTH = "no truth"
NO_REGION = "empty region"
NOTHING_MARKED = "no truth and empty region"
NOTHING_OUTSIDE = "the truth covers the whole image"
NO_PEAK = "no peak"
NO_RELEVANCE = "no positive relevance"
NO_POINT = "no point marked"
NO_LABEL = "no known label"
NO_POSITIVE = "no positive case"
NO_NEGATIVE = "no negative case"
NO_CHANGE = "the trigger changed no pixel"
# The resize to the image rounds: a constant map then varies by up to 4e-7 of its value.
ROUNDING = 1e-6


def undefined(reason: str) -> Measured:
    """An undefined score (NaN) with its reason."""
    return Measured(math.nan, reason)


def missing_class(labels: np.ndarray) -> str:
    """The reason why cases with and without the finding cannot be compared; empty if there are both."""
    if not np.isin(labels, (0, 1)).any():
        return NO_LABEL
    if not (labels == 1).any():
        return NO_POSITIVE
    return "" if (labels == 0).any() else NO_NEGATIVE


def is_empty(values: Map) -> bool:
    """Whether the map has one value everywhere, zero or not, up to the rounding of its resize."""
    low, high = float(values.min()), float(values.max())
    return high - low <= ROUNDING * max(abs(low), abs(high))
