"""The image of a head in each modality: brightness of tissues, shading of the coil, and noise."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Image, Mask
from heatcheck.sources.phantoms.brain import anatomy, deep
from heatcheck.sources.phantoms.brain.anatomy import Build
from heatcheck.sources.phantoms.brain.space import Field, HeadPosition, Waves, covered, draw_waves
from heatcheck.sources.phantoms.brain.tumour import CORE, SWELLING, Form, Texture, Tumour, level, pushed

MODALITIES = ("T1", "T1C", "T2", "FLAIR")
TISSUES: dict[str, tuple[float, float, float, float]] = {
    "skin": (0.60, 0.56, 0.40, 0.42),
    "fat": (1.00, 0.40, 0.66, 0.66),
    "bone": (0.05, 0.05, 0.04, 0.04),
    "marrow": (0.52, 0.28, 0.28, 0.28),
    "muscle": (0.42, 0.46, 0.26, 0.32),
    "sinus": (0.18, 0.98, 0.08, 0.10),
    "fluid": (0.14, 0.14, 1.00, 0.08),
    "grey": (0.47, 0.49, 0.60, 0.58),
    "white": (0.68, 0.70, 0.40, 0.42),
    "nuclei": (0.53, 0.55, 0.50, 0.50),
    "pallidum": (0.61, 0.63, 0.33, 0.36),
    "leaf": (0.54, 0.56, 0.54, 0.53),
    "plexus": (0.40, 0.92, 0.72, 0.55),
    "core": (0.25, 0.26, 0.90, 0.62),
    "rim": (0.43, 1.25, 0.68, 0.86),
    "swelling": (0.48, 0.50, 0.82, 0.98),
}
BRIGHTEST = 1000.0  # raw value of fat in T1
TEXTURE = 0.15  # standard deviation of a texture, as a share of the tissue's brightness


@dataclass(frozen=True)
class Scanner:
    """The random properties of one examination."""

    gain: Float[np.ndarray, " modality"]
    noise: float  # standard deviation, as a share of the brightest
    shading: tuple[Waves, ...]  # one per modality
    shade: float
    grain: Waves  # unevenness of the tissue


def draw_scanner(generator: np.random.Generator, noise: float) -> Scanner:
    """A random examination."""
    return Scanner(
        gain=generator.uniform(0.8, 1.25, len(MODALITIES)).astype(np.float32),
        noise=noise * generator.uniform(0.8, 1.2),
        shading=tuple(draw_waves(generator, 330, 4) for _ in MODALITIES),
        shade=generator.uniform(0.03, 0.07),
        grain=draw_waves(generator, 13, 6),
    )


@dataclass(frozen=True)
class Head:
    """A head without a tumour in every modality, and where a tumour may grow."""

    image: Image
    inside: Mask  # voxels of the head
    brain: Field  # share of each voxel that a tumour may replace
    solid: Field  # share of each voxel that can swell
    white: Field  # share of each voxel in which swelling spreads easily


def healthy(build: Build, tumour: Tumour, position: HeadPosition, pixel: float) -> Head:
    """The head layer by layer, from the skin inwards: displaced by the tumour, but without it."""
    depth = anatomy.beneath_skull(build, position)
    image = np.zeros((len(MODALITIES), *depth.shape), np.float32)
    outer = build.space + anatomy.SKULL
    inside = depth > -(outer + build.scalp)
    _lay(image, "skin", np.ones_like(depth))
    _lay(image, "fat", covered(depth + np.float32(outer + build.scalp - 1.3), pixel))
    temple = deep.ellipsoid(position.mirrored(), (70, 26, -12), (9, 30, 34))
    _lay(image, "muscle", covered(np.minimum(temple, depth + np.float32(outer + build.scalp - 2.6)), pixel + 2))
    _lay(image, "bone", covered(depth + np.float32(outer), pixel))
    diploe = np.float32(1.6) - np.abs(depth + np.float32(build.space + anatomy.SKULL * 0.5))
    _lay(image, "marrow", covered(diploe, pixel))
    floor = anatomy.above_base(position)
    if (floor < 8).any():
        _lay_face(image, build, position, depth, pixel)
    _lay(image, "bone", covered(np.minimum(depth, floor + np.float32(3)), pixel))
    rough = np.float32(0.5) * build.bends[1].values_at(position)
    _lay(image, "fluid", covered(np.minimum(depth, floor) + np.float32(build.space) + rough, pixel))
    moved = pushed(tumour, anatomy.bent(build, position), depth)
    white, water = _lay_brain(image, build, moved, (depth, floor), pixel)
    back = deep.ellipsoid(position, (0, -build.half[1] - 0.5, 12), (4.5, 3.2, 60))
    _lay(image, "sinus", covered(back, pixel))
    brain = covered(np.minimum(depth, floor), pixel)
    return Head(image, inside, brain, brain * (1 - water), white)


def _lay_brain(
    image: Image, build: Build, position: HeadPosition, surfaces: tuple[Field, Field], pixel: float
) -> tuple[Field, Field]:
    """Add the brain; returns the shares of each voxel that are white matter and ventricle."""
    depth = np.minimum(*surfaces)
    surface = anatomy.furrows(build, position, *surfaces)
    white = covered(surface - np.float32(build.furrow + anatomy.CORTEX), pixel)
    _lay(image, "grey", covered(surface - np.float32(build.furrow), pixel))
    _lay(image, "white", white)
    mirrored = position.mirrored()
    for tissue, centre, half in deep.NUCLEI:
        _lay(image, tissue, covered(deep.ellipsoid(mirrored, centre, half), pixel + 1.5))
    if (position.up < 0).any():
        _lay_below(image, position, depth, pixel)
    water = covered(deep.ventricles(build, position), pixel)
    _lay(image, "fluid", water)
    _lay(image, "plexus", covered(deep.ellipsoid(mirrored, *deep.PLEXUS), pixel + 1) * water * np.float32(0.8))
    return white, water


def _lay_face(image: Image, build: Build, position: HeadPosition, depth: Field, pixel: float) -> None:
    """Add what lies below the floor of the skull: muscle and fat, the nose and the eyes."""
    inside = covered(depth - np.float32(3), pixel)
    _lay(image, "muscle", inside)
    _lay(image, "fat", covered(build.folds.values_at(position) * 3 - 2, pixel) * inside * np.float32(0.7))
    _lay(image, "bone", covered(deep.ellipsoid(position, (0, 56, -44), (10, 30, 18)), pixel))
    mirrored = position.mirrored()
    orbit = deep.ellipsoid(mirrored, (29, 62, -34), (17, 26, 16))
    _lay(image, "fat", covered(orbit, pixel) * inside)
    optic_nerve = deep.ellipsoid(mirrored, (25, 50, -34), (3, 24, 3))
    _lay(image, "muscle", covered(optic_nerve, pixel) * inside)
    _lay(image, "fluid", covered(deep.ellipsoid(mirrored, (30, 70, -34), (11, 11, 11)), pixel) * inside)


def _lay_below(image: Image, position: HeadPosition, depth: Field, pixel: float) -> None:
    """Add cerebellum and brain stem below the tentorium."""
    below = deep.tent(position)
    room = np.minimum(below, depth)
    _lay(image, "fluid", covered(room, pixel))
    _lay(image, "grey", covered(room - np.float32(1.2), pixel))
    _lay(image, "leaf", covered(room - np.float32(2), pixel) * deep.leaves(position))
    middle = deep.ellipsoid(position, (0, -40, -34), (30, 14, 12))
    _lay(image, "white", covered(np.minimum(middle, room - 4), pixel + 5))
    stem = deep.stem(position)
    cistern = np.minimum(stem + np.float32(3.5), np.float32(-13) - position.up)  # above it the stem joins the thalami
    _lay(image, "fluid", covered(np.minimum(cistern, depth + 4), pixel))
    _lay(image, "white", covered(stem, pixel) * np.float32(0.9))


def _lay(image: Image, tissue: str, share: Field) -> None:
    """Blend a tissue over the image."""
    for channel, brightness in enumerate(TISSUES[tissue]):
        image[channel] += share * (np.float32(brightness) - image[channel])


@dataclass(frozen=True, slots=True)
class Look:
    """How a modality shows a tumour."""

    form: Form
    texture: Texture | None = None  # of rim and core; None: even tissue


def with_tumour(
    head: Head, tumour: Tumour, looks: tuple[Look, ...], position: HeadPosition, pixel: float
) -> dict[str, Mask]:
    """Draw the tumour into the head's image; returns its masks by modality."""
    forms: dict[Form, None] = dict.fromkeys(("round", *(look.form for look in looks)))
    levels = {form: level(tumour, form, position) for form in forms}
    grain = tumour.grain.values_at(position)
    even = 1 + np.float32(0.05) * grain
    waves = {"fine": tumour.fine, "coarse": tumour.coarse}
    textures = {name: _textured(even, waves[name].values_at(position)) for look in looks if (name := look.texture)}
    spread = np.float32(0.62) + np.float32(0.38) * head.white
    masks = {}
    for channel, (modality, look) in enumerate(zip(MODALITIES, looks, strict=True)):
        tissue_texture = textures[look.texture] if look.texture else even
        tumour_level = levels[look.form]
        body = covered(tumour_level.inside(1), pixel) * head.brain
        # T1C hardly shows swelling and its mask excludes it, so the outline of the swelling must not reveal the form
        swollen = (
            covered(levels["round" if modality == "T1C" else look.form].inside(SWELLING), pixel + 1.5) * head.solid
        )
        core = covered(tumour_level.inside(CORE + np.float32(0.05) * grain), pixel + 1) * head.brain
        uneven = 1 - np.float32(0.05) * np.abs(grain)
        channel_image = head.image[channel]
        # swelling has no texture: in T1C it lies outside the mask, where nothing may reveal the grade
        for share, tissue, texture in (
            (swollen * spread * uneven, "swelling", even),
            (body, "rim", tissue_texture),
            (core, "core", tissue_texture),
        ):
            brightness = np.float32(TISSUES[tissue][channel]) * texture
            channel_image += share * (brightness - channel_image)
        masks[modality] = (body if modality == "T1C" else np.maximum(body, swollen)) >= 0.5
    return masks


def _textured(even: Field, waves: Field) -> Field:
    """The brightness of textured tissue, of which the highest and lowest tops are flattened."""
    return even + np.float32(TEXTURE) * np.clip(waves, -2.5, 2.5)


def measured(head: Head, position: HeadPosition, scanner: Scanner, generator: np.random.Generator) -> Image:
    """The raw intensities: magnitudes above 0 inside the head, exactly 0 outside."""
    grain = 1 + np.float32(0.022) * scanner.grain.values_at(position)
    image = np.empty_like(head.image)
    for channel, (gain, shading) in enumerate(zip(scanner.gain, scanner.shading, strict=True)):
        shade = np.exp(np.float32(scanner.shade) * shading.values_at(position))
        noise = generator.standard_normal((2, *shade.shape), dtype=np.float32) * np.float32(scanner.noise)
        magnitude = np.hypot(head.image[channel] * grain * shade + noise[0], noise[1]) * np.float32(gain * BRIGHTEST)
        image[channel] = np.where(head.inside, magnitude, np.float32(0))
    return image
