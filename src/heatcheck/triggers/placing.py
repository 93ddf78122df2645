"""How large a patch is on an image, and where it lies."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from heatcheck.core.boxes import Box

REFERENCE_SIDE = 224  # the side of the images for which sizes are given
Size = Annotated[int, Field(ge=1)]  # in pixels of such an image
Corner = Literal["top_left", "top_right", "bottom_left", "bottom_right"]


def scaled(size: float, shape: tuple[int, ...]) -> int:
    """A size given for images of 224 px, in pixels of an image of this shape: by its shorter side, at least 1."""
    return max(1, round(size * min(shape) / REFERENCE_SIDE))


def in_corner(corner: Corner, size: tuple[int, int], shape: tuple[int, ...], margin: int = 0) -> Box:
    """The box of this size in that corner of the image, a margin away from both sides."""
    far = ("bottom" in corner, "right" in corner)
    first = [
        side - extent - margin if is_far else margin for side, extent, is_far in zip(shape, size, far, strict=True)
    ]
    return _box(first, size)


def in_the_middle(size: tuple[int, int], shape: tuple[int, ...]) -> Box:
    """The box of this size in the middle of the image; where it cannot be, half a pixel towards the top left."""
    return _box([(side - extent) // 2 for side, extent in zip(shape, size, strict=True)], size)


def anywhere(size: tuple[int, int], shape: tuple[int, ...], generator: np.random.Generator) -> Box:
    """A box of this size at one of the positions where it fits, each as likely."""
    return _box(
        [int(generator.integers(side - extent + 1)) for side, extent in zip(shape, size, strict=True)],
        size,
    )


def _box(first: list[int], size: tuple[int, int]) -> Box:
    return tuple(slice(at, at + extent) for at, extent in zip(first, size, strict=True))
