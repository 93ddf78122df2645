"""What each modality makes of a head: the brightness of its tissues, the coil's shading and noise."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Image, Mask
from heatcheck.sources import brain_anatomy as anatomy
from heatcheck.sources.brain_anatomy import Build
from heatcheck.sources.brain_space import Field, Place, Waves, covered, draw_waves
from heatcheck.sources.brain_tumour import CORE, SWELLING, Form, Tumour, level

MODALITIES = ("T1", "T1C", "T2", "FLAIR")
TISSUES: dict[str, tuple[float, float, float, float]] = {
    "skin": (0.60, 0.66, 0.40, 0.42),
    "fat": (1.00, 1.00, 0.72, 0.74),
    "bone": (0.05, 0.05, 0.04, 0.04),
    "marrow": (0.55, 0.58, 0.30, 0.30),
    "muscle": (0.42, 0.46, 0.26, 0.32),
    "fluid": (0.14, 0.14, 1.00, 0.08),
    "grey": (0.47, 0.49, 0.58, 0.56),
    "white": (0.68, 0.70, 0.40, 0.42),
    "nuclei": (0.53, 0.55, 0.50, 0.50),
    "pallidum": (0.61, 0.63, 0.34, 0.36),
    "core": (0.24, 0.24, 0.92, 0.60),
    "rim": (0.44, 1.08, 0.70, 0.86),
    "swelling": (0.50, 0.52, 0.80, 0.98),
}
BRIGHTEST = 1000.0  # raw value of fat in T1
DARKEST = 2.0  # raw value below which nothing in the head falls: 0 is outside it
NUCLEI = (
    ("nuclei", (15.0, 19.0, 7.0), (6.0, 12.0, 11.0)),  # head of the caudate
    ("nuclei", (27.0, 4.0, 3.0), (6.0, 17.0, 13.0)),  # putamen
    ("pallidum", (20.0, 0.0, 1.0), (5.0, 9.0, 8.0)),
    ("nuclei", (11.5, -15.0, 6.0), (9.0, 14.0, 11.0)),  # thalamus
)


@dataclass(frozen=True)
class Scanner:
    """The chance of one examination."""

    gain: Float[np.ndarray, " modality"]
    noise: float  # standard deviation, as a share of the brightest
    shading: tuple[Waves, ...]  # one for each modality
    shade: float
    grain: Waves  # unevenness of the tissue itself


def draw_scanner(generator: np.random.Generator, noise: float) -> Scanner:
    """An examination on some scanner."""
    return Scanner(
        gain=generator.uniform(0.8, 1.25, len(MODALITIES)).astype(np.float32),
        noise=noise * generator.uniform(0.8, 1.2),
        shading=tuple(draw_waves(generator, 330, 4) for _ in MODALITIES),
        shade=generator.uniform(0.03, 0.07),
        grain=draw_waves(generator, 24, 6),
    )


@dataclass(frozen=True)
class Head:
    """A head as every modality sees it without a tumour, and what a tumour may take."""

    image: Float[np.ndarray, "modality slice row column"]
    inside: Mask  # the head
    brain: Field  # share of each voxel that a tumour may take
    solid: Field  # share of each voxel that can swell


def healthy(build: Build, place: Place, pixel: float) -> Head:
    """The head layer by layer, from the skin inwards."""
    depth = anatomy.beneath_skull(build, place)
    image = np.zeros((len(MODALITIES), *depth.shape), np.float32)
    _lay(image, "skin", np.ones_like(depth))
    outer = anatomy.SPACE + anatomy.SKULL
    inside = depth > -(outer + build.scalp)
    _lay(image, "fat", covered(depth + np.float32(outer + build.scalp - 1.2), pixel))
    _lay(image, "bone", covered(depth + np.float32(outer), pixel))
    diploe = np.float32(1.5) - np.abs(depth + np.float32(anatomy.SPACE + anatomy.SKULL * 0.5))
    _lay(image, "marrow", covered(diploe, pixel))
    _lay(image, "fluid", covered(depth + np.float32(anatomy.SPACE), pixel))
    floor = anatomy.above_base(place)
    _lay(image, "muscle", covered(depth - 3, pixel))
    depth = np.minimum(depth, floor)
    _lay(image, "fluid", covered(depth + np.float32(anatomy.SPACE), pixel))
    brain = covered(depth, pixel)
    solid = _lay_brain(image, build, place, depth, pixel)
    return Head(image, inside, brain, solid)


def _lay_brain(image: Image, build: Build, place: Place, depth: Field, pixel: float) -> Field:
    """The share of each voxel that is brain without its fluid."""
    surface = anatomy.furrows(build, place, depth)
    cortex = covered(surface - np.float32(build.atrophy), pixel)
    _lay(image, "grey", cortex)
    _lay(image, "white", covered(surface - np.float32(build.atrophy + anatomy.CORTEX), pixel))
    mirrored = Place(np.abs(place.left), place.front, place.up)
    for tissue, centre, half in NUCLEI:
        _lay(image, tissue, covered(anatomy.ellipsoid(mirrored, centre, half), pixel * 1.5))
    water = covered(anatomy.ventricles(build, place), pixel)
    _lay(image, "fluid", water)
    return cortex * (1 - water)


def _lay(image: Image, tissue: str, share: Field) -> None:
    """Put a tissue over what is there."""
    for channel, bright in enumerate(TISSUES[tissue]):
        image[channel] += share * (np.float32(bright) - image[channel])


def with_tumour(head: Head, tumour: Tumour, forms: tuple[Form, ...], place: Place, pixel: float) -> dict[str, Mask]:
    """The masks of the tumour by modality; the head's image then shows it."""
    levels = {form: level(tumour, form, place) for form in ("round", *forms)}
    masks = {}
    for channel, (modality, form) in enumerate(zip(MODALITIES, forms, strict=True)):
        far, outline = levels[form]
        body = covered((1 - far) * outline, pixel) * head.brain
        # swelling that T1C hardly shows is no part of its mask, so that its outline must not tell the form
        around, span = levels["round" if modality == "T1C" else form]
        swollen = covered((np.float32(SWELLING) - around) * span, pixel * 1.5) * head.solid
        core = covered((np.float32(CORE) - far) * outline, pixel * 1.3) * head.brain
        picture = head.image[channel]
        for share, tissue in ((swollen, "swelling"), (body, "rim"), (core, "core")):
            picture += share * (np.float32(TISSUES[tissue][channel]) - picture)
        masks[modality] = (body >= 0.5) if modality == "T1C" else np.maximum(body, swollen) >= 0.5
    return masks


def measured(head: Head, place: Place, scanner: Scanner, generator: np.random.Generator) -> Image:
    """The raw intensities, exactly 0 outside the head and never inside."""
    grain = 1 + np.float32(0.018) * scanner.grain.at(place)
    image = np.empty_like(head.image)
    for channel, (gain, shading) in enumerate(zip(scanner.gain, scanner.shading, strict=True)):
        shade = np.exp(np.float32(scanner.shade) * shading.at(place))
        signal = head.image[channel] * grain * shade
        noise = generator.standard_normal((2, *signal.shape), dtype=np.float32) * np.float32(scanner.noise)
        magnitude = np.hypot(signal + noise[0], noise[1]) * np.float32(gain * BRIGHTEST)
        image[channel] = np.where(head.inside, np.maximum(magnitude, np.float32(DARKEST)), 0)
    return image
