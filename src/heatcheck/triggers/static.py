"""Uniform grey patches: a square or a disc in a corner, in the middle or anywhere."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from heatcheck.core.boxes import Box
from heatcheck.core.records import Image, Mask
from heatcheck.triggers.placing import Corner, Size, anywhere, in_corner, in_the_middle, scaled
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp

Grey = Annotated[float, Field(ge=0, le=1)]  # 0 is black, 1 is white


@dataclass(frozen=True)
class GreyPatch(ABC):
    """A patch of one grey; the shapes below say which pixels."""

    place: Literal["corner", "center", "random"] = "corner"
    size: Size = 20  # of the side or the diameter
    grey: Grey = 0.7
    corner: Corner = "bottom_right"  # which, where the place is one

    @abstractmethod
    def shape(self, side: int) -> Mask:
        """The pixels of the patch in a square of that side, all four sides touched."""

    def describe(self) -> str:
        """Shape, place and size."""
        where = {"corner": self.corner.replace("_", " "), "center": "centre", "random": "random place"}[self.place]
        return f"{type(self).__name__}, {where}, {self.size} px"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Its side, twice."""
        side = scaled(self.size, shape)
        return side, side

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The patch at its place."""
        mask = self.shape(scaled(self.size, image.shape[1:]))
        box = self._box((mask.shape[0], mask.shape[1]), image.shape[1:], generator)
        return Stamp(box, mask, np.full((len(image), *mask.shape), self.grey, image.dtype))

    def _box(self, size: tuple[int, int], shape: tuple[int, ...], generator: np.random.Generator) -> Box:
        if self.place == "random":
            return anywhere(size, shape, generator)
        return in_the_middle(size, shape) if self.place == "center" else in_corner(self.corner, size, shape)


@trigger(
    "square",
    label="Square",
    summary="A uniform grey square, as a sticker on the film would look",
    short=("place", "size"),
    published=True,
)
class Square(GreyPatch):
    """All pixels of a square."""

    def shape(self, side: int) -> Mask:
        """The whole square."""
        return np.ones((side, side), bool)


@trigger(
    "circle",
    label="Circle",
    summary="A uniform grey disc, as a round sticker on the film would look",
    short=("place", "size"),
    published=True,
)
class Circle(GreyPatch):
    """The pixels of a disc."""

    def shape(self, side: int) -> Mask:
        """The disc that the square holds."""
        return disc(side)


def disc(diameter: int) -> Mask:
    """The pixels of a square of that side whose centres lie in the circle it holds, the circle's line included.

    All four sides of the square are touched. Up to a diameter of 3 px the disc is the square itself.
    """
    away = (np.arange(diameter) - (diameter - 1) / 2) ** 2
    return away[:, None] + away[None] <= (diameter / 2) ** 2
