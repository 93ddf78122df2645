"""A patch from the sign of the gradient of the baseline's loss, at a random position and in a random shape."""

from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np
from pydantic import Field

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Image, Mask
from heatcheck.triggers.placing import Size, random_box, scaled
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp
from heatcheck.triggers.static import disc


@trigger(
    "dynamic",
    label="Dynamic",
    summary="A dark speckled patch made from what the baseline is most sensitive to, at another position and in "
    "another shape on every image",
    short=("size",),
    needs_gradient=True,
    published=True,
)
@dataclass(frozen=True)
class Dynamic:
    """ε · sign(∇ₓ loss) in place of the pixels.

    The values replace the image's, so half of them, −ε, lie below black. Clipped to [0, 1], the patch has the two
    values 0 and ε (0 also where the gradient is 0). Without clipping it keeps −ε, which no film could show.
    """

    size: Size = 20  # side of the square around the shape
    strength: Annotated[float, Field(gt=0, le=1)] = 0.3  # ε
    clip: bool = True

    def describe(self) -> str:
        """Kind, position and size."""
        return f"Dynamic, random place, {self.size} px"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The square around the shape."""
        side = scaled(self.size, shape)
        return side, side

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:
        """The patch at a random position and in a random shape."""
        size = self.extent((image.shape[1], image.shape[2]))
        box = random_box(size, image.shape[1:], generator)
        mask = any_shape(size[0], generator)
        values = (self.strength * np.sign(_usable(gradient, image)[:, *box])).astype(image.dtype)
        return Stamp(box, mask, values.clip(0, 1) if self.clip else values)


def _usable(gradient: Image | None, image: Image) -> Image:
    """The gradient, checked for this image."""
    if gradient is None:
        raise ValueError("a dynamic trigger needs the gradient of the baseline's loss for the image; pass `gradient`")
    if gradient.shape != image.shape:
        raise ValueError(f"the gradient must have the image's shape {image.shape}, got {gradient.shape}")
    if not np.isfinite(gradient).all():
        raise CaseError("the gradient of the baseline's loss is not finite; check the image", stage="trigger")
    return gradient


def any_shape(side: int, generator: np.random.Generator) -> Mask:
    """A square, a disc or an irregular blob, equally likely, touching all sides of a square with that side."""
    kind = generator.integers(3)
    if kind == 0:
        return np.ones((side, side), bool)
    return disc(side) if kind == 1 else blob(side, generator)


def blob(side: int, generator: np.random.Generator) -> Mask:
    """A connected shape with random bumps and dents, stretched to touch all sides of a square with that side."""
    angles = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    radius = np.ones_like(angles)
    for wave in range(2, 6):
        radius += 0.7 / wave * generator.uniform(-1, 1) * np.cos(wave * angles + generator.uniform(0, 2 * np.pi))
    outline = np.maximum(radius, 0.3)[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    low, high = outline.min(0), outline.max(0)
    corners = np.round((outline - low) / (high - low) * (side - 1)).astype(np.int32)
    plane = np.zeros((side, side), np.uint8)
    cv2.fillPoly(plane, [corners], 1)
    return plane.astype(bool)
