"""Scores that do not exist, and why; tables count them by these reasons."""

import math

from heatcheck.core.records import Measured

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


def undefined(reason: str) -> Measured:
    """A value that does not exist, with its reason."""
    return Measured(math.nan, reason)
