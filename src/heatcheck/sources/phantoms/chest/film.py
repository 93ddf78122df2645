"""Turns anatomy and findings into the grey values of a film."""

from dataclasses import dataclass

import cv2
import numpy as np

from heatcheck.core.records import Map, Mask
from heatcheck.sources.phantoms.chest.anatomy import (
    LEFT,
    RIGHT,
    Anatomy,
    airways,
    body,
    bones,
    heart,
    lung,
    lung_air,
    upper_mediastinum,
    vessels,
)
from heatcheck.sources.phantoms.chest.canvas import Canvas, ChestPose, blob, curve, smooth, stroke
from heatcheck.sources.phantoms.chest.findings import ChestScene


@dataclass(frozen=True)
class Exposure:
    """The exposure settings of a film."""

    brightness: float  # shifts the grey values
    contrast: float
    scatter: float  # share of widely scattered light
    noise: float  # relative to a good exposure


def draw_exposure(generator: np.random.Generator) -> Exposure:
    """A random exposure for one view."""
    return Exposure(
        brightness=generator.uniform(-0.08, 0.08),
        contrast=generator.uniform(0.88, 1.14),
        scatter=generator.uniform(0.02, 0.10),
        noise=generator.uniform(0.6, 1.5),
    )


def draw_pose(generator: np.random.Generator) -> ChestPose:
    """A random pose for one view."""
    return ChestPose(
        rotation=float(np.clip(generator.normal(0, 0.03), -0.08, 0.08)),
        shift=(generator.uniform(-0.06, 0.06), generator.uniform(-0.05, 0.05)),
        scale=generator.uniform(0.93, 1.07),
    )


def new_scene(canvas: Canvas, anatomy: Anatomy) -> ChestScene:
    """A scene without findings."""
    lungs = {side: canvas.exact(lung(anatomy, side)) for side in (RIGHT, LEFT)}
    zeros = np.zeros(canvas.shape, np.float32)
    return ChestScene(canvas, anatomy, lungs, zeros, zeros.copy(), np.ones_like(zeros), np.ones_like(zeros))


def expose(scene: ChestScene, exposure: Exposure, generator: np.random.Generator) -> Map:
    """The film's grey values in [0, 1]; dense parts are bright."""
    canvas = scene.canvas
    absorbed = _absorbed(scene, generator)
    spread = canvas.blurred(cv2.resize(absorbed, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA), 0.25 * 0.25)
    absorbed += exposure.scatter * (cv2.resize(spread, canvas.shape[::-1], interpolation=cv2.INTER_LINEAR) - absorbed)
    film = 1 / (1 + np.exp(-5.2 * exposure.contrast * (absorbed - 0.62 + 0.5 * exposure.brightness)))
    # a pixel collects light in proportion to its area, so small pixels are noisier
    grain = 0.010 * exposure.noise * (canvas.shape[0] / 256) * np.sqrt(0.25 + film)
    film += (grain * generator.standard_normal(canvas.shape, dtype=np.float32)).astype(np.float32)
    return np.clip(film, 0, 1).astype(np.float32)


def _absorbed(scene: ChestScene, generator: np.random.Generator) -> Map:
    canvas, anatomy = scene.canvas, scene.anatomy
    x, y = canvas.frame
    trunk = canvas.soft(body(anatomy), blur=0.012)
    girth = anatomy.width + 0.12 + anatomy.soft_tissue
    roundness = np.sqrt(np.clip(1 - (x / (girth * 1.12)) ** 2, 0.06, 1))
    absorbed = trunk * (0.42 + 0.46 * roundness + 0.10 * anatomy.soft_tissue) * (0.94 + 0.10 * np.clip(y, -1, 1))
    air = sum((lung_air(canvas, field) for field in scene.lungs.values()), np.zeros_like(absorbed))
    fields = canvas.blurred((scene.lungs[RIGHT] | scene.lungs[LEFT]).astype(np.float32), 0.006)
    middle = canvas.soft(upper_mediastinum(anatomy), blur=0.014)
    cardiac = canvas.soft(heart(anatomy), blur=0.010)
    solid = np.maximum(middle, cardiac)
    visible_lung = fields * (1 - 0.62 * solid)
    absorbed -= 0.58 * (0.42 * fields + 0.58 * air) * (1 - 0.62 * solid) * scene.air
    absorbed += (
        visible_lung
        * scene.markings
        * anatomy.markings
        * (
            0.13 * vessels(anatomy, canvas)
            + 0.014 * canvas.texture(generator, 120)
            + 0.014 * canvas.texture(generator, 60)
        )
    )
    absorbed += 0.08 * solid + 0.05 * cardiac
    absorbed += bones(anatomy, canvas) * trunk * (0.55 + 0.45 * fields) - 0.13 * airways(canvas)
    absorbed += _breasts(anatomy, canvas) - _stomach(anatomy, canvas) + 0.015 * canvas.texture(generator, 9) * trunk
    return np.asarray(absorbed + scene.density * (1 - 0.5 * solid) + scene.metal, np.float32)


def _breasts(anatomy: Anatomy, canvas: Canvas) -> Map:
    if not anatomy.breast:
        return np.zeros(canvas.shape, np.float32)
    sides = [
        smooth(
            [(s * 0.22, 0.02), (s * 0.5, -0.05), (s * 0.80, 0.1), (s * 0.82, 0.42), (s * 0.56, 0.56), (s * 0.26, 0.42)]
        )
        for s in (RIGHT, LEFT)
    ]
    return 0.075 * anatomy.breast * canvas.soft(*sides, blur=0.022)


def _stomach(anatomy: Anatomy, canvas: Canvas) -> Map:
    generator = np.random.default_rng(anatomy.tree + 1)
    bubble = blob(generator, (generator.uniform(0.26, 0.36), anatomy.dome[1] + 0.15), (0.11, 0.06), 0.1)
    return generator.uniform(0.05, 0.22) * canvas.soft(bubble, blur=0.012)


def add_marker(film: Map, letter: str) -> Mask:
    """Draw a laterality letter into an upper corner of the film, in place; returns the pixels it covers."""
    height, width = film.shape
    size, top = 0.055 * height, 0.10 * height
    left = 0.07 * width if letter == "R" else width - 0.07 * width - size
    strokes = _LETTERS[letter]
    plane = np.zeros(film.shape, np.uint8)
    for path in strokes:
        outline = stroke(curve(path, 16), 0.16) * size + np.array([left, top])
        cv2.fillPoly(plane, [np.round(outline * 64).astype(np.int32)], 255, cv2.LINE_AA, 6)
    alpha = plane.astype(np.float32) / 255
    film += alpha * (0.97 - film)
    return alpha > 0.5


_LETTERS: dict[str, list[list[tuple[float, float]]]] = {
    "R": [
        [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0)],
        [(0.0, 0.02), (0.5, 0.04), (0.62, 0.27), (0.5, 0.5), (0.0, 0.52)],
        [(0.25, 0.5), (0.45, 0.75), (0.68, 1.0)],
    ],
    "L": [[(0.0, 0.0), (0.0, 0.5), (0.0, 1.0)], [(0.0, 0.93), (0.3, 0.93), (0.62, 0.93)]],
}
