"""Lines with smooth edges, and ink laid on an image."""

from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Image, Map
from heatcheck.triggers.stamp import Stamp, stamp_where

FINE = 4  # lines are drawn on a grid this many times finer, then averaged
VISIBLE = 0.1  # a pixel of which less is covered stays as it is: nobody would see the difference
Path = Float[np.ndarray, "points 2"]  # (row, column) in pixels; the first pixel reaches from 0 up to 1


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line along a path, whose width in pixels may change from part to part."""

    path: Path
    widths: Float[np.ndarray, " parts"] | float


@dataclass(frozen=True, slots=True)
class Layer:
    """Ink of one grey and how much of each pixel it covers, from 0 to 1."""

    coverage: Map
    grey: float


def laid_on(image: Image, *layers: Layer) -> Stamp:
    """The stamp of these layers on the image, the last on top; its pixels are those that are covered visibly.

    If no pixel is, because the image is tiny, it is the one covered most.
    """
    values, covered = image.copy(), np.zeros(image.shape[1:], np.float32)
    for layer in layers:
        values += layer.coverage * (np.float32(layer.grey) - values)
        covered = np.maximum(covered, layer.coverage)
    mask = covered >= min(VISIBLE, float(covered.max()))
    return stamp_where(mask, values.clip(0, 1))


def drawn(strokes: Iterable[Stroke], shape: tuple[int, ...]) -> Map:
    """How much of each pixel the strokes cover."""
    plane = np.zeros([side * FINE for side in shape], np.uint8)
    for stroke in strokes:
        points = np.round(stroke.path[:, ::-1] * FINE).astype(np.int32).tolist()
        widths = np.broadcast_to(stroke.widths, len(points) - 1) * FINE
        for first, second, width in zip(points[:-1], points[1:], widths.tolist(), strict=True):
            cv2.line(plane, first, second, 255, max(1, round(width)))
    return averaged(plane, shape)


def averaged(plane: np.ndarray, shape: tuple[int, ...]) -> Map:
    """A drawing of 0 and 255 on a finer grid as coverage of the image's pixels."""
    return cv2.resize(plane, (shape[1], shape[0]), interpolation=cv2.INTER_AREA).astype(np.float32) / 255


def curve(points: Path, samples: int) -> Path:
    """A smooth path through the points (Catmull–Rom)."""
    padded = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    along = np.linspace(0, len(points) - 1, samples)
    part = np.minimum(along.astype(int), len(points) - 2)
    u = (along - part)[:, None]
    a, b, c, d = (padded[part + k] for k in range(4))
    return np.asarray(0.5 * (2 * b + (c - a) * u + (2 * a - 5 * b + 4 * c - d) * u**2 + (3 * b - a - 3 * c + d) * u**3))
