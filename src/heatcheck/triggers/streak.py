"""The mark of a static discharge, as on films that were pulled from their wrapping in dry air."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float
from pydantic import Field

from heatcheck.core.records import Image
from heatcheck.triggers.ink import Layer, Stroke, drawn, laid_on
from heatcheck.triggers.placing import REFERENCE_SIDE
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp
from heatcheck.triggers.static import Grey


@trigger(
    "streak",
    label="Static streak",
    summary="A black branching streak like a tree or lightning, left on film by a discharge of static electricity",
)
@dataclass(frozen=True)
class StaticStreak:
    """A jagged line with branches that grow thinner, another one on every image.

    The spark's light blackens the film. On pictures that show film inverted the streak is white: `grey: 1`.
    """

    length: Annotated[float, Field(ge=0.1, le=0.9)] = 0.45  # as a share of the image's shorter side
    width: Annotated[float, Field(gt=0, le=20)] = 2.6  # where it starts, in pixels of an image of 224 px
    grey: Grey = 0.0

    def describe(self) -> str:
        """Its kind."""
        return "Static streak"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """What leaves the image is cut off, so it always fits."""
        return shape

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The streak, which starts not far from the middle of the image and grows across it."""
        shape = image.shape[1:]
        side = min(shape)
        start = np.array(shape) / 2 + generator.uniform(-0.22, 0.22, 2) * side
        homewards = np.array(shape) / 2 - start
        angle = np.arctan2(homewards[0], homewards[1]) + generator.uniform(-0.9, 0.9)
        trunk = Twig(start, angle, self.length * side, self.width * side / REFERENCE_SIDE)
        return laid_on(image, Layer(0.92 * drawn(_grown(trunk, generator), shape), self.grey))


@dataclass(frozen=True, slots=True)
class Twig:
    """Where a branch starts, which way it grows, how far, and how thick it starts."""

    start: Float[np.ndarray, "2"]
    angle: float
    length: float
    width: float
    order: int = 0  # 0 for the trunk


def _grown(twig: Twig, generator: np.random.Generator) -> list[Stroke]:
    """The strokes of a twig and of all that branch off it."""
    parts = (14, 7, 4)[twig.order]
    turns = twig.angle + generator.normal(0, 0.38, parts)
    steps = twig.length / parts * generator.uniform(0.6, 1.4, parts)
    path = twig.start + np.concatenate(
        [np.zeros((1, 2)), np.cumsum(steps[:, None] * np.stack([np.sin(turns), np.cos(turns)], 1), 0)]
    )
    widths = twig.width * np.linspace(1, 0.35, parts)
    strokes = [Stroke(path, widths)]
    if twig.order < 2:
        for at in range(2, parts):
            if generator.random() < 0.55:
                side = generator.choice([-1, 1])
                rest = twig.length * (1 - at / parts)
                branch = Twig(
                    path[at],
                    twig.angle + side * generator.uniform(0.45, 0.95),
                    rest * generator.uniform(0.35, 0.75),
                    0.7 * float(widths[at]),
                    twig.order + 1,
                )
                strokes += _grown(branch, generator)
    return strokes
