"""A head: the distance of every position to the surfaces of skull, brain and furrows."""

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
    """The anatomy of one head."""

    pose: HeadPose
    half: Point  # millimetres from the brain's centre to its left, front and top
    egg: float  # how much narrower the front is than the back
    scalp: float  # millimetres
    space: float  # millimetres of fluid between brain and skull
    ventricles: float  # width relative to normal
    furrow: float  # half width of the furrows in millimetres
    depth: float  # of the furrows in millimetres
    folds: Waves
    bends: tuple[Waves, ...]  # one per axis; they make every head uneven in its own way


def draw_build(generator: np.random.Generator) -> Build:
    """A random normal head."""
    turn, tilt, nod = generator.uniform(-0.07, 0.07, 3)
    age = generator.random()  # with age, fluid replaces brain tissue
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


def bent(build: Build, position: HeadPosition) -> HeadPosition:
    """The positions, displaced by the unevenness of this head."""
    return HeadPosition(
        *(axis + np.float32(1.7) * waves.values_at(position) for axis, waves in zip(position, build.bends, strict=True))
    )


def beneath_skull(build: Build, position: HeadPosition) -> Field:
    """Millimetres below the inner surface of the skull; negative outside."""
    a, b, c = build.half
    y = position.front / np.float32(b)
    x = position.left / (np.float32(a) * (1 - np.float32(build.egg) * np.clip(y, -0.7, 1.2)))
    z = position.up / np.where(position.up > 0, c, 1.9 * c).astype(np.float32)
    x2, y2, z2 = x * x, y * y, z * z
    # slightly fuller than an ellipsoid
    radius = np.sqrt(x2 + y2 + z2 - np.float32(0.16) * x2 * y2) + np.float32(1e-3)
    slope = np.sqrt(x2 / np.float32(a * a) + y2 / np.float32(b * b) + z2 / np.float32(c * c)) + np.float32(1e-5)
    return (1 - radius) * np.minimum(radius / slope, np.float32(90))


def above_base(position: HeadPosition) -> Field:
    """Millimetres above the floor of the skull: high in front, lower at the temples, lowest behind."""
    aside = np.abs(position.left)
    front = _sigmoid(position.front + np.float32(0.3) * (30 - aside), 26, 26)
    behind = _sigmoid(-position.front - np.float32(0.35) * aside, 8, 22)
    middle = np.float32(24) * np.exp(-((position.left * np.float32(1 / 19)) ** 2)) * (1 - behind) * (1 - front)
    round_edge = np.float32(0.0028) * aside * aside * (1 - behind)
    return (position.up + 42 - 24 * front - middle - round_edge + 16 * behind) * np.float32(0.8)


def _sigmoid(values: Field, middle: float, width: float) -> Field:
    return 1 / (1 + np.exp(np.float32(-4 / width) * (values - np.float32(middle))))


def furrows(build: Build, position: HeadPosition, depth: Field, floor: Field) -> Field:
    """Millimetres to the nearest outer surface of the cortex, including furrows, which start at the vault."""
    a, b, c = (np.float32(1 / half) for half in build.half)
    radius = np.sqrt((position.left * a) ** 2 + (position.front * b) ** 2 + (position.up * c) ** 2)
    # furrows hardly bend along the radius, so the waves are evaluated on a shell
    to_shell = np.float32(0.45) + np.float32(0.55) / np.maximum(radius, np.float32(0.3))
    shell = HeadPosition(position.left * to_shell, position.front * to_shell, position.up * to_shell)
    sideways = build.folds.nearest_zero(shell) * np.float32(0.9)
    reach = np.float32(build.depth) * (1 + np.float32(0.3) * build.bends[0].values_at(shell))
    fold = np.hypot(sideways, np.maximum(depth - reach, 0))
    surface = np.minimum(np.minimum(depth, floor), fold)
    return np.minimum(surface, np.minimum(midline(position), sylvian(position)))


def midline(position: HeadPosition) -> Field:
    """Millimetres to the cleft between the hemispheres, which the corpus callosum closes."""
    radius = np.sqrt(((position.front + 6) * np.float32(1 / 44)) ** 2 + ((position.up - 3) * np.float32(1 / 29)) ** 2)
    return np.hypot(position.left, np.maximum((1 - radius) * np.float32(29), 0))


def sylvian(position: HeadPosition) -> Field:
    """Millimetres to the lateral (Sylvian) clefts, with the insula at their floor."""
    x, y = np.abs(position.left), position.front + np.float32(0.25) * position.up
    opening, floor, *insula = SYLVIAN
    flat = _distance_to_line(x, y, opening, floor)
    for one, other in pairwise(insula):
        flat = np.minimum(flat, _distance_to_line(x, y, one, other))
    return np.hypot(flat, np.maximum(np.abs(position.up - 2) - np.float32(15), 0))


def _distance_to_line(x: Field, y: Field, one: tuple[float, float], other: tuple[float, float]) -> Field:
    along = np.subtract(other, one).astype(np.float32)
    x, y = x - np.float32(one[0]), y - np.float32(one[1])
    share = np.clip((x * along[0] + y * along[1]) / (along @ along), 0, 1)
    return np.hypot(x - share * along[0], y - share * along[1])
