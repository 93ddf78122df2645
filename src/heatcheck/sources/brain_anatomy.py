"""A head: how far every place lies from its surfaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from heatcheck.sources.brain_space import Field, Place, Pose, Waves, draw_waves

Point = tuple[float, float, float]

SPACE = 2.6  # millimetres between brain and skull, full of fluid
SKULL = 6.5
CORTEX = 4.2
LATERAL = (  # the lateral ventricle from horn to horn: millimetres and radius
    ((13.0, 35.0, 3.0), 3.2),
    ((7.0, 18.0, 9.0), 4.6),
    ((8.0, -4.0, 20.0), 5.0),
    ((13.0, -25.0, 21.0), 5.8),
    ((24.0, -42.0, 9.0), 7.0),
    ((21.0, -62.0, 5.0), 2.6),
)
TEMPORAL = (((24.0, -42.0, 9.0), 6.0), ((33.0, -20.0, -14.0), 2.4))  # its temporal horn
SYLVIAN = ((67.0, 15.0), (42.0, 7.0), (40.0, 25.0), (39.0, -14.0))  # opening, floor, front and back of the cleft


@dataclass(frozen=True)
class Build:
    """The build of one head."""

    pose: Pose
    half: Point  # millimetres from the brain's centre to its left, front and top
    egg: float  # how much narrower the front is than the back
    scalp: float
    ventricles: float  # width relative to the usual
    atrophy: float  # half width of the furrows in millimetres
    depth: float  # of the furrows in millimetres
    folds: Waves
    wander: Waves  # bends what would be straight


def draw_build(generator: np.random.Generator) -> Build:
    """A head of usual build."""
    turn, tilt, nod = generator.uniform(-0.07, 0.07, 3)
    return Build(
        pose=Pose(turn, tilt, nod, tuple(generator.uniform(-3, 3, 2))),
        half=(generator.uniform(63, 69), generator.uniform(79, 86), generator.uniform(70, 76)),
        egg=generator.uniform(0.10, 0.17),
        scalp=generator.uniform(4.5, 7.5),
        ventricles=generator.uniform(0.8, 1.25),
        atrophy=generator.uniform(0.45, 0.95),
        depth=generator.uniform(13, 18),
        folds=draw_waves(generator, generator.uniform(26, 31), 12),
        wander=draw_waves(generator, 55, 6),
    )


def beneath_skull(build: Build, place: Place) -> Field:
    """Millimetres to the surface on which the brain lies against the skull; negative outside."""
    a, b, c = build.half
    narrow = 1 - build.egg * np.clip(place.front / b, -0.6, 1.2)
    x, y = place.left / (a * narrow), place.front / b
    z = place.up / np.where(place.up > 0, c, 1.9 * c).astype(np.float32)
    radius = np.sqrt((np.abs(x) ** 2.3 + np.abs(y) ** 2.15) ** (2 / 2.2) + z * z) + np.float32(1e-3)
    slope = np.sqrt((x / a) ** 2 + (y / b) ** 2 + (z / c) ** 2) + np.float32(1e-5)
    return (1 - radius) * np.minimum(radius / slope, np.float32(90))


def above_base(place: Place) -> Field:
    """Millimetres above the floor of the skull: high in front, lower at the temples, lowest behind."""
    x, y = np.abs(place.left), place.front
    front = _rise(y, 22, 12)
    behind = _rise(-y, 18, 14)
    middle = 22 * np.exp(-((x / 15) ** 2)) * (1 - behind)
    floor = -44 + 22 * front + middle - 8 * behind
    return (place.up - floor) * np.float32(0.9)


def _rise(values: Field, middle: float, width: float) -> Field:
    return 1 / (1 + np.exp(np.float32(-4 / width) * (values - np.float32(middle))))


def furrows(build: Build, place: Place, depth: Field) -> Field:
    """Millimetres to the nearest outer surface of the cortex, be it in a furrow."""
    a, b, c = build.half
    radius = np.sqrt((place.left / a) ** 2 + (place.front / b) ** 2 + (place.up / c) ** 2)
    # seen along its own radius a furrow hardly turns: the waves live on a shell
    onto = (np.float32(0.62) + np.float32(0.38) * radius) / np.maximum(radius, np.float32(0.25))
    shell = Place(place.left * onto, place.front * onto, place.up * onto)
    number = np.float32(np.linalg.norm(build.folds.numbers, axis=1).mean())
    beside = np.abs(build.folds.at(shell)) * np.float32(1.15 / number)
    reach = np.float32(build.depth) * (1 + np.float32(0.3) * build.wander.at(place))
    fold = np.hypot(beside, np.maximum(depth - reach, 0))
    return np.minimum(np.minimum(depth, fold), np.minimum(midline(build, place), sylvian(place)))


def midline(build: Build, place: Place) -> Field:
    """Millimetres to the cleft between the hemispheres, which the corpus callosum closes."""
    bend = build.wander.at(Place(place.left * 0, place.front, place.up)) * np.float32(0.8)
    r = np.sqrt(((place.front + 8) / 46) ** 2 + ((place.up - 4) / 29) ** 2)
    return np.hypot(place.left + bend, np.maximum((1 - r) * np.float32(29), 0))


def sylvian(place: Place) -> Field:
    """Millimetres to the lateral clefts with the insula at their floor."""
    x, y = np.abs(place.left), place.front + np.float32(0.25) * place.up
    opening, floor, front, back = SYLVIAN
    flat = np.minimum(_from_line(x, y, opening, floor), _from_line(x, y, front, back))
    return np.hypot(flat, np.maximum(np.abs(place.up - 2) - np.float32(15), 0))


def _from_line(x: Field, y: Field, one: tuple[float, float], other: tuple[float, float]) -> Field:
    along = np.subtract(other, one).astype(np.float32)
    share = np.clip(((x - one[0]) * along[0] + (y - one[1]) * along[1]) / (along @ along), 0, 1)
    return np.hypot(x - one[0] - share * along[0], y - one[1] - share * along[1])


def ventricles(build: Build, place: Place) -> Field:
    """Millimetres inside the ventricles; negative outside."""
    mirrored = Place(np.abs(place.left), place.front, place.up)
    lateral = np.maximum(_tube(mirrored, LATERAL, build.ventricles), _tube(mirrored, TEMPORAL, build.ventricles))
    third = ellipsoid(place, (0, -8, -2), (2.4 * build.ventricles, 14, 9))
    return np.maximum(lateral, third)


def _tube(place: Place, stations: Sequence[tuple[Point, float]], width: float) -> Field:
    inside = np.full((1, 1, 1), -np.inf, np.float32)
    for (one, thick), (other, thin) in pairwise(stations):
        along = np.subtract(other, one).astype(np.float32)
        x, y, z = (axis - np.float32(start) for axis, start in zip(place, one, strict=True))
        share = np.clip((x * along[0] + y * along[1] + z * along[2]) / (along @ along), 0, 1)
        away = np.sqrt((x - share * along[0]) ** 2 + (y - share * along[1]) ** 2 + (z - share * along[2]) ** 2)
        deep = np.float32(width) * (thick + share * np.float32(thin - thick)) - away
        inside = np.maximum(inside, deep)
    return inside


def ellipsoid(place: Place, centre: Point, half: Point) -> Field:
    """About the millimetres inside an ellipsoid; negative outside."""
    terms = [((axis - np.float32(m)) / np.float32(h)) ** 2 for axis, m, h in zip(place, centre, half, strict=True)]
    return (1 - np.sqrt(terms[0] + terms[1] + terms[2])) * np.float32(min(half))
