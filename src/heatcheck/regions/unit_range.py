"""The promise every thresholded map keeps: values between 0 and 1."""

import numpy as np

from heatcheck.core.records import Map


def require_unit_range(normalised: Map) -> None:
    """Raise unless every value lies in [0, 1]; a NaN does not."""
    if normalised.ndim not in {2, 3}:
        raise ValueError(f"a region is cut out of a 2D or 3D map, got shape {normalised.shape}")
    low, high = np.min(normalised), np.max(normalised)
    if not (low >= 0 and high <= 1):
        raise ValueError(f"a region needs a map between 0 and 1, got {low:g} to {high:g}; call maps.prepare first")
