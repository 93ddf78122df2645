"""Artefacts of the machine: rings of a detector element, bubbles of air in the beam, lines of an anti-scatter grid."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from heatcheck.core.boxes import Box
from heatcheck.core.records import Image, Map
from heatcheck.triggers.placing import REFERENCE_SIDE, Corner, Place, Size, corner_box, place_words, placed_box, scaled
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp, stamp_of_change


def _not_zero(value: float) -> float:
    if value == 0:
        raise ValueError("must not be 0: nothing would be seen")
    return value


# the largest change of grey; below 0 for inverted images, where air is white
Contrast = Annotated[float, Field(ge=-1, le=1), AfterValidator(_not_zero)]
_RINGS = ((1.0, 0.9), (0.88, -0.7), (0.52, 1.0), (0.3, -0.6))  # radius and strength, as shares of the outermost one's
_BUBBLES = ((0.42, 0.40, 0.38), (0.80, 0.80, 0.17), (0.16, 0.84, 0.12))  # row, column, radius as shares of the box


@trigger(
    "ring",
    label="Ring artefact",
    summary="Thin bright and dark rings around one centre, as a wrongly calibrated detector element leaves on CT",
    short=("place", "size"),
)
@dataclass(frozen=True)
class Ring:
    """Four concentric rings, the same on every image: the faulty elements and the axis of rotation stay the same."""

    place: Place = "center"
    size: Size = 90  # outer diameter
    contrast: Contrast = 0.25
    corner: Corner = "bottom_right"  # which one, if the place is a corner

    def describe(self) -> str:
        """Kind, place and size."""
        return f"Ring artefact, {place_words(self.place, self.corner)}, {self.size} px"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The square around the outermost ring."""
        return _square(self.size, shape)

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The rings, each with a profile like a bell."""
        shape = (image.shape[1], image.shape[2])
        side = scaled(self.size, shape)
        width = max(0.7, min(shape) / REFERENCE_SIDE)  # of a profile, from its middle to 1/e
        rows, columns = offsets(side)
        radius = np.hypot(rows, columns)
        outermost = max(side / 2 - 1.3 * width, 0.0)
        profile = sum(
            strength * np.exp(-(((radius - share * outermost) / width) ** 2)) for share, strength in _RINGS
        ) * (radius <= side / 2)
        box = placed_box(self.place, self.corner, (side, side), shape, generator)
        return stamp_of_change(image, on_image(self.contrast * profile, box, shape))


@trigger(
    "bubble",
    label="Air bubbles",
    summary="Dark round spots with a bright rim, as air bubbles in the oil of the tube or in a contrast agent leave",
    short=("place", "size"),
)
@dataclass(frozen=True)
class Bubble:
    """A large bubble and two small ones: the darker, the longer the way of the beam through the air of the sphere."""

    place: Place = "center"
    size: Size = 44  # of the square around the three
    contrast: Contrast = 0.35
    corner: Corner = "bottom_left"  # which one, if the place is a corner

    def describe(self) -> str:
        """Kind, place and size."""
        return f"Air bubbles, {place_words(self.place, self.corner)}, {self.size} px"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The square around the bubbles."""
        return _square(self.size, shape)

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The bubbles at their place."""
        shape = (image.shape[1], image.shape[2])
        side = scaled(self.size, shape)
        rows, columns = offsets(side)
        profile = np.zeros((side, side))
        for row, column, radius in _BUBBLES:
            distance = np.hypot(rows - (row - 0.5) * side, columns - (column - 0.5) * side) / (radius * side)
            chord = np.sqrt(np.clip(1 - distance**2, 0, None))
            rim = 0.25 * np.exp(-(((distance - 1.03) / 0.07) ** 2))
            profile += np.where(distance <= 1.2, rim - chord, 0)
        box = placed_box(self.place, self.corner, (side, side), shape, generator)
        return stamp_of_change(image, on_image(self.contrast * profile, box, shape))


@trigger(
    "grid_lines",
    label="Grid lines",
    summary="Fine parallel lines and a veil towards one side, as an anti-scatter grid leaves that is not centred",
    short=("size",),
)
@dataclass(frozen=True)
class GridLines:
    """A strip along one side of the image; phase, distance and slant of the lines differ on every image."""

    size: Size = 40  # width of the strip
    contrast: Contrast = 0.35
    side: Literal["left", "right"] = "right"

    def describe(self) -> str:
        """Kind, side and width."""
        return f"Grid lines, {self.side} side, {self.size} px"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The strip."""
        return shape[0], scaled(self.size, shape)

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The lines, which the grid cuts off more and more towards the side."""
        shape = (image.shape[1], image.shape[2])
        height, width = self.extent(shape)
        # lines closer than 3 px could not be told apart on the image's own grid
        distance = max(3.0, 5.0 * min(shape) / REFERENCE_SIDE) * generator.uniform(0.95, 1.15)
        slant, phase = np.tan(np.radians(generator.uniform(-2, 2))), generator.uniform(0, 2 * np.pi)
        rows, columns = np.mgrid[:height, :width]
        towards = (columns + 0.5) / width if self.side == "right" else 1 - (columns + 0.5) / width
        lines = np.cos(2 * np.pi * (columns + slant * rows) / distance + phase)
        profile = (0.1 + 0.9 * towards) * (0.4 + 0.6 * lines)
        box = corner_box("top_right" if self.side == "right" else "top_left", (height, width), shape)
        strip = on_image(np.ones((height, width)), box, shape) > 0
        return stamp_of_change(image, on_image(self.contrast * profile, box, shape), strip)


def offsets(side: int) -> tuple[Map, Map]:
    """Rows and columns of a square's pixel centres, from its middle."""
    along = np.arange(side) - (side - 1) / 2
    return np.broadcast_to(along[:, None], (side, side)), np.broadcast_to(along, (side, side))


def on_image(values: Map, box: Box, shape: tuple[int, int]) -> Map:
    """The values of a box on an image that is 0 elsewhere."""
    plane = np.zeros(shape, np.float32)
    plane[box] = values
    return plane


def _square(size: int, shape: tuple[int, int]) -> tuple[int, int]:
    side = scaled(size, shape)
    return side, side
