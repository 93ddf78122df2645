"""Training images turned a little, so that a network does not learn how patients were placed."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heatcheck.core.errors import InputError


def rotated(
    images: Float[Tensor, "batch channel height width"], degrees: Float[Tensor, " batch"]
) -> Float[Tensor, "batch channel height width"]:
    """Each image turned about its middle, anticlockwise; what comes in from outside is 0, the mean grey."""
    if images.ndim != 4:
        raise InputError(f"`rotate` turns pictures, got images of {images.ndim - 2} axes; leave it out")
    height, width = images.shape[2:]
    angles = torch.deg2rad(degrees.double())
    cosine, sine, nought = angles.cos(), angles.sin(), torch.zeros_like(angles)
    rows = [[cosine, -sine * height / width, nought], [sine * width / height, cosine, nought]]  # a pixel is a square
    ways = torch.stack([torch.stack(row, 1) for row in rows], 1).to(images)
    grid = functional.affine_grid(ways, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)
