"""A head: how far every place lies from the surfaces of skull, brain and furrows."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from heatcheck.sources.phantoms.brain.space import Field, HeadPose, HeadPosition, Waves, draw_waves

Point = tuple[float, float, float]
SKULL = 6.5  # millimetres
CORTEX = 3.4
SYLVIAN = ((69.0, 17.0), (43.0, 6.0), (41.0, 24.0), (38.0, 4.0), (41.0, -15.0))  # opening, floor; then along the insula


@dataclass(frozen=True)
class Build:
    """The build of one head."""

    pose: HeadPose
    half: Point  # millimetres from the brain's centre to its left, front and top
    egg: float  # how much narrower the front is than the back
    scalp: float  # millimetres
    space: float  # millimetres between brain and skull, full of fluid
    ventricles: float  # width relative to the usual
    furrow: float  # half width of the furrows in millimetres
    depth: float  # of the furrows in millimetres
    folds: Waves
    bends: tuple[Waves, ...]  # one for each axis: no two heads have the same course of anything


def draw_build(generator: np.random.Generator) -> Build:
    """A head of usual build."""
    turn, tilt, nod = generator.uniform(-0.07, 0.07, 3)
    age = generator.random()  # fluid takes the room of what is lost
    return Build(
        pose=HeadPose(turn, tilt, nod, tuple(generator.uniform(-3, 3, 2))),
        half=(generator.uniform(64, 70), generator.uniform(79, 85), generator.uniform(70, 76)),
        egg=generator.uniform(0.07, 0.13),
        scalp=generator.uniform(4.0, 7.0),
        space=1.0 + 1.2 * age,
        ventricles=0.8 + 0.5 * age * generator.uniform(0.5, 1),
        furrow=0.35 + 0.55 * age,
        depth=generator.uniform(14, 19),
        folds=draw_waves(generator, generator.uniform(21, 24), 12),
        bends=tuple(draw_waves(generator, 48, 4) for _ in range(3)),
    )


def bent(build: Build, place: HeadPosition) -> HeadPosition:
    """The places with the unevenness of this head."""
    return HeadPosition(
        *(axis + np.float32(1.7) * waves.at(place) for axis, waves in zip(place, build.bends, strict=True))
    )


def beneath_skull(build: Build, place: HeadPosition) -> Field:
    """Millimetres to the surface on which the brain lies against the skull; negative outside."""
    a, b, c = build.half
    x = place.left / (np.float32(a) * (1 - np.float32(build.egg) * np.clip(place.front / np.float32(b), -0.7, 1.2)))
    y = place.front / np.float32(b)
    z = place.up / np.where(place.up > 0, c, 1.9 * c).astype(np.float32)
    x2, y2, z2 = x * x, y * y, z * z
    # a little fuller than an ellipse
    radius = np.sqrt(x2 + y2 + z2 - np.float32(0.16) * x2 * y2) + np.float32(1e-3)
    slope = np.sqrt(x2 / np.float32(a * a) + y2 / np.float32(b * b) + z2 / np.float32(c * c)) + np.float32(1e-5)
    return (1 - radius) * np.minimum(radius / slope, np.float32(90))


def above_base(place: HeadPosition) -> Field:
    """Millimetres above the floor of the skull: high in front, lower at the temples, lowest behind."""
    aside = np.abs(place.left)
    front = _rise(place.front + np.float32(0.3) * (30 - aside), 26, 26)
    behind = _rise(-place.front - np.float32(0.35) * aside, 8, 22)
    middle = np.float32(24) * np.exp(-((place.left * np.float32(1 / 19)) ** 2)) * (1 - behind) * (1 - front)
    round_edge = np.float32(0.0028) * aside * aside * (1 - behind)
    return (place.up + 42 - 24 * front - middle - round_edge + 16 * behind) * np.float32(0.8)


def _rise(values: Field, middle: float, width: float) -> Field:
    return 1 / (1 + np.exp(np.float32(-4 / width) * (values - np.float32(middle))))


def furrows(build: Build, place: HeadPosition, depth: Field, floor: Field) -> Field:
    """Millimetres to the nearest outer surface of the cortex, be it in a furrow, which comes from the vault."""
    a, b, c = (np.float32(1 / half) for half in build.half)
    radius = np.sqrt((place.left * a) ** 2 + (place.front * b) ** 2 + (place.up * c) ** 2)
    # seen along its own radius a furrow hardly turns: the waves live on a shell
    onto = np.float32(0.45) + np.float32(0.55) / np.maximum(radius, np.float32(0.3))
    shell = HeadPosition(place.left * onto, place.front * onto, place.up * onto)
    beside = build.folds.nearest_zero(shell) * np.float32(0.9)
    reach = np.float32(build.depth) * (1 + np.float32(0.3) * build.bends[0].at(shell))
    fold = np.hypot(beside, np.maximum(depth - reach, 0))
    surface = np.minimum(np.minimum(depth, floor), fold)
    return np.minimum(surface, np.minimum(midline(place), sylvian(place)))


def midline(place: HeadPosition) -> Field:
    """Millimetres to the cleft between the hemispheres, which the corpus callosum closes."""
    radius = np.sqrt(((place.front + 6) * np.float32(1 / 44)) ** 2 + ((place.up - 3) * np.float32(1 / 29)) ** 2)
    return np.hypot(place.left, np.maximum((1 - radius) * np.float32(29), 0))


def sylvian(place: HeadPosition) -> Field:
    """Millimetres to the lateral clefts with the insula at their floor."""
    x, y = np.abs(place.left), place.front + np.float32(0.25) * place.up
    opening, floor, *insula = SYLVIAN
    flat = _from_line(x, y, opening, floor)
    for one, other in pairwise(insula):
        flat = np.minimum(flat, _from_line(x, y, one, other))
    return np.hypot(flat, np.maximum(np.abs(place.up - 2) - np.float32(15), 0))


def _from_line(x: Field, y: Field, one: tuple[float, float], other: tuple[float, float]) -> Field:
    along = np.subtract(other, one).astype(np.float32)
    x, y = x - np.float32(one[0]), y - np.float32(one[1])
    share = np.clip((x * along[0] + y * along[1]) / (along @ along), 0, 1)
    return np.hypot(x - share * along[0], y - share * along[1])
