"""Draws the ten findings as on a frontal film, with their exact masks.

For a patient with two views a finding is drawn twice. All its random numbers come from the given generator and apply
to the patient's frame, so that equal generators give the same finding.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np

from heatcheck.core.records import Map, Mask
from heatcheck.sources.phantoms.chest.anatomy import LEFT, RIGHT, Anatomy, heart, hilum, lung, upper_mediastinum
from heatcheck.sources.phantoms.chest.canvas import Canvas, Outline, blob, curve, smooth, stroke
from heatcheck.sources.phantoms.chest.devices import draw_devices

Generator = np.random.Generator


@dataclass
class ChestScene:
    """A film being drawn: what findings add to it or remove from it."""

    canvas: Canvas
    anatomy: Anatomy
    lungs: dict[int, Mask]
    density: Map  # absorption in the lungs in addition to the anatomy
    metal: Map  # absorption of devices
    air: Map  # remaining share of the air in the lungs
    markings: Map  # visible share of the vessels


def _sides(generator: Generator, both: float) -> list[int]:
    first = RIGHT if generator.random() < 0.5 else LEFT
    return [RIGHT, LEFT] if generator.random() < both else [first]


def _in_lung(generator: Generator, anatomy: Anatomy, side: int, zone: tuple[float, float]) -> tuple[float, float]:
    """A random position in the lung of that side, within the zone of heights, away from the mediastinum."""
    y = generator.uniform(*zone)
    widest = anatomy.width * np.clip(0.62 + 0.9 * (y + 0.75), 0.45, 0.88)
    return side * float(generator.uniform(0.22, max(0.26, widest))), float(y)


def _mottle(scene: ChestScene, generator: Generator, cells: int, depth: float) -> Map:
    return np.clip(1 + depth * scene.canvas.texture(generator, cells), 0.2, 1.8)


def _both_lungs(scene: ChestScene) -> Mask:
    return scene.lungs[RIGHT] | scene.lungs[LEFT]


def airspace_opacity(scene: ChestScene, generator: Generator) -> Mask:
    """Hazy patches with the vessels still visible."""
    mask = np.zeros(scene.canvas.shape, bool)
    for side in _sides(generator, both=0.35):
        patches = [
            blob(
                generator,
                _in_lung(generator, scene.anatomy, side, (-0.35, 0.35)),
                tuple(generator.uniform(0.10, 0.21, 2)),
            )
            for _ in range(generator.integers(1, 3))
        ]
        strength = generator.uniform(0.13, 0.22)
        soft = scene.canvas.soft(*patches, blur=0.03) * scene.canvas.blurred(
            scene.lungs[side].astype(np.float32), 0.006
        )
        scene.density += strength * soft * _mottle(scene, generator, 40, 0.35)
        mask |= scene.canvas.exact(*patches) & scene.lungs[side]
    return mask


def consolidation(scene: ChestScene, generator: Generator) -> Mask:
    """A dense patch in one lobe that hides the vessels and shows air in the bronchi."""
    side = _sides(generator, both=0.0)[0]
    centre = _in_lung(generator, scene.anatomy, side, (-0.40, 0.36))
    patch = blob(generator, centre, (generator.uniform(0.14, 0.22), generator.uniform(0.13, 0.22)), 0.16)
    inside = scene.canvas.blurred(scene.lungs[side].astype(np.float32), 0.004)
    soft = scene.canvas.soft(patch, blur=0.026) * inside
    twigs = [
        stroke(curve([centre, _step(centre, angle, 0.09), _step(centre, angle + 0.4, 0.16)], 8), 0.011)
        for angle in generator.uniform(0, 6.3, 4)
    ]
    bronchi = scene.canvas.soft(*twigs, blur=0.004)
    scene.density += generator.uniform(0.26, 0.34) * soft * _mottle(scene, generator, 34, 0.2) - 0.09 * bronchi * soft
    scene.markings *= 1 - 0.9 * soft
    return scene.canvas.exact(patch) & scene.lungs[side]


def _step(start: tuple[float, float], angle: float, length: float) -> tuple[float, float]:
    return start[0] + length * float(np.cos(angle)), start[1] + length * float(np.sin(angle))


def edema(scene: ChestScene, generator: Generator) -> Mask:
    """Bat-wing haze around both hila that blurs the vessels, and short septal lines at the bases."""
    strength = generator.uniform(0.18, 0.27)
    mask = np.zeros(scene.canvas.shape, bool)
    for side in (RIGHT, LEFT):
        x, y = hilum(side)
        wing = blob(
            generator, (x + side * 0.16, y + 0.06), (generator.uniform(0.20, 0.26), generator.uniform(0.26, 0.36)), 0.08
        )
        field = scene.lungs[side].astype(np.float32)
        soft = scene.canvas.soft(wing, blur=0.05) * scene.canvas.blurred(field, 0.006)
        scene.density += strength * soft * _mottle(scene, generator, 60, 0.22)
        scene.markings *= 1 - 0.3 * soft
        lines = [_septal_line(scene.anatomy, side, float(height)) for height in generator.uniform(0.18, 0.44, 6)]
        scene.density += 0.07 * scene.canvas.soft(*lines, blur=0.003) * field
        mask |= scene.canvas.exact(wing) & scene.lungs[side]
    return mask


def _septal_line(anatomy: Anatomy, side: int, y: float) -> Outline:
    rim = side * anatomy.width * 0.985
    return stroke(np.array([[rim, y], [rim - side * 0.03, y + 0.004], [rim - side * 0.06, y + 0.01]]), 0.007)


def atelectasis(scene: ChestScene, generator: Generator) -> Mask:
    """Plate-like bands above the diaphragm, or a collapsed wedge next to the heart."""
    mask = np.zeros(scene.canvas.shape, bool)
    for side in _sides(generator, both=0.25):
        dome = scene.anatomy.dome[0 if side == RIGHT else 1]
        if generator.random() < 0.35:
            shapes = [_wedge(generator, side, dome)]
            strength = generator.uniform(0.20, 0.30)
        else:
            shapes = [_plate(generator, scene.anatomy, side, dome) for _ in range(generator.integers(1, 4))]
            strength = generator.uniform(0.16, 0.25)
        inside = scene.canvas.blurred(scene.lungs[side].astype(np.float32), 0.005)
        scene.density += strength * scene.canvas.soft(*shapes, blur=0.010) * inside
        mask |= scene.canvas.exact(*shapes) & scene.lungs[side]
    return mask


def _plate(generator: Generator, anatomy: Anatomy, side: int, dome: float) -> Outline:
    y = dome - generator.uniform(0.05, 0.26)
    inner, length = generator.uniform(0.20, 0.30), generator.uniform(0.20, 0.34)
    outer = min(inner + length, anatomy.width * 0.93)
    tilt = generator.uniform(-0.05, 0.06)
    path = curve([(side * inner, y), (side * (inner + outer) / 2, y + tilt / 2 - 0.012), (side * outer, y + tilt)], 12)
    return stroke(path, generator.uniform(0.028, 0.046))


def _wedge(generator: Generator, side: int, dome: float) -> Outline:
    width, height = generator.uniform(0.26, 0.38), generator.uniform(0.20, 0.32)
    corners = [
        (0.10, dome - height),
        (0.14, dome - height),
        (width, dome + 0.02),
        (width, dome + 0.06),
        (0.10, dome + 0.09),
    ]
    return smooth([(side * x, y) for x, y in corners], 2)


def lung_lesion(scene: ChestScene, generator: Generator) -> Mask:
    """One or more round nodules, or a mass."""
    mask = np.zeros(scene.canvas.shape, bool)
    mass = generator.random() < 0.3
    for _ in range(1 if mass else generator.integers(1, 5)):
        side = _sides(generator, both=0.0)[0]
        radius = generator.uniform(0.09, 0.13) if mass else generator.uniform(0.04, 0.07)
        centre = _in_lung(generator, scene.anatomy, side, (-0.5, 0.3))
        outline = blob(generator, centre, (radius, radius * generator.uniform(0.85, 1.15)), 0.05)
        x, y = scene.canvas.frame
        ball = np.sqrt(np.clip(1 - ((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (1.3 * radius) ** 2, 0, 1))
        scene.density += generator.uniform(0.26, 0.36) * ball * scene.canvas.soft(outline, blur=0.006)
        mask |= scene.canvas.exact(outline) & _both_lungs(scene)
    return mask


def pleural_effusion(scene: ChestScene, generator: Generator) -> Mask:
    """Fluid that blunts the angle and climbs the chest wall in a meniscus."""
    mask = np.zeros(scene.canvas.shape, bool)
    x, y = scene.canvas.frame
    for side in _sides(generator, both=0.35):
        dome = scene.anatomy.dome[0 if side == RIGHT else 1]
        level = dome - generator.uniform(-0.03, 0.26)
        lateral = np.clip((side * x - 0.12) / (scene.anatomy.width - 0.12), 0, 1.1)
        surface = level + 0.05 - generator.uniform(0.13, 0.20) * lateral**3.5 - 0.03 * (1 - lateral) ** 3
        depth = (y - surface) / generator.uniform(0.02, 0.035)
        fluid = 1 / (1 + np.exp(-np.clip(2.2 * depth, -30, 30)))
        soft = fluid * (side * x > 0)
        scene.air *= 1 - generator.uniform(0.88, 1.0) * soft
        scene.markings *= 1 - soft
        mask |= scene.lungs[side] & (y > surface)
    return mask


def pneumothorax(scene: ChestScene, generator: Generator) -> Mask:
    """Air outside the lung: a crescent without vessels, bounded by a thin pleural line."""
    side = _sides(generator, both=0.0)[0]
    rim = lung(scene.anatomy, side)
    retreat = generator.uniform(0.10, 0.30)
    centre = np.array([side * 0.12, 0.12])
    lateral = np.clip((side * rim[:, 0] - 0.22) / (scene.anatomy.width - 0.22), 0, 1) ** 0.8
    apical = 0.5 * np.clip((-0.5 - rim[:, 1]) / 0.2, 0, 1)
    falls = np.clip((0.42 - rim[:, 1]) / 0.75, 0, 1) * np.maximum(lateral, apical)
    # where the lung stays in place its new rim is drawn slightly outside; otherwise rounding leaves specks of air
    collapsed = centre + (rim - centre) * (1 - retreat * falls + 0.02 * np.exp(-falls / 0.04))[:, None]
    inside = scene.canvas.exact(collapsed)
    mask = _largest(scene.lungs[side] & ~inside)
    soft = scene.canvas.blurred(mask.astype(np.float32), 0.003)
    pleura = scene.canvas.soft(stroke(np.concatenate([collapsed, collapsed[:1]]), 0.011), blur=0.002)
    near = scene.canvas.blurred(mask.astype(np.float32), 0.012)
    scene.density += 0.13 * pleura * np.clip(near * 2.2, 0, 1) * scene.lungs[side] - 0.10 * soft
    scene.density += 0.03 * scene.canvas.blurred(inside.astype(np.float32), 0.01)
    scene.markings *= 1 - soft
    return mask


def _largest(mask: Mask) -> Mask:
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    return np.asarray(labels == 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())) if count > 1 else mask


def cardiomegaly(scene: ChestScene, generator: Generator) -> Mask:  # noqa: ARG001 - the anatomy has its size
    """The outline of the heart, which `enlarge` has made larger."""
    return scene.canvas.exact(heart(scene.anatomy))


def enlarged_cardiomediastinum(scene: ChestScene, generator: Generator) -> Mask:  # noqa: ARG001 - the anatomy has its size
    """The outline of heart and great vessels, which `enlarge` has made wider."""
    return scene.canvas.exact(heart(scene.anatomy), upper_mediastinum(scene.anatomy))


def support_devices(scene: ChestScene, generator: Generator) -> Mask:
    """One to three of tube, line, pacemaker, gastric tube and drain."""
    drawing = draw_devices(scene.canvas, scene.anatomy, generator)
    scene.metal += drawing.density
    return drawing.mask


def enlarge(anatomy: Anatomy, present: frozenset[str], generator: Generator) -> Anatomy:
    """The anatomy with heart and mediastinum enlarged as the findings require."""
    grown, widened = generator.uniform(1.30, 1.55), generator.uniform(1.5, 2.0)
    if "Cardiomegaly" in present:
        anatomy = replace(anatomy, heart=anatomy.heart * grown)
    if "Enlarged Cardiomediastinum" in present:
        anatomy = replace(anatomy, mediastinum=anatomy.mediastinum * widened)
    return anatomy


@dataclass(frozen=True)
class Finding:
    """The prevalence of a finding and the function that draws it."""

    prevalence: float
    draw: Callable[[ChestScene, Generator], Mask]


FINDINGS: dict[str, Finding] = {
    "Airspace Opacity": Finding(0.16, airspace_opacity),
    "Atelectasis": Finding(0.24, atelectasis),
    "Cardiomegaly": Finding(0.26, cardiomegaly),
    "Consolidation": Finding(0.16, consolidation),
    "Edema": Finding(0.18, edema),
    "Enlarged Cardiomediastinum": Finding(0.24, enlarged_cardiomediastinum),
    "Lung Lesion": Finding(0.20, lung_lesion),
    "Pleural Effusion": Finding(0.26, pleural_effusion),
    "Pneumothorax": Finding(0.18, pneumothorax),
    "Support Devices": Finding(0.36, support_devices),
}
OPACITIES = ("Consolidation", "Edema")  # these count as airspace opacities too, in labels and masks
