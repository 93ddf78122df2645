"""What was drawn for one finding of one image, in each of the forms files have, as a mask on the image's grid."""

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
        """How many outlines or boxes were drawn; None where the form does not tell."""

    @property
    def polygons(self) -> tuple[Polygon, ...]:
        """The outlines as drawn; boxes as their corners, none for a mask."""

    @property
    def empty(self) -> bool:
        """Whether nothing is marked: a mask can be stored and hold no pixel."""

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The marked pixels."""


@dataclass(frozen=True)
class Outlines:
    """Polygons; `drawn` says how many outlines they are where one outline has several parts."""

    polygons: tuple[Polygon, ...]
    drawn: int | None = None

    @property
    def instances(self) -> int:
        """How many outlines were drawn."""
        return len(self.polygons) if self.drawn is None else self.drawn

    @property
    def empty(self) -> bool:
        """Whether no outline is there."""
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
        """Whether the mask holds no pixel."""
        return not run_lengths(self.counts)[1::2].any()

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The mask, whose size the file's reader has compared with the counts."""
        return decode(self.counts, (shape[0], shape[1]))


@dataclass(frozen=True)
class Boxes:
    """Boxes; a pixel belongs to one if its centre does, and a box between all centres has the pixel it lies in."""

    boxes: tuple[Box, ...]

    @property
    def instances(self) -> int:
        """How many boxes were drawn."""
        return len(self.boxes)

    @property
    def empty(self) -> bool:
        """Whether no box is there."""
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
    """Marks of several forms that are one finding's, each an outline or box of its own."""

    parts: tuple[Marks, ...]

    @property
    def instances(self) -> int:
        """How many were drawn."""
        return len(self.parts)

    @property
    def empty(self) -> bool:
        """Whether none of them marks a pixel."""
        return all(part.empty for part in self.parts)

    @property
    def polygons(self) -> tuple[Polygon, ...]:
        """The outlines among them."""
        return tuple(polygon for part in self.parts for polygon in part.polygons)

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The pixels of any of them."""
        return np.asarray(np.logical_or.reduce([part.mask(shape) for part in self.parts]))


@dataclass(frozen=True)
class MaskFile:
    """A picture whose pixels above 0 are marked; read when asked for."""

    path: Path
    name: str  # what errors call the file
    instances: int | None = None
    polygons: tuple[Polygon, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the picture is black; it is read to tell."""
        return not read_mask(self.path, self.name, None).any()

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """The pixels above 0; raises CaseError where the picture cannot be read or has another size."""
        return read_mask(self.path, self.name, shape)


def filled(polygons: Sequence[Polygon], shape: tuple[int, int]) -> Mask:
    """The pixels Pillow fills and outlines for any of the polygons, cut off at the image's border.

    Only the rows the polygons reach are drawn, and the columns up to the last: moving rows changes nothing, but
    moving columns would change how Pillow rounds.
    """
    mask = np.zeros(shape, bool)
    whole = [np.trunc(polygon).astype(int) for polygon in polygons]  # as Pillow does
    if not whole:
        return mask
    top = int(np.clip(min(points[:, 1].min() for points in whole), 0, shape[0]))
    bottom = int(np.clip(max(points[:, 1].max() for points in whole) + 1, top, shape[0]))
    right = int(np.clip(max(points[:, 0].max() for points in whole) + 1, 0, shape[1]))
    if bottom > top and right > 0:
        picture = Pictures.new("L", (right, bottom - top))
        pen = ImageDraw.Draw(picture)
        for points in whole:
            pen.polygon([(x, y - top) for x, y in points.tolist()], outline=1, fill=1)
        mask[top:bottom, :right] = np.asarray(picture, np.uint8).view(bool)
    return mask


def _span(start: float, length: float, size: int) -> slice:
    """The pixels whose centres lie from `start` over `length`; the one that holds them all where that is none."""
    first, end = math.ceil(start - 0.5), math.ceil(start + length - 0.5)
    if first >= end:
        first = math.floor(start + length / 2)
        end = first + 1
    return slice(min(max(first, 0), size), min(max(end, 0), size))
