"""A trigger on one image: the pixels it takes, and their new values."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.boxes import Box, box_around
from heatcheck.core.records import Image, Map, Mask

FAINT = 0.2  # of the largest change


@dataclass(frozen=True, slots=True, eq=False)
class Stamp:
    """A patch for one image: the tightest box around its pixels, which pixels of the box they are, and their values.

    A pixel of the mask may already have had its value, so fewer pixels than those of the mask may differ between the
    clean and the stamped image, but never others.
    """

    box: Box  # rows and columns
    mask: Mask  # on the grid of the box
    values: Image  # channel, then the box's rows and columns; used inside the mask

    def __post_init__(self) -> None:
        size = tuple(axis.stop - axis.start for axis in self.box)
        if self.mask.shape != size or self.values.shape[1:] != size:
            raise ValueError(
                f"mask {self.mask.shape} and values {self.values.shape} must have the size of the box, {size}"
            )
        if not all(side.any() for side in (self.mask[0], self.mask[-1], self.mask[:, 0], self.mask[:, -1])):
            raise ValueError(f"the mask must reach all four sides of its box {size}; use stamp_where")

    def on(self, image: Image) -> Image:
        """A copy of the image with the patch in place of its pixels."""
        stamped = image.copy()
        stamped[:, *self.box][:, self.mask] = self.values[:, self.mask]
        return stamped

    def mask_on(self, shape: tuple[int, ...]) -> Mask:
        """The mask on the grid of an image of this height and width."""
        mask = np.zeros(shape, bool)
        mask[self.box] = self.mask
        return mask


def stamp_of_change(image: Image, change: Map, mask: Mask | None = None) -> Stamp:
    """The stamp that adds the change to every channel, kept between black and white.

    Without a mask it takes the pixels that change by at least a fifth of the largest change; the rest is hardly seen.
    """
    strength = np.abs(change)
    chosen = strength >= FAINT * strength.max() if mask is None else mask
    return stamp_where(chosen, (image + change).clip(0, 1).astype(image.dtype))


def stamp_where(mask: Mask, values: Image) -> Stamp:
    """The stamp of the mask's pixels; mask and values are on the image's grid, and the mask is not empty."""
    box = box_around(mask)
    return Stamp(box, mask[box].copy(), values[:, *box].copy())  # a view would keep the whole image in memory
