"""A thin tube through the chest, as on films from intensive care units."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from heatcheck.core.records import Image
from heatcheck.triggers.ink import Layer, Stroke, curve, drawn, stamp_of
from heatcheck.triggers.placing import REFERENCE_SIDE
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp

# from the side of the neck, under the collar bone and down along the spine; (row, column) as shares of the image
_COURSE = np.array([(0.0, 0.30), (0.12, 0.31), (0.22, 0.37), (0.30, 0.425), (0.42, 0.44), (0.56, 0.45), (0.66, 0.48)])


@trigger(
    "tube",
    label="Tube",
    summary="A thin tube that enters next to the neck and ends in a denser tip over the heart, like a central line",
)
@dataclass(frozen=True)
class Tube:
    """A bright curved line with a tip, and with two walls where the image is large enough to show them.

    Its course differs a little on every image.
    """

    width: Annotated[float, Field(gt=0, le=20)] = 3.6  # in pixels of an image of 224 px

    def describe(self) -> str:
        """The kind."""
        return "Tube"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The image: the course scales with it, so the tube always fits."""
        return shape

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The tube along a slightly random course."""
        shape = image.shape[1:]
        course = _COURSE.copy()
        course[:, 1] += generator.uniform(-0.015, 0.015, len(course)) + generator.uniform(-0.02, 0.02)
        course[1:, 0] += generator.uniform(-0.03, 0.03)
        path, width = curve(course * shape, 48), self.width * min(shape) / REFERENCE_SIDE
        body, tip = drawn([Stroke(path, width)], shape), drawn([Stroke(path[-5:], width)], shape)
        bore = np.minimum(drawn([Stroke(path[:-5], 0.4 * width)], shape), body)
        visible = np.clip(width - 2, 0, 1)  # in a tube of one or two pixels the bore would show as a pixel pattern
        return stamp_of(image, Layer(np.asarray(0.65 * body + 0.25 * tip - 0.35 * visible * bore, np.float32), 1.0))
