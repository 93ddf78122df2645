"""The marks of one finding on one image, in every form that files have, as a mask on the image's grid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Float
from PIL import Image as Pictures
from PIL import ImageDraw

from heatcheck.core.records import Mask
from heatcheck.sources.files.reading import read_mask
from heatcheck.sources.files.rle import decode, run_lengths

Polygon = Float[np.ndarray, "point 2"]  # x, y
Box = tuple[float, float, float, float]  # x, y, width, height


class Marks(Protocol):
    """The marks of one finding on one image."""

    @property
    def instances(self) -> int | None:
        """How many outlines or boxes were drawn; None if unknown."""

    @property
    def polygons(self) -> tuple[Polygon, ...]:
        """The outlines as drawn; boxes as their corners, nothing for a mask."""

    @property
    def empty(self) -> bool:
        """Whether nothing is marked: a stored mask may have no pixels."""

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The marked pixels on a grid of this shape."""


@dataclass(frozen=True)
class Outlines:
    """Polygons; `drawn` is the number of outlines if an outline may have several polygons."""

    polygons: tuple[Polygon, ...]
    drawn: int | None = None

    @property
    def instances(self) -> int:
        """`drawn`, or else one outline per polygon."""
        return len(self.polygons) if self.drawn is None else self.drawn

    @property
    def empty(self) -> bool:
        """Whether there are no polygons."""
        return not self.polygons

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The pixels inside or on any outline."""
        return filled(self.polygons, (shape[0], shape[1]))


@dataclass(frozen=True)
class Runs:
    """A run-length coded mask."""

    counts: str | Sequence[int]
    instances: int | None = None
    polygons: tuple[Polygon, ...] = ()

    @cached_property
    def empty(self) -> bool:
        """Whether no run of present pixels has a length."""
        return not run_lengths(self.counts)[1::2].any()

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The decoded mask; reading the file has compared its size with the counts."""
        return decode(self.counts, (shape[0], shape[1]))


@dataclass(frozen=True)
class Boxes:
    """Boxes; a pixel belongs to a box if its centre does. A box that contains no centre gets the pixel it lies in."""

    boxes: tuple[Box, ...]

    @property
    def instances(self) -> int:
        """One per box."""
        return len(self.boxes)

    @property
    def empty(self) -> bool:
        """Whether there are no boxes."""
        return not self.boxes

    @property
    def polygons(self) -> tuple[Polygon, ...]:
        """The four corners of each box."""
        return tuple(np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h]]) for x, y, w, h in self.boxes)

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The pixels inside any box."""
        mask = np.zeros(shape, bool)
        for x, y, width, height in self.boxes:
            mask[_span(y, height, shape[0]), _span(x, width, shape[1])] = True
        return mask


@dataclass(frozen=True)
class Several:
    """Marks of one finding in several forms, each a separate outline or box."""

    parts: tuple[Marks, ...]

    @property
    def instances(self) -> int:
        """One per part."""
        return len(self.parts)

    @property
    def empty(self) -> bool:
        """Whether all parts are empty."""
        return all(part.empty for part in self.parts)

    @property
    def polygons(self) -> tuple[Polygon, ...]:
        """The polygons of all parts."""
        return tuple(polygon for part in self.parts for polygon in part.polygons)

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The union of the parts."""
        return np.asarray(np.logical_or.reduce([part.mask(shape) for part in self.parts]))


@dataclass(frozen=True)
class MaskFile:
    """An image whose pixels above 0 are marked; read on demand."""

    path: Path
    name: str  # the file's name in errors
    instances: int | None = None
    polygons: tuple[Polygon, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether all pixels are 0; this reads the file."""
        return not read_mask(self.path, self.name, None).any()

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The pixels above 0; raises CaseError if the file cannot be read or has another size."""
        return read_mask(self.path, self.name, shape)


def filled(polygons: Sequence[Polygon], shape: tuple[int, int]) -> Mask:
    """The pixels that Pillow fills and outlines for any of the polygons, cut off at the image's border.

    To save time only the rows of the polygons are drawn, and the columns up to their last one: shifting rows changes
    nothing, but shifting columns would change how Pillow rounds.
    """
    mask = np.zeros(shape, bool)
    truncated = [np.trunc(polygon).astype(int) for polygon in polygons]  # Pillow truncates coordinates
    if not truncated:
        return mask
    top = int(np.clip(min(points[:, 1].min() for points in truncated), 0, shape[0]))
    bottom = int(np.clip(max(points[:, 1].max() for points in truncated) + 1, top, shape[0]))
    right = int(np.clip(max(points[:, 0].max() for points in truncated) + 1, 0, shape[1]))
    if bottom > top and right > 0:
        picture = Pictures.new("L", (right, bottom - top))
        pen = ImageDraw.Draw(picture)
        for points in truncated:
            pen.polygon([(x, y - top) for x, y in points.tolist()], outline=1, fill=1)
        mask[top:bottom, :right] = np.asarray(picture, np.uint8).view(bool)
    return mask


def _span(start: float, length: float, size: int) -> slice:
    """The pixels whose centres lie in the interval; if there are none, the pixel that contains its middle."""
    first, end = math.ceil(start - 0.5), math.ceil(start + length - 0.5)
    if first >= end:
        first = math.floor(start + length / 2)
        end = first + 1
    return slice(min(max(first, 0), size), min(max(end, 0), size))
