"""How far maps are from the masks they should show, or should avoid."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Direction = Literal["align", "misalign"]
_TINY = 1e-6  # keeps a flat map from dividing by 0


def map_loss(
    values: Float[Tensor, "batch target channel *space"],
    masks: Float[Tensor, "batch target *space"],
    direction: Direction,
) -> Float[Tensor, "batch target"]:
    """The mean squared difference of each map from its mask, or from the mask's complement if maps should avoid it.

    Negative values count as 0, the channels' mean is taken, and each map is stretched to 0..1 by itself. The shapes
    must agree axis by axis: a mask with an extra axis would be broadcast over the maps of all images.
    """
    of_maps = (*values.shape[:2], *values.shape[3:])
    if values.ndim not in (5, 6) or tuple(masks.shape) != of_maps:
        raise ValueError(
            "maps must be [batch, target, channel, *space] in 2D or 3D and masks [batch, target, *space] of the same "
            f"sizes, got {tuple(values.shape)} and {tuple(masks.shape)}"
        )
    difference = stretched(widened(values).clamp(min=0).mean(2)) - (masks if direction == "align" else 1 - masks)
    return difference.square().flatten(2).mean(2)


def widened(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The values in single precision where they have less: half precision has too few digits for a loss."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def stretched(maps: Float[Tensor, "batch target *space"]) -> Float[Tensor, "batch target *space"]:
    """Each map with its lowest value at 0 and its highest at 1; a flat map is 0 everywhere."""
    flat = maps.flatten(2)
    low, high = flat.amin(2, keepdim=True), flat.amax(2, keepdim=True)
    return ((flat - low) / (high - low + _TINY)).reshape(maps.shape)
