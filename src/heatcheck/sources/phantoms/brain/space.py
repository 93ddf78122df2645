"""The space of a head in millimetres: the voxels of an image in it, and smooth random fields."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Affine

WIDTH = 204.0  # field of view in millimetres along rows and columns
BOTTOM, TOP = -52.0, 92.0  # lowest and highest point of a volume in millimetres
Field = Float[np.ndarray, "slice row column"]


class HeadPosition(NamedTuple):
    """Positions in a head in millimetres: from the midline to the patient's left, forwards and upwards."""

    left: Field
    front: Field
    up: Field

    def mirrored(self) -> "HeadPosition":
        """The positions with both sides folded onto the left, for symmetric structures."""
        return self._replace(left=np.abs(self.left))


@dataclass(frozen=True, slots=True)
class HeadPose:
    """How a head lies in the scanner."""

    turn: float  # radians about the long axis of the body
    tilt: float  # radians, one ear lower than the other
    nod: float  # radians, chin to the chest
    shift: tuple[float, float]  # millimetres to the left and to the front


@dataclass(frozen=True, slots=True)
class HeadVoxels:
    """The voxels of an image: slices from below upwards, rows from front to back, columns from right to left."""

    size: int
    heights: tuple[float, ...]  # of the slices, in millimetres

    @property
    def pixel(self) -> float:
        """Side of a pixel in millimetres."""
        return WIDTH / self.size

    def positions(self, pose: HeadPose) -> HeadPosition:
        """The position of every voxel in a head of that pose."""
        across = ((np.arange(self.size) + 0.5) * self.pixel - WIDTH / 2).astype(np.float32)
        left = across[None, None, :] - np.float32(pose.shift[0])
        front = -across[None, :, None] - np.float32(pose.shift[1])
        up = np.array(self.heights, np.float32)[:, None, None]
        left, front = _rotated(left, front, pose.turn)
        left, up = _rotated(left, up, pose.tilt)
        front, up = _rotated(front, up, pose.nod)
        return HeadPosition(*np.broadcast_arrays(left, front, up))

    def affine(self) -> Affine:
        """From voxel (slice, row, column) to millimetres to the patient's right, front and top."""
        first = WIDTH / 2 - self.pixel / 2
        step = self.heights[1] - self.heights[0]
        return np.array(
            [[0, 0, -self.pixel, first], [0, -self.pixel, 0, first], [step, 0, 0, self.heights[0]], [0, 0, 0, 1]]
        )


def slice_heights(slices: int) -> tuple[float, ...]:
    """The heights of that many slices, evenly spaced over a volume."""
    step = (TOP - BOTTOM) / slices
    return tuple(BOTTOM + (number + 0.5) * step for number in range(slices))


def _rotated(one: Field, other: Field, angle: float) -> tuple[Field, Field]:
    c, s = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    return c * one + s * other, c * other - s * one


@dataclass(frozen=True)
class Waves:
    """A smooth random field with mean 0 and variance 1: a sum of plane waves of similar lengths in all directions."""

    numbers: Float[np.ndarray, "wave axis"]
    phases: Float[np.ndarray, " wave"]

    def values_at(self, position: HeadPosition) -> Field:
        """The field at every position."""
        total = np.zeros((1, 1, 1), np.float32)
        for angle in self._angles(position):
            total = total + np.cos(angle)
        return total * self._scale

    def nearest_zero(self, position: HeadPosition) -> Field:
        """Approximate distance to the nearest zero of the field (|value| / |gradient|), in units of the position."""
        value = np.zeros((1, 1, 1), np.float32)
        slope = [value, value, value]
        for angle, number in zip(self._angles(position), self.numbers, strict=True):
            value = value + np.cos(angle)
            sine = np.sin(angle)
            slope = [total + sine * k for total, k in zip(slope, number, strict=True)]
        gradient = np.sqrt(slope[0] ** 2 + slope[1] ** 2 + slope[2] ** 2)
        typical = np.float32(np.sqrt((self.numbers**2).sum() / 2))
        return np.abs(value) / np.maximum(gradient, np.float32(0.45) * typical)

    @property
    def _scale(self) -> np.float32:
        return np.float32(np.sqrt(2 / len(self.phases)))

    def _angles(self, position: HeadPosition) -> Iterator[Field]:
        """The phase of each wave at every position."""
        for (a, b, c), phase in zip(self.numbers, self.phases, strict=True):
            yield position.left * a + position.front * b + (position.up * c + phase)


def draw_waves(generator: np.random.Generator, length: float, count: int = 9) -> Waves:
    """Waves of about that length, in the units of the position."""
    directions = generator.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    numbers = directions * (2 * np.pi / length) * generator.uniform(0.85, 1.15, (count, 1))
    return Waves(numbers.astype(np.float32), generator.uniform(0, 2 * np.pi, count).astype(np.float32))


def covered(distance: Field, pixel: float) -> Field:
    """The share of each voxel that lies inside a surface, from the distance to it (positive inside)."""
    return np.clip(distance * np.float32(1 / pixel) + np.float32(0.5), 0, 1)
