"""Draws lines with smooth edges onto an image."""

from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Image, Map
from heatcheck.triggers.stamp import Stamp, stamp_where

FINE = 4  # lines are drawn on a grid this many times finer, then averaged
VISIBLE = 0.1  # pixels covered by less stay unchanged: the difference would not be visible
Path = Float[np.ndarray, "points 2"]  # (row, column) in pixels; the first pixel spans 0 to 1


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line along a path, whose width in pixels may differ between its segments."""

    path: Path
    widths: Float[np.ndarray, " parts"] | float


@dataclass(frozen=True, slots=True)
class Layer:
    """Ink of one grey value and the share of each pixel that it covers."""

    coverage: Map
    grey: float


def stamp_of(image: Image, *layers: Layer) -> Stamp:
    """The stamp of these layers on the image, the last on top; it takes the pixels that are visibly covered.

    If there are none because the image is tiny, it takes the one that is covered most.
    """
    values, covered = image.copy(), np.zeros(image.shape[1:], np.float32)
    for layer in layers:
        values += layer.coverage * (np.float32(layer.grey) - values)
        covered = np.maximum(covered, layer.coverage)
    mask = covered >= min(VISIBLE, float(covered.max()))
    return stamp_where(mask, values.clip(0, 1))


def drawn(strokes: Iterable[Stroke], shape: tuple[int, ...]) -> Map:
    """The share of each pixel that the strokes cover."""
    plane = np.zeros([side * FINE for side in shape], np.uint8)
    for stroke in strokes:
        points = np.round(stroke.path[:, ::-1] * FINE).astype(np.int32).tolist()
        widths = np.broadcast_to(stroke.widths, len(points) - 1) * FINE
        for first, second, width in zip(points[:-1], points[1:], widths.tolist(), strict=True):
            cv2.line(plane, first, second, 255, max(1, round(width)))
    return downsampled(plane, shape)


def downsampled(plane: np.ndarray, shape: tuple[int, ...]) -> Map:
    """The share of each image pixel that is covered, from a drawing of 0 and 255 on a finer grid."""
    return cv2.resize(plane, (shape[1], shape[0]), interpolation=cv2.INTER_AREA).astype(np.float32) / 255


def curve(points: Path, samples: int) -> Path:
    """A smooth path through the points (Catmull–Rom)."""
    padded = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    along = np.linspace(0, len(points) - 1, samples)
    segment = np.minimum(along.astype(int), len(points) - 2)
    u = (along - segment)[:, None]
    a, b, c, d = (padded[segment + k] for k in range(4))
    return np.asarray(0.5 * (2 * b + (c - a) * u + (2 * a - 5 * b + 4 * c - d) * u**2 + (3 * b - a - 3 * c + d) * u**3))
