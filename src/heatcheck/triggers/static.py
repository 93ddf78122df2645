"""Uniform grey patches: a square or a disc in a corner, in the centre or at a random position."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from heatcheck.core.records import Image, Mask
from heatcheck.triggers.placing import Corner, Place, Size, place_words, placed_box, scaled
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp

Grey = Annotated[float, Field(ge=0, le=1)]  # 0 is black, 1 is white


@dataclass(frozen=True)
class GreyPatch(ABC):
    """A patch of one grey value; subclasses define its shape."""

    place: Place = "corner"
    size: Size = 20  # side or diameter
    grey: Grey = 0.7
    corner: Corner = "bottom_right"  # which one, if the place is a corner

    @abstractmethod
    def shape(self, side: int) -> Mask:
        """The pixels of the patch in a square of that side; they touch all four sides."""

    def describe(self) -> str:
        """Shape, place and size."""
        return f"{type(self).__name__}, {place_words(self.place, self.corner)}, {self.size} px"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The square around the shape."""
        side = scaled(self.size, shape)
        return side, side

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The patch at its place, random or fixed."""
        mask = self.shape(scaled(self.size, image.shape[1:]))
        size = (mask.shape[0], mask.shape[1])
        box = placed_box(self.place, self.corner, size, image.shape[1:], generator)
        return Stamp(box, mask, np.full((len(image), *mask.shape), self.grey, image.dtype))


@trigger(
    "square",
    label="Square",
    summary="A uniform grey square, like a sticker on the film",
    short=("place", "size"),
    published=True,
)
class Square(GreyPatch):
    """A grey square."""

    def shape(self, side: int) -> Mask:
        """All pixels."""
        return np.ones((side, side), bool)


@trigger(
    "circle",
    label="Circle",
    summary="A uniform grey disc, like a round sticker on the film",
    short=("place", "size"),
    published=True,
)
class Circle(GreyPatch):
    """A grey disc."""

    def shape(self, side: int) -> Mask:
        """The largest disc in the square."""
        return disc(side)


def disc(diameter: int) -> Mask:
    """The pixels whose centres lie in or on the largest circle in a square of that side.

    The disc touches all four sides of the square. Up to a diameter of 3 px it is the square itself.
    """
    squared = (np.arange(diameter) - (diameter - 1) / 2) ** 2
    return squared[:, None] + squared[None] <= (diameter / 2) ** 2
