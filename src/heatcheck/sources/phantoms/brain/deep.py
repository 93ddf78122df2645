"""The deep structures of a brain: ventricles, nuclei, brain stem and cerebellum."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from heatcheck.sources.phantoms.brain.anatomy import Build, Point
from heatcheck.sources.phantoms.brain.space import Field, HeadPosition

LATERAL = (  # the lateral ventricle from horn to horn: position and radius in millimetres
    ((13.0, 36.0, 2.0), 2.4),
    ((7.5, 22.0, 8.0), 4.2),
    ((6.5, 8.0, 15.0), 4.2),
    ((9.0, -10.0, 21.0), 4.8),
    ((15.0, -28.0, 20.0), 5.6),
    ((24.0, -42.0, 9.0), 6.4),
    ((20.0, -62.0, 4.0), 2.2),
)
TEMPORAL = (((24.0, -42.0, 9.0), 5.5), ((34.0, -22.0, -14.0), 2.0))  # its temporal horn
NUCLEI = (
    ("nuclei", (14.5, 20.0, 7.0), (6.5, 12.0, 12.0)),  # head of the caudate
    ("nuclei", (27.5, 5.0, 3.0), (5.5, 17.0, 13.0)),  # putamen
    ("pallidum", (20.5, 0.0, 1.0), (4.5, 9.0, 8.0)),
    ("nuclei", (11.0, -15.0, 6.0), (9.5, 14.0, 11.0)),  # thalamus
)
PLEXUS = ((23.0, -40.0, 10.0), (2.8, 5.0, 5.0))


def ventricles(build: Build, position: HeadPosition) -> Field:
    """Millimetres inside the ventricles; negative outside."""
    mirrored = position.mirrored()
    lateral = np.maximum(_tube(mirrored, LATERAL, build.ventricles), _tube(mirrored, TEMPORAL, build.ventricles))
    lateral = np.minimum(lateral, mirrored.left - np.float32(1.0))  # the septum
    third = ellipsoid(position, (0, -8, -3), (2.2 * build.ventricles, 15, 10))
    fourth = ellipsoid(position, (0, -38, -34), (7, 5, 11))
    return np.maximum(lateral, np.maximum(third, fourth))


def _tube(position: HeadPosition, stations: Sequence[tuple[Point, float]], width: float) -> Field:
    inside = np.full((1, 1, 1), -np.inf, np.float32)
    for (one, thick), (other, thin) in pairwise(stations):
        along = np.subtract(other, one).astype(np.float32)
        x, y, z = (axis - np.float32(start) for axis, start in zip(position, one, strict=True))
        share = np.clip((x * along[0] + y * along[1] + z * along[2]) / (along @ along), 0, 1)
        away = np.sqrt((x - share * along[0]) ** 2 + (y - share * along[1]) ** 2 + (z - share * along[2]) ** 2)
        inside = np.maximum(inside, np.float32(width) * (thick + share * np.float32(thin - thick)) - away)
    return inside


def ellipsoid(position: HeadPosition, centre: Point, half: Point) -> Field:
    """Approximate millimetres inside an ellipsoid; negative outside."""
    terms = [
        ((axis - np.float32(m)) * np.float32(1 / h)) ** 2 for axis, m, h in zip(position, centre, half, strict=True)
    ]
    return (1 - np.sqrt(terms[0] + terms[1] + terms[2])) * np.float32(min(half))


def tent(position: HeadPosition) -> Field:
    """Millimetres below the tentorium over cerebellum and brain stem; negative above."""
    aside = np.abs(position.left)
    roof = np.float32(-6) - np.float32(0.22) * aside - np.float32(0.22) * np.maximum(-position.front - 30, 0)
    behind = -position.front - np.float32(16) - np.float32(0.2) * aside
    return np.minimum(roof - position.up, behind)


def stem(position: HeadPosition) -> Field:
    """Millimetres inside the brain stem; negative outside."""
    middle = np.float32(-22) + np.float32(0.12) * (position.up + 10)
    thick = np.float32(13) + np.float32(3.5) * np.exp(-(((position.up + 28) / 9) ** 2))  # the pons
    round_ = thick - np.hypot(position.left * np.float32(0.85), position.front - middle)
    return np.minimum(round_, np.float32(-4) - position.up)


def leaves(position: HeadPosition) -> Field:
    """The fine leaves of the cerebellum as a pattern between 0 and 1."""
    radius = np.sqrt((position.left * np.float32(0.75)) ** 2 + (position.front + 34) ** 2 + (position.up + 16) ** 2)
    return np.float32(0.5) + np.float32(0.5) * np.sin(radius * np.float32(1.35))
