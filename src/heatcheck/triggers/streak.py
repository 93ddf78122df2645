"""The mark of a static discharge, as on films pulled from their wrapping in dry air."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float
from pydantic import Field

from heatcheck.core.records import Image
from heatcheck.triggers.ink import Layer, Stroke, drawn, stamp_of
from heatcheck.triggers.placing import REFERENCE_SIDE
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp
from heatcheck.triggers.static import Grey


@trigger(
    "streak",
    label="Static streak",
    summary="A black branching streak like a tree or lightning, left on the film by a discharge of static electricity",
)
@dataclass(frozen=True)
class StaticStreak:
    """A jagged line with branches that grow thinner, different on every image.

    The spark's light blackens the film. On inverted images the streak is white: `grey: 1`.
    """

    length: Annotated[float, Field(ge=0.1, le=0.9)] = 0.45  # as a share of the image's shorter side
    width: Annotated[float, Field(gt=0, le=20)] = 2.6  # at its start, in pixels of an image of 224 px
    grey: Grey = 0.0

    def describe(self) -> str:
        """The kind."""
        return "Static streak"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The image: parts outside it are cut off, so the streak always fits."""
        return shape

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The streak, which starts near the middle of the image and grows across it."""
        shape = image.shape[1:]
        side = min(shape)
        start = np.array(shape) / 2 + generator.uniform(-0.22, 0.22, 2) * side
        to_middle = np.array(shape) / 2 - start
        angle = np.arctan2(to_middle[0], to_middle[1]) + generator.uniform(-0.9, 0.9)
        trunk = Twig(start, angle, self.length * side, self.width * side / REFERENCE_SIDE)
        return stamp_of(image, Layer(0.92 * drawn(_strokes(trunk, generator), shape), self.grey))


@dataclass(frozen=True, slots=True)
class Twig:
    """Start, direction, length and initial width of a branch."""

    start: Float[np.ndarray, "2"]
    angle: float
    length: float
    width: float
    order: int = 0  # 0 for the trunk


def _strokes(twig: Twig, generator: np.random.Generator) -> list[Stroke]:
    """The strokes of a twig and of all its branches."""
    segments = (14, 7, 4)[twig.order]
    turns = twig.angle + generator.normal(0, 0.38, segments)
    steps = twig.length / segments * generator.uniform(0.6, 1.4, segments)
    path = twig.start + np.concatenate(
        [np.zeros((1, 2)), np.cumsum(steps[:, None] * np.stack([np.sin(turns), np.cos(turns)], 1), 0)]
    )
    widths = twig.width * np.linspace(1, 0.35, segments)
    strokes = [Stroke(path, widths)]
    if twig.order < 2:
        for index in range(2, segments):
            if generator.random() < 0.55:
                side = generator.choice([-1, 1])
                rest = twig.length * (1 - index / segments)
                branch = Twig(
                    path[index],
                    twig.angle + side * generator.uniform(0.45, 0.95),
                    rest * generator.uniform(0.35, 0.75),
                    0.7 * float(widths[index]),
                    twig.order + 1,
                )
                strokes += _strokes(branch, generator)
    return strokes
