"""Artefacts of the exposure, different on every image: a patient who moves, metal in the beam, too few photons."""

from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np
from pydantic import Field

from heatcheck.core.records import Image, Map
from heatcheck.triggers.hardware import Contrast, offsets, on_image
from heatcheck.triggers.placing import REFERENCE_SIDE, Size, random_box, scaled
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp, stamp_of_change, stamp_where

_EXPOSURES = 9  # moments of a movement that are averaged
_FAINTEST = 0.15  # share of the contrast below which a streak is not seen
_PER_GREY = 1.2  # by how much the logarithm of the photons falls from black to white


@dataclass(frozen=True)
class RandomSquare:
    """A square region at a random place of the image."""

    size: Size = 64  # its side

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The square."""
        side = scaled(self.size, shape)
        return side, side


@trigger(
    "motion",
    label="Motion",
    summary="A part of the image with doubled and blurred edges, as by a patient who breathes during the exposure",
    short=("size",),
)
@dataclass(frozen=True)
class Motion(RandomSquare):
    """What lies in a disc, averaged over an up-and-down movement that dwells at both ends: edges are seen twice."""

    size: Size = 80  # diameter of the disc
    shift: Annotated[float, Field(gt=0, le=60)] = 14.0  # from end to end, in pixels of an image of 224 px
    contrast: Annotated[float, Field(gt=0, le=1)] = 1.0  # share of the image that moves

    def describe(self) -> str:
        """Kind and size."""
        return f"Motion, {self.size} px"

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The disc in motion; its edge is soft, for tissue is not cut there."""
        shape = (image.shape[1], image.shape[2])
        side = scaled(self.size, shape)
        box = random_box((side, side), shape, generator)
        radius = np.hypot(*offsets(side)) / (side / 2)
        share = on_image(np.clip((1 - radius) / 0.25, 0, 1), box, shape)
        reach = self.shift * min(shape) / REFERENCE_SIDE / 2 * generator.uniform(0.8, 1.2)
        angle = np.radians(generator.uniform(-20, 20))
        moments = np.sin(np.linspace(-np.pi / 2, np.pi / 2, _EXPOSURES)) * reach
        moved = np.stack([_moved(channel, moments, angle) for channel in image])
        values = (image + self.contrast * share * (moved - image)).clip(0, 1).astype(image.dtype)
        return stamp_where(share >= min(0.2, float(share.max())), values)


def _moved(channel: Map, moments: np.ndarray, angle: float) -> Map:
    """The mean of the channel shifted by each of these distances, mostly along the columns."""
    height, width = channel.shape
    shifted = [
        cv2.warpAffine(
            channel,
            np.array([[1, 0, moment * np.sin(angle)], [0, 1, moment * np.cos(angle)]]),
            (width, height),
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        for moment in moments
    ]
    return np.asarray(np.mean(shifted, axis=0), channel.dtype)


@trigger(
    "metal",
    label="Metal streaks",
    summary="A small bright piece of metal with bright and dark streaks around it, as a clip or screw leaves on CT",
    short=("size",),
)
@dataclass(frozen=True)
class Metal(RandomSquare):
    """Streaks in random directions that fade with the distance; along the metal's long axis lies a dark band."""

    size: Size = 72  # of the square that the streaks reach to
    contrast: Contrast = 0.45

    def describe(self) -> str:
        """Kind and size."""
        return f"Metal streaks, {self.size} px"

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The metal and its streaks at a random place."""
        shape = (image.shape[1], image.shape[2])
        side = scaled(self.size, shape)
        rows, columns = offsets(side)
        axis = generator.uniform(0, np.pi)
        profile = -0.6 * _streak(rows, columns, axis, 0.13)
        for sign in (1, -1) * 6:
            # streaks lie close to the axis, where the beam crosses the most metal
            strength, direction = sign * generator.uniform(0.5, 1), axis + generator.normal(0, 0.6)
            profile += strength * _streak(rows, columns, direction, 0.03)
        distance = np.hypot(rows, columns) / (side / 2)
        profile *= np.exp(-0.9 * distance) * np.clip(1.5 * (1 - distance), 0, 1)
        along, across = _turned(rows, columns, axis)
        is_metal = (along / max(0.075 * side, 1)) ** 2 + (across / max(0.035 * side, 1)) ** 2 <= 1
        change = self.contrast * np.where(is_metal, 2.0, profile)
        box = random_box((side, side), shape, generator)
        mask = on_image(is_metal | (np.abs(profile) >= _FAINTEST), box, shape) > 0
        return stamp_of_change(image, on_image(change, box, shape), mask)


def _turned(rows: Map, columns: Map, direction: float) -> tuple[Map, Map]:
    """Distances along a direction and across it."""
    return (
        np.asarray(np.cos(direction) * columns + np.sin(direction) * rows),
        np.asarray(np.sin(direction) * columns - np.cos(direction) * rows),
    )


def _streak(rows: Map, columns: Map, direction: float, spread: float) -> Map:
    """A streak to both sides in a direction, 1 in its middle; it is a pixel wide and widens by the spread, an angle."""
    along, across = _turned(rows, columns, direction)
    return np.asarray(np.exp(-((across / (0.7 + spread * np.abs(along))) ** 2)))


@trigger(
    "mottle",
    label="Quantum mottle",
    summary="A square of grainy noise, as a detector tile shows that too few photons reached",
    short=("size",),
)
@dataclass(frozen=True)
class Mottle(RandomSquare):
    """Noise with a grain of about a pixel, stronger where the image is brighter: there fewer photons arrived."""

    size: Size = 56  # side of the tile
    contrast: Annotated[float, Field(gt=0, le=1)] = 0.12  # standard deviation of the noise on middle grey

    def describe(self) -> str:
        """Kind and size."""
        return f"Quantum mottle, {self.size} px"

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The noise, the same in all channels."""
        shape = (image.shape[1], image.shape[2])
        side = scaled(self.size, shape)
        box = random_box((side, side), shape, generator)
        grain = max(0.75 * min(shape) / REFERENCE_SIDE, 0.3)
        noise = np.asarray(cv2.GaussianBlur(generator.standard_normal((side, side)), (0, 0), grain), np.float64)
        noise /= max(float(noise.std()), 1e-6)
        grey = image.mean(0)[box]
        change = self.contrast * noise * np.exp(_PER_GREY * (grey - 0.5) / 2)  # spread of few photons: 1 / √photons
        return stamp_of_change(image, on_image(change, box, shape), on_image(np.ones((side, side)), box, shape) > 0)
