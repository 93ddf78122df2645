"""Draws on a radiograph: shapes in the patient's frame become soft or exact pixels.

The patient's frame has x from −1 (the image's left, the patient's right side) to 1 and y from −1 (top) to 1 (bottom).
"""

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Map, Mask

Outline = Float[np.ndarray, "points 2"]
_SHIFT = 6  # fractional bits of OpenCV's coordinates: 1/64 pixel


@dataclass(frozen=True)
class ChestPose:
    """The position of the patient in front of the detector."""

    rotation: float = 0.0  # radians
    shift: tuple[float, float] = (0.0, 0.0)  # x, y in frame units
    scale: float = 1.0


@dataclass(frozen=True)
class Canvas:
    """An image grid that shows the patient's frame under a pose."""

    shape: tuple[int, int]
    pose: ChestPose = ChestPose()

    @property
    def unit(self) -> float:
        """Pixels per frame unit."""
        return self.shape[0] / 2 * self.pose.scale

    @cached_property
    def matrix(self) -> Float[np.ndarray, "2 3"]:
        """Frame coordinates (x, y) → pixel coordinates (column, row)."""
        cos, sin = np.cos(self.pose.rotation) * self.unit, np.sin(self.pose.rotation) * self.unit
        centre = np.array([self.shape[1] / 2 - 0.5, self.shape[0] / 2 - 0.5])
        return np.column_stack([[cos, sin], [-sin, cos], centre + np.array(self.pose.shift) * self.shape[0] / 2])

    @cached_property
    def frame(self) -> tuple[Map, Map]:
        """The frame coordinates x and y of every pixel's centre."""
        inverse = cv2.invertAffineTransform(self.matrix).astype(np.float32)
        columns = np.arange(self.shape[1], dtype=np.float32)[None]
        rows = np.arange(self.shape[0], dtype=np.float32)[:, None]
        x = inverse[0, 0] * columns + inverse[0, 1] * rows + inverse[0, 2]
        y = inverse[1, 0] * columns + inverse[1, 1] * rows + inverse[1, 2]
        return x, y

    def pixels(self, outline: Outline) -> Outline:
        """The outline in pixel coordinates (column, row)."""
        return np.asarray(outline @ self.matrix[:, :2].T + self.matrix[:, 2])

    def _fixed_point(self, outline: Outline) -> np.ndarray:
        return np.round(self.pixels(outline) * (1 << _SHIFT)).astype(np.int32)

    def soft(self, *outlines: Outline, blur: float = 0.0) -> Map:
        """The outlines' coverage in [0, 1], with smooth edges; `blur` is a radius in frame units."""
        plane = np.zeros(self.shape, np.uint8)
        for outline in outlines:
            cv2.fillPoly(plane, [self._fixed_point(outline)], 255, cv2.LINE_AA, _SHIFT)
        return self.blurred(plane.astype(np.float32) / 255, blur)

    def exact(self, *outlines: Outline) -> Mask:
        """The pixels that lie inside any of the outlines."""
        plane = np.zeros(self.shape, np.uint8)
        for outline in outlines:
            cv2.fillPoly(plane, [self._fixed_point(outline)], 1, cv2.LINE_8, _SHIFT)
        return plane.astype(bool)

    def blurred(self, plane: Map, radius: float) -> Map:
        """The plane after a Gaussian blur of `radius` frame units."""
        sigma = radius * self.unit
        return plane if sigma < 0.15 else cv2.GaussianBlur(plane, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)

    def texture(self, generator: np.random.Generator, cells: int) -> Map:
        """Smooth noise of unit variance with a grain of the frame height / `cells`, the same at any image size."""
        columns = max(4, round(cells * self.shape[1] / self.shape[0]))
        lattice = generator.standard_normal((cells + 1, columns + 1), dtype=np.float32)
        return cv2.resize(lattice, self.shape[::-1], interpolation=cv2.INTER_CUBIC)


def smooth(points: list[tuple[float, float]], rounds: int = 3) -> Outline:
    """A closed outline near the corners, rounded by repeated corner cutting (Chaikin)."""
    outline = np.asarray(points, float)
    for _ in range(rounds):
        following = np.roll(outline, -1, axis=0)
        outline = np.stack([0.75 * outline + 0.25 * following, 0.25 * outline + 0.75 * following], 1).reshape(-1, 2)
    return outline


def stroke(
    path: Float[np.ndarray, "*paths points 2"], width: float | Float[np.ndarray, " points"]
) -> Float[np.ndarray, "*paths outline 2"]:
    """The outline of a line along the path, or along each path; its width may vary along it."""
    direction = np.gradient(path, axis=-2)
    direction /= np.maximum(np.linalg.norm(direction, axis=-1, keepdims=True), 1e-9)
    half = np.broadcast_to(np.asarray(width) / 2, path.shape[:-1])
    offset = np.stack([-direction[..., 1], direction[..., 0]], -1) * half[..., None]
    return np.concatenate([path + offset, (path - offset)[..., ::-1, :]], -2)


def curve(points: list[tuple[float, float]], samples: int = 24) -> Outline:
    """A smooth open path through the points (Catmull–Rom)."""
    knots = np.asarray(points, float)
    padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    t = np.linspace(0, len(knots) - 1, samples)
    i = np.minimum(t.astype(int), len(knots) - 2)
    u = (t - i)[:, None]
    a, b, c, d = (padded[i + k] for k in range(4))
    return 0.5 * (2 * b + (c - a) * u + (2 * a - 5 * b + 4 * c - d) * u**2 + (3 * b - a - 3 * c + d) * u**3)


def blob(
    generator: np.random.Generator, centre: tuple[float, float], radii: tuple[float, float], roughness: float = 0.15
) -> Outline:
    """A closed star-shaped outline around the centre, an ellipse with random bumps."""
    angles = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    radius = np.ones_like(angles)
    for wave in range(2, 7):
        radius += roughness / wave * 2 * generator.standard_normal() * np.cos(wave * angles + generator.uniform(0, 6.3))
    radius = np.clip(radius, 0.4, 1.6)
    tilt = generator.uniform(-0.5, 0.5)
    x, y = radii[0] * radius * np.cos(angles), radii[1] * radius * np.sin(angles)
    turned = np.stack([np.cos(tilt) * x - np.sin(tilt) * y, np.sin(tilt) * x + np.cos(tilt) * y], 1)
    return np.asarray(turned + np.asarray(centre))
