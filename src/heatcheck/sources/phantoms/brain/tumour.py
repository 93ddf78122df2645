"""A brain tumour: round or irregular, of fine or coarse texture, with a necrotic core, a rim and swelling around it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from heatcheck.sources.phantoms.brain.space import Field, HeadPosition, Waves, draw_waves

Form = Literal["round", "irregular"]
Texture = Literal["fine", "coarse"]
CORE, SWELLING = 0.55, 1.42  # outlines of necrotic core and swelling, relative to the tumour's outline
FINE, COARSE = 5.5, 13.0  # wave lengths of the two textures in millimetres


@dataclass(frozen=True)
class Tumour:
    """One tumour with the parameters of both forms."""

    centre: tuple[float, float, float]
    radius: float  # millimetres
    stretch: tuple[float, float, float]  # of the round form
    dents: Waves  # of the round form, hardly visible
    lobes: Waves
    spikes: Waves
    grain: Waves  # unevenness of its tissue
    push: float  # millimetres by which its edge moves the brain
    fine: Waves  # texture of its tissue, where it has one
    coarse: Waves


class Level(NamedTuple):
    """The relative distance of every position from the centre, 1 on the outline, and the outline's radius there."""

    far: Field
    outline: Field

    def inside(self, share: float | Field) -> Field:
        """Millimetres inside the outline that is `share` as large; negative outside."""
        return (np.asarray(share, np.float32) - self.far) * self.outline


def draw_tumour(generator: np.random.Generator, half: tuple[float, float, float], up: float | None) -> Tumour:
    """A random tumour in one hemisphere of a brain with these half axes; `up` fixes the height of its centre."""
    radius = generator.uniform(18.0, 25.0)
    side = generator.choice([-1.0, 1.0])
    low_to_high = generator.uniform(8, 30)
    up = low_to_high if up is None else up
    room = np.sqrt(1 - (up / half[2]) ** 2)  # high slices are small
    front = generator.uniform(-0.55, 0.55) * half[1] * room
    most = half[0] * room * np.sqrt(1 - (front / (half[1] * room)) ** 2) - 0.9 * radius
    least = min(0.95 * radius, most)
    return Tumour(
        centre=(side * generator.uniform(least, max(most, least)), front, up),
        radius=radius,
        stretch=tuple(1 + generator.uniform(-0.06, 0.06, 3)),
        dents=draw_waves(generator, 2.2, 5),
        lobes=draw_waves(generator, 1.25, 9),
        spikes=draw_waves(generator, 0.62, 9),
        grain=draw_waves(generator, 9, 6),
        push=generator.uniform(3, 8),
        fine=draw_waves(generator, FINE, 12),
        coarse=draw_waves(generator, COARSE, 12),
    )


def pushed(tumour: Tumour, position: HeadPosition, depth: Field) -> HeadPosition:
    """Where the tissue was before the tumour grew; at the skull nothing moves."""
    offset, away = _offset(tumour, position)
    reach = away * np.float32(1 / (1.9 * tumour.radius))
    move = np.float32(tumour.push) * np.exp(-(reach * reach)) * np.clip(depth * np.float32(1 / 14), 0, 1)
    move *= np.minimum(away * np.float32(1 / tumour.radius), 1)
    back = 1 - move / away
    return HeadPosition(*(o * back + np.float32(c) for o, c in zip(offset, tumour.centre, strict=True)))


def _offset(tumour: Tumour, position: HeadPosition) -> tuple[HeadPosition, Field]:
    offset = HeadPosition(*(axis - np.float32(middle) for axis, middle in zip(position, tumour.centre, strict=True)))
    return offset, np.sqrt(offset.left**2 + offset.front**2 + offset.up**2) + np.float32(1e-3)


def level(tumour: Tumour, form: Form, position: HeadPosition) -> Level:
    """The level of every position for the tumour in that form."""
    offset, away = _offset(tumour, position)
    ray = HeadPosition(*(axis / away for axis in offset))
    if form == "round":
        stretched = HeadPosition(*(axis * np.float32(s) for axis, s in zip(ray, tumour.stretch, strict=True)))
        outline = 1 + np.float32(0.025) * tumour.dents.values_at(ray)
        outline /= np.sqrt(stretched.left**2 + stretched.front**2 + stretched.up**2)
    else:
        lobes, spikes = tumour.lobes.values_at(ray), tumour.spikes.values_at(ray)
        outline = np.float32(0.94) + np.float32(0.36) * np.tanh(1.5 * lobes) + np.float32(0.10) * np.tanh(2 * spikes)
    outline = outline * np.float32(tumour.radius)
    return Level(away / outline, outline)
