"""Size and position of a patch on an image."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from heatcheck.core.boxes import Box

REFERENCE_SIDE = 224  # sizes in specs are for images with this side
Size = Annotated[int, Field(ge=1)]  # in pixels of such an image
Corner = Literal["top_left", "top_right", "bottom_left", "bottom_right"]
Place = Literal["corner", "center", "random"]


def scaled(size: float, shape: tuple[int, ...]) -> int:
    """A size for images of 224 px in pixels of an image of this shape: scaled by its shorter side, at least 1."""
    return max(1, round(size * min(shape) / REFERENCE_SIDE))


def corner_box(corner: Corner, size: tuple[int, int], shape: tuple[int, ...], margin: int = 0) -> Box:
    """The box of this size in a corner of the image, with a margin to both sides."""
    far = ("bottom" in corner, "right" in corner)
    first = [
        side - extent - margin if is_far else margin for side, extent, is_far in zip(shape, size, far, strict=True)
    ]
    return _box(first, size)


def centre_box(size: tuple[int, int], shape: tuple[int, ...]) -> Box:
    """The box of this size in the middle of the image, rounded towards the top left."""
    return _box([(side - extent) // 2 for side, extent in zip(shape, size, strict=True)], size)


def random_box(size: tuple[int, int], shape: tuple[int, ...], generator: np.random.Generator) -> Box:
    """A box of this size at a random position where it fits, all equally likely."""
    return _box(
        [int(generator.integers(side - extent + 1)) for side, extent in zip(shape, size, strict=True)],
        size,
    )


def placed_box(
    place: Place, corner: Corner, size: tuple[int, int], shape: tuple[int, ...], generator: np.random.Generator
) -> Box:
    """The box of this size at its place; `corner` says which one, if the place is a corner."""
    if place == "random":
        return random_box(size, shape, generator)
    return centre_box(size, shape) if place == "center" else corner_box(corner, size, shape)


def place_words(place: Place, corner: Corner) -> str:
    """The place in words for a table."""
    return {"corner": corner.replace("_", " "), "center": "centre", "random": "random place"}[place]


def _box(first: list[int], size: tuple[int, int]) -> Box:
    return tuple(slice(start, start + extent) for start, extent in zip(first, size, strict=True))
