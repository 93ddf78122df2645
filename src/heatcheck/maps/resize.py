"""Resizes maps from the method's grid to the image's grid in one step."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.geometry import Cells, Placement, map_to_image


def to_image(
    values: Float[Tensor, "target *grid"], placement: Placement, cells: Cells | None = None
) -> Float[np.ndarray, "target *space"]:
    """The maps of one image on that image's grid, as float32 in main memory; `cells` says where their grid lies.

    The CPU does this whatever device made the maps, so that equal maps give equal regions and peaks.
    """
    axes = len(placement.image_shape)
    if values.ndim != axes + 1:
        raise ValueError(
            f"maps must have a target axis and {axes} space axes, got shape {tuple(values.shape)}; "
            "merge the channels with a rule of maps.channels first"
        )
    with torch.no_grad():
        return map_to_image(values.detach().to("cpu", torch.float32), placement, cells).numpy()
