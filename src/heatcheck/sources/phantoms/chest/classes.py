"""The four classes of chest films, each with the exact mask of the abnormality.

They imitate the classes of the COVID-19 Radiography Database: normal, patches in the outer lower parts of both lungs
(COVID-19), one dense patch (other opacities), and a fine net with nodules throughout (viral pneumonia).
"""

from collections.abc import Callable

import cv2
import numpy as np

from heatcheck.core.records import Map, Mask
from heatcheck.sources.phantoms.chest.anatomy import LEFT, RIGHT
from heatcheck.sources.phantoms.chest.canvas import Canvas, Outline, blob
from heatcheck.sources.phantoms.chest.findings import ChestScene

Generator = np.random.Generator
_SHIFT = 6  # fractional bits of OpenCV's coordinates: 1/64 pixel


def normal(scene: ChestScene, generator: Generator) -> Mask:  # noqa: ARG001 - a normal chest has nothing to draw
    """An empty mask."""
    return np.zeros(scene.canvas.shape, bool)


def bilateral_opacity(scene: ChestScene, generator: Generator) -> Mask:
    """Hazy patches in the outer and lower parts of both lungs, with the vessels still visible."""
    mask = np.zeros(scene.canvas.shape, bool)
    strength = generator.uniform(0.17, 0.26)
    for side in (RIGHT, LEFT):
        dome = scene.anatomy.dome[0 if side == RIGHT else 1]
        patches = [_outer_patch(scene, generator, side, dome) for _ in range(generator.integers(2, 5))]
        inside = scene.canvas.blurred(scene.lungs[side].astype(np.float32), 0.006)
        soft = scene.canvas.soft(*patches, blur=0.028) * inside
        cloud = np.clip(1 + 0.25 * scene.canvas.texture(generator, 24), 0.3, 1.7)
        scene.density += strength * generator.uniform(0.8, 1.2) * soft * cloud
        scene.markings *= 1 - 0.4 * soft
        mask |= scene.canvas.exact(*patches) & scene.lungs[side]
    return mask


def _outer_patch(scene: ChestScene, generator: Generator, side: int, dome: float) -> Outline:
    width = scene.anatomy.width
    centre = (side * width * generator.uniform(0.62, 0.92), generator.uniform(-0.02, dome - 0.03))
    return blob(generator, centre, (generator.uniform(0.08, 0.15), generator.uniform(0.09, 0.19)), 0.2)


def focal_opacity(scene: ChestScene, generator: Generator) -> Mask:
    """One dense patch in one lung, next to the heart rather than behind it, that hides the vessels."""
    side = RIGHT if generator.random() < 0.5 else LEFT
    y = generator.uniform(-0.42, 0.30)
    widest = scene.anatomy.width * float(np.clip(0.62 + 0.9 * (y + 0.75), 0.45, 0.86))
    inner = 0.26 if side == RIGHT or y < -0.1 else 0.40  # the heart points to the left
    centre = (side * generator.uniform(min(inner, widest), max(inner, widest)), y)
    patch = blob(generator, centre, (generator.uniform(0.13, 0.21), generator.uniform(0.13, 0.21)), 0.16)
    inside = scene.canvas.blurred(scene.lungs[side].astype(np.float32), 0.004)
    soft = scene.canvas.soft(patch, blur=0.022) * inside
    cloud = np.clip(1 + 0.15 * scene.canvas.texture(generator, 30), 0.4, 1.6)
    scene.density += generator.uniform(0.30, 0.40) * soft * cloud
    scene.markings *= 1 - 0.9 * soft
    return scene.canvas.exact(patch) & scene.lungs[side]


def diffuse_fine_pattern(scene: ChestScene, generator: Generator) -> Mask:
    """A fine net of lines and small nodules throughout both lungs."""
    lungs = scene.lungs[RIGHT] | scene.lungs[LEFT]
    soft = scene.canvas.blurred(lungs.astype(np.float32), 0.004)
    net, grains = _net(scene.canvas, generator), _grains(scene, generator)
    uneven = np.clip(1 + 0.15 * scene.canvas.texture(generator, 5), 0.6, 1.4)
    strength = generator.uniform(0.95, 1.35)
    scene.density += strength * soft * uneven * (0.025 + 0.085 * net + 0.10 * grains)
    scene.markings *= 1 - 0.5 * soft
    return lungs


def _net(canvas: Canvas, generator: Generator) -> Map:
    """Thin winding lines that enclose small meshes: where smooth noise changes its sign."""
    noise = canvas.texture(generator, int(generator.integers(34, 47)))
    return np.exp(-((noise / 0.28) ** 2))


def _grains(scene: ChestScene, generator: Generator) -> Map:
    """Nodules of a few millimetres, scattered evenly."""
    count = int(generator.integers(380, 600))
    positions = generator.uniform((-scene.anatomy.width, -0.8), (scene.anatomy.width, 0.6), (count, 2))
    centres = np.round(scene.canvas.pixels(positions) * (1 << _SHIFT)).astype(int)
    radii = np.round(generator.uniform(0.007, 0.014, count) * scene.canvas.unit * (1 << _SHIFT)).astype(int)
    plane = np.zeros(scene.canvas.shape, np.uint8)
    for (x, y), radius in zip(centres.tolist(), radii.tolist(), strict=True):
        cv2.circle(plane, (x, y), radius, 255, cv2.FILLED, cv2.LINE_AA, _SHIFT)
    return scene.canvas.blurred(plane.astype(np.float32) / 255, 0.004)


CLASSES: dict[str, Callable[[ChestScene, Generator], Mask]] = {
    "Normal": normal,
    "Bilateral Opacity": bilateral_opacity,
    "Focal Opacity": focal_opacity,
    "Diffuse Fine Pattern": diffuse_fine_pattern,
}
