"""A trigger as it lies on one image: which pixels it takes, and what it puts there."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.boxes import Box, box_around
from heatcheck.core.records import Image, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Stamp:
    """A patch for one image: the tightest box around its pixels, which pixels of the box they are, and their values.

    A pixel of the mask may have had its value before: the pixels that differ between the clean and the stamped image
    can be fewer than those of the mask, never others.
    """

    box: Box  # rows and columns
    mask: Mask  # of the box
    values: Image  # channel, then the box's rows and columns; read where the mask is

    def __post_init__(self) -> None:
        size = tuple(along.stop - along.start for along in self.box)
        if self.mask.shape != size or self.values.shape[1:] != size:
            raise ValueError(
                f"mask {self.mask.shape} and values {self.values.shape} must fill the box, which is {size}"
            )
        if not all(side.any() for side in (self.mask[0], self.mask[-1], self.mask[:, 0], self.mask[:, -1])):
            raise ValueError(f"the mask must reach all four sides of its box {size}; use stamp_where")

    def on(self, image: Image) -> Image:
        """A copy of the image with the patch in place of its pixels."""
        stamped = image.copy()
        place = stamped[:, *self.box]
        place[:, self.mask] = self.values[:, self.mask]
        return stamped

    def mask_on(self, shape: tuple[int, ...]) -> Mask:
        """The patch's pixels on the grid of an image of this height and width."""
        whole = np.zeros(shape, bool)
        whole[self.box] = self.mask
        return whole


def stamp_where(mask: Mask, values: Image) -> Stamp:
    """The stamp of the mask's pixels, both on the image's whole grid; the mask must not be empty."""
    box = box_around(mask)
    return Stamp(box, mask[box].copy(), values[:, *box].copy())  # a view would keep the whole image in memory
