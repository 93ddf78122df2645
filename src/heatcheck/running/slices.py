"""The slice that a picture shows of a case: of a volume the fullest one, in radiological orientation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float, Shaped

from heatcheck.core.orientation import Display, radiological
from heatcheck.core.records import Case, Map, Mask


@dataclass(frozen=True)
class View:
    """A slice of the image's grid as a picture; an image without an affine is shown as it is stored."""

    display: Display
    place: int  # index of the slice in the display
    shape: tuple[int, ...]  # of the image's grid
    size: tuple[int, int]  # rows and columns of the picture, in true proportions

    @property
    def slices(self) -> int:
        """The number of slices."""
        return self._length(0)

    def _length(self, axis: int) -> int:
        """The length of the image along slices (0), rows (1) or columns (2)."""
        return (*self.shape, 1)[self.display.axes[axis]]

    def cut(self, values: Shaped[np.ndarray, "*space"]) -> Shaped[np.ndarray, "row column"]:
        """The slice on the pixels of the image."""
        return np.ascontiguousarray(self.display.turned(values)[self.place])

    def picture(self, values: Map) -> Map:
        """The slice of a map or an image as a picture."""
        return np.asarray(self._resized(self.cut(values), cv2.INTER_LINEAR))

    def mask(self, mask: Mask) -> Mask:
        """The slice of a mask as a picture."""
        return np.asarray(self._resized(self.cut(mask).view(np.uint8), cv2.INTER_NEAREST).view(bool))

    def _resized(self, picture: np.ndarray, interpolation: int) -> np.ndarray:
        if picture.shape == self.size:
            return picture
        return np.asarray(cv2.resize(picture, self.size[::-1], interpolation=interpolation))

    def at(self, row: float, column: float) -> list[float]:
        """A position on the slice, whose first pixel reaches from 0 to 1, as [x, y] of the picture's pixel centres."""
        tall, wide = (length / self._length(axis) for axis, length in zip((1, 2), self.size, strict=True))
        return [column * wide - 0.5, row * tall - 0.5]

    def spot(self, position: Sequence[float]) -> list[float] | None:
        """A position on the image's grid as [x, y] of the picture; None if it is in another slice."""
        lengths = (*self.shape, 1)[:3]
        stored = [(*position, 0.5)[axis] for axis in self.display.axes]
        flips = zip(stored, self.display.axes, self.display.flips, strict=True)
        _, row, column = (lengths[axis] - value if flip else value for value, axis, flip in flips)
        number = math.floor(stored[0])
        if self.display.flips[0]:
            number = self.slices - 1 - number
        return self.at(row, column) if number == self.place else None


def view_of(case: Case, shown: Float[np.ndarray, "*space"] | Mask) -> View:
    """The slice with the largest sum of `shown`, which is the truth or a map."""
    shape = case.image.shape[1:]
    display = radiological(case.affine, shape)
    turned = display.turned(shown)
    fullest = int(turned.sum((1, 2)).argmax())
    tall, wide = display.voxel[1:]
    rows, columns = turned.shape[1:]
    thin = min(tall, wide)
    return View(display, fullest, shape, (round(rows * tall / thin), round(columns * wide / thin)))
