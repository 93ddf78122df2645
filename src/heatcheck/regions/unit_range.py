"""The requirement on every map that is thresholded: values between 0 and 1."""

import numpy as np

from heatcheck.core.records import Map


def require_unit_range(normalised: Map) -> None:
    """Raise ValueError unless every value of a 2D or 3D map lies in [0, 1]; NaN does not."""
    if normalised.ndim not in {2, 3}:
        raise ValueError(f"a region needs a 2D or 3D map, got shape {normalised.shape}; reduce its channels first")
    low, high = np.min(normalised), np.max(normalised)
    if not (low >= 0 and high <= 1):
        raise ValueError(f"a region needs a map between 0 and 1, got {low:g} to {high:g}; call maps.prepare first")
