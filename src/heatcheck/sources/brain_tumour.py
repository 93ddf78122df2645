"""A tumour in the brain: round or irregular, with a dead core, a rim and swelling around it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from heatcheck.sources.brain_space import Field, Place, Waves, draw_waves

Form = Literal["round", "irregular"]
CORE, SWELLING = 0.58, 1.42  # outlines of the dead core and of the swelling, of the tumour's own


@dataclass(frozen=True)
class Tumour:
    """One tumour, in both forms it may show."""

    centre: tuple[float, float, float]
    radius: float  # millimetres
    stretch: tuple[float, float, float]  # of the round form
    dents: Waves  # of the round form, hardly seen
    lobes: Waves
    spikes: Waves


def draw_tumour(generator: np.random.Generator, half: tuple[float, float, float], up: float | None) -> Tumour:
    """A tumour in one hemisphere of a brain of those half axes, its centre in the slice at `up` where one is given."""
    radius = generator.uniform(17.0, 23.0)
    side = generator.choice([-1.0, 1.0])
    if up is None:
        up = generator.uniform(8, 30)
    room = np.sqrt(1 - (up / half[2]) ** 2)  # a high slice is a small one
    front = generator.uniform(-0.55, 0.55) * half[1] * room
    most = half[0] * room * np.sqrt(1 - (front / (half[1] * room)) ** 2) - 0.85 * radius
    least = min(0.95 * radius, most)
    stretch = 1 + generator.uniform(-0.06, 0.06, 3)
    return Tumour(
        centre=(side * generator.uniform(least, max(most, least)), front, up),
        radius=radius,
        stretch=tuple(stretch),
        dents=draw_waves(generator, 2.2, 5),
        lobes=draw_waves(generator, 1.25, 9),
        spikes=draw_waves(generator, 0.62, 9),
    )


def level(tumour: Tumour, form: Form, place: Place) -> tuple[Field, Field]:
    """How far out every place lies, 1 on the tumour's outline, and the millimetres of that outline on its ray."""
    offset = [axis - np.float32(middle) for axis, middle in zip(place, tumour.centre, strict=True)]
    away = np.sqrt(offset[0] ** 2 + offset[1] ** 2 + offset[2] ** 2) + np.float32(1e-3)
    ray = Place(*(axis / away for axis in offset))
    if form == "round":
        stretched = Place(*(axis * np.float32(s) for axis, s in zip(ray, tumour.stretch, strict=True)))
        outline = 1 + np.float32(0.025) * tumour.dents.at(ray)
        outline /= np.sqrt(stretched.left**2 + stretched.front**2 + stretched.up**2)
    else:
        lobes, spikes = tumour.lobes.at(ray), tumour.spikes.at(ray)
        outline = np.float32(0.94) + np.float32(0.29) * np.tanh(lobes) + np.float32(0.11) * np.tanh(2 * spikes)
    outline = outline * np.float32(tumour.radius)
    return away / outline, outline
