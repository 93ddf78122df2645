"""Checks of the inputs of metrics."""

import math

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import Map, Mask


def require_masks(mask: Mask, truth: Mask) -> None:
    """Raise unless both are masks on one grid."""
    require_truth(mask, truth)
    if mask.dtype != np.bool_:
        raise ValueError(f"a region or peaks must be a mask of booleans, got {mask.dtype}; threshold the map first")


def require_map(relevance: Map, truth: Mask) -> float:
    """The map's lowest value; raises unless the map is finite and on the grid of the truth."""
    require_truth(relevance, truth)
    low = float(relevance.min())
    if not (math.isfinite(low) and math.isfinite(relevance.max())):
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; check the method that made it")
    return low


def require_truth(scored: Map | Mask, truth: Mask) -> None:
    """Raise unless the truth is a mask on the same grid as what is scored."""
    if truth.dtype != np.bool_:
        raise ValueError(f"the truth must be a mask of booleans, got {truth.dtype}; compare it with 0 first")
    if scored.shape != truth.shape:
        raise ValueError(
            f"what is scored and the truth must share one grid, got {scored.shape} and {truth.shape}; "
            "resize the map to the image first"
        )


def require_modalities(values: Float[np.ndarray, "channel *space"], masks: Bool[np.ndarray, "modality *space"]) -> None:
    """Raise unless map and lesion masks share one grid, and the map has one channel or one per modality."""
    if values.shape[1:] != masks.shape[1:] or len(values) not in {1, len(masks)}:
        raise ValueError(
            f"map and lesions must share one grid, with one channel or one per modality, got {values.shape} and "
            f"{masks.shape}; resize the map to the image first"
        )
