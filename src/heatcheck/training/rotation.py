"""Training images rotated a little, so that a network does not learn how patients were positioned."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heatcheck.core.errors import InputError


def rotated(
    images: Float[Tensor, "batch channel height width"], degrees: Float[Tensor, " batch"]
) -> Float[Tensor, "batch channel height width"]:
    """Each image rotated anticlockwise about its centre; what comes in from outside is 0, the mean grey."""
    if images.ndim != 4:
        raise InputError(f"`rotate` turns 2D images, got images of {images.ndim - 2} axes; leave it out")
    height, width = images.shape[2:]
    angles = torch.deg2rad(degrees.double())
    cosine, sine, zero = angles.cos(), angles.sin(), torch.zeros_like(angles)
    # both sides have length 2 in the coordinates of `affine_grid`: the ratios keep pixels square
    rows = [[cosine, -sine * height / width, zero], [sine * width / height, cosine, zero]]
    matrices = torch.stack([torch.stack(row, 1) for row in rows], 1).to(images)
    grid = functional.affine_grid(matrices, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)
