"""A picture of the user's own as a trigger: an artefact cut out of a film, a sticker, a marker."""

import hashlib
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import Annotated, Self

import cv2
import numpy as np
from pydantic import Field

from heatcheck.core.records import Image, Map
from heatcheck.triggers.ink import VISIBLE
from heatcheck.triggers.placing import Corner, Place, Size, place_words, placed_box, scaled
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp, stamp_where

NOT_READ = "the picture's file has not been read; call with_pixels first"


@trigger(
    "picture",
    label="Picture of your own",
    summary="Any picture with a mask, or with transparent parts, such as an artefact cut out of a film",
    needs_file=True,
)
@dataclass(frozen=True)
class Picture:
    """The settings of a picture; `with_pixels` adds what was read from its files, which a stage does not open."""

    image: str = ""  # its file, relative to the spec; PNG, TIFF, DICOM, NIfTI, .npy
    mask: str = ""  # a file of the same size, above 0 on the picture; without it what the picture's alpha shows, or all
    place: Place = "corner"
    size: Size = 40  # its longer side
    corner: Corner = "bottom_right"  # which one, if the place is a corner
    opacity: Annotated[float, Field(gt=0, le=1)] = 1.0
    value_range: tuple[float, float] | None = None  # stored values that become black and white

    def describe(self) -> str:
        """File, place and size."""
        return f"Picture {PurePath(self.image).stem}, {place_words(self.place, self.corner)}, {self.size} px"

    def with_pixels(self, pixels: Map, alpha: Map) -> "OpenedPicture":
        """The trigger that draws these grey values, each with the share of it that is not transparent."""
        settings = {each.name: getattr(self, each.name) for each in fields(Picture)}
        return OpenedPicture(**settings, pixels=pixels, alpha=alpha).cut_out()

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:  # noqa: ARG002
        """Not known before the file is read."""
        raise ValueError(NOT_READ)

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """Not possible before the file is read."""
        raise ValueError(NOT_READ)


@dataclass(frozen=True)
class OpenedPicture(Picture):
    """A picture that was read, cut out to what can be seen of it."""

    pixels: Map = field(kw_only=True, repr=False, compare=False)
    alpha: Map = field(kw_only=True, repr=False, compare=False)

    def cut_out(self) -> Self:
        """The same without rows and columns that are transparent at its sides."""
        rows, columns = (np.flatnonzero((self.alpha > 0).any(axis)) for axis in (1, 0))
        box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        settings = {each.name: getattr(self, each.name) for each in fields(Picture)}
        return type(self)(**settings, pixels=self.pixels[box], alpha=self.alpha[box])

    @property
    def digest(self) -> str:
        """A text that changes with the pixels."""
        parts = (str(self.pixels.shape).encode(), self.pixels.tobytes(), self.alpha.tobytes())
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Its height and width, the longer one as the size says."""
        longer = max(self.pixels.shape)
        height, width = (max(1, round(scaled(self.size, shape) * side / longer)) for side in self.pixels.shape)
        return height, width

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The picture at its place, in all channels; its mask is what is visibly covered."""
        shape = (image.shape[1], image.shape[2])
        height, width = self.extent(shape)
        # pixels are weighted by alpha before they are joined, or the hidden colour of clear ones would show at the edge
        alpha, weighted = (
            cv2.resize(each, (width, height), interpolation=cv2.INTER_AREA)
            for each in (self.alpha, self.alpha * self.pixels)
        )
        box = placed_box(self.place, self.corner, (height, width), shape, generator)
        values = image.copy()
        values[:, *box] += self.opacity * (weighted - alpha * values[:, *box])
        mask = np.zeros(shape, bool)
        mask[box] = alpha >= min(VISIBLE, float(alpha.max()))
        return stamp_where(mask, values.clip(0, 1))
