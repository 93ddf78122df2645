"""A chest: the shapes of one patient and their absorption."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Map, Mask
from heatcheck.sources.phantoms.chest.canvas import Canvas, Outline, curve, smooth, stroke

RIGHT, LEFT = -1, 1  # sides of the patient, whose right is on the image's left


@dataclass(frozen=True)
class Anatomy:
    """The anatomy of one patient."""

    width: float  # half width of the rib cage
    height: float  # stretch of the lungs
    heart: float  # cardiac width relative to normal
    mediastinum: float  # half width of the upper mediastinum
    dome: tuple[float, float]  # height of the diaphragm on the patient's right and left
    ribs: float  # slope of the ribs
    soft_tissue: float  # thickness of the soft tissue over the cage
    breast: float  # 0 without breast shadows
    markings: float  # prominence of the vessels
    tree: int  # seed of the vessel tree


def draw_anatomy(generator: np.random.Generator) -> Anatomy:
    """A random healthy patient."""
    dome = generator.uniform(0.36, 0.46)
    return Anatomy(
        width=generator.uniform(0.60, 0.72),
        height=generator.uniform(0.92, 1.06),
        heart=generator.uniform(0.84, 1.06),
        mediastinum=generator.uniform(0.095, 0.125),
        dome=(dome, dome + generator.uniform(0.01, 0.07)),
        ribs=generator.uniform(0.12, 0.22),
        soft_tissue=generator.uniform(0.05, 0.20),
        breast=float(generator.random() < 0.5) * generator.uniform(0.4, 1.0),
        markings=generator.uniform(0.8, 1.2),
        tree=int(generator.integers(1 << 31)),
    )


def lung(anatomy: Anatomy, side: int) -> Outline:
    """The outline of one lung, reaching behind the heart."""
    dome = anatomy.dome[0 if side == RIGHT else 1]
    w, h = anatomy.width, anatomy.height
    points = [
        (0.10, -0.52), (0.13, -0.68), (0.22, -0.76), (0.60 * w, -0.71), (0.80 * w, -0.50), (0.93 * w, -0.20),
        (0.985 * w, 0.14), (w, 0.42), (1.01 * w, 0.585), (1.005 * w, 0.60), (0.97 * w, 0.56),
        (0.78 * w, dome + 0.06), (0.52 * w, dome), (0.30 * w, dome + 0.035), (0.10, dome + 0.10), (0.085, 0.30),
        (0.09, 0.0), (0.095, -0.3),
    ]  # fmt: skip
    return smooth([(side * x, y * h if y < 0 else y) for x, y in points])


def heart(anatomy: Anatomy) -> Outline:
    """The outline of the heart; its apex points to the patient's left."""
    g = anatomy.heart * anatomy.width / 0.66
    floor = max(anatomy.dome) + 0.06
    points = [
        (-0.07, -0.14), (-0.125 * g, 0.02), (-0.17 * g, 0.18), (-0.155 * g, 0.34), (-0.08, floor), (0.12, floor + 0.02),
        (0.30 * g, floor), (0.395 * g, floor - 0.06), (0.40 * g, 0.30), (0.345 * g, 0.14), (0.25 * g, 0.0),
        (0.165 * g, -0.10), (0.12, -0.2), (0.02, -0.24),
    ]  # fmt: skip
    return smooth(points)


def upper_mediastinum(anatomy: Anatomy) -> Outline:
    """The outline of the great vessels above the heart, with the aortic knob on the patient's left."""
    m, h = anatomy.mediastinum, anatomy.height
    points = [
        (-0.075, -0.78), (-m, -0.6), (-1.05 * m, -0.35), (-1.0 * m, -0.12), (0.0, -0.05), (1.2 * m, -0.12),
        (1.2 * m, -0.2), (1.55 * m, -0.27), (1.6 * m, -0.36), (1.2 * m, -0.45), (0.95 * m, -0.6), (0.075, -0.78),
    ]  # fmt: skip
    return smooth([(x, y * h if y < 0 else y) for x, y in points])


def body(anatomy: Anatomy) -> Outline:
    """The outline of the trunk with neck and shoulders."""
    edge = anatomy.width + 0.10 + anatomy.soft_tissue
    half = [
        (0.23, -1.2), (0.235, -0.93), (0.42, -0.84), (0.80, -0.74), (1.12, -0.55), (1.2, -0.2), (edge + 0.06, -0.05),
        (edge, 0.25), (edge, 0.7), (edge + 0.03, 1.3),
    ]  # fmt: skip
    return smooth([*half, *[(-x, y) for x, y in reversed(half)]])


def hilum(side: int) -> tuple[float, float]:
    """Where the vessels enter one lung."""
    return (side * 0.15, -0.07 if side == LEFT else -0.03)


def rib_paths(anatomy: Anatomy, side: int) -> tuple[list[Outline], list[Outline]]:
    """The courses of the posterior and of the anterior ribs of one side."""
    posterior, anterior = [], []
    u = np.linspace(0, 1, 20)
    for k in range(10):
        start = (-0.80 + 0.122 * k) * anatomy.height
        reach = anatomy.width * min(1.02, 0.66 + 0.14 * k) + 0.015
        x = 0.07 + (reach - 0.07) * np.sin(u * np.pi / 2) ** 0.9
        y = start - 0.055 * np.sin(np.pi * u) + anatomy.ribs * u**2.4 * (0.6 + 0.05 * k)
        posterior.append(np.stack([side * x, y], 1))
        if 1 <= k <= 7:
            end = 0.20 + 0.03 * k
            x = reach - (reach - end) * (1 - np.cos(u * np.pi / 2))
            y = y[-1] + (0.20 + 0.012 * k) * np.sin(u * np.pi / 2) ** 1.2
            anterior.append(np.stack([side * x, y], 1))
    return posterior, anterior


def bones(anatomy: Anatomy, canvas: Canvas) -> Map:
    """The absorption of ribs, clavicles, shoulder blades and spine."""
    posterior, anterior = [], []
    for side in (RIGHT, LEFT):
        back, front = rib_paths(anatomy, side)
        posterior += back
        anterior += front
    plane = 0.15 * _cortical(canvas, posterior, 0.052) + 0.075 * _cortical(canvas, anterior, 0.060)
    clavicles = [
        curve([(s * 0.055, -0.565), (s * 0.18, -0.60), (s * 0.36, -0.685), (s * 0.55, -0.70), (s * 0.78, -0.775)])
        for s in (RIGHT, LEFT)
    ]
    plane += 0.15 * _cortical(canvas, clavicles, 0.058)
    blades = [
        smooth([(s * 0.66, -0.62), (s * 0.92, -0.66), (s * 0.86, -0.3), (s * 0.72, 0.02), (s * 0.63, -0.2)])
        for s in (RIGHT, LEFT)
    ]
    plane += 0.07 * canvas.soft(*blades, blur=0.012)
    heads = [
        smooth([(s * 0.84, -0.80), (s * 1.02, -0.80), (s * 1.04, -0.60), (s * 0.88, -0.58)]) for s in (RIGHT, LEFT)
    ]
    plane += 0.16 * canvas.soft(*heads, blur=0.012)
    return plane + _spine(canvas)


def _cortical(canvas: Canvas, paths: list[Outline], width: float) -> Map:
    together = np.stack(paths)
    shell = canvas.soft(*stroke(together, width), blur=0.003)
    marrow = canvas.soft(*stroke(together, width * 0.62), blur=0.005)
    return shell - 0.45 * marrow


def _spine(canvas: Canvas) -> Map:
    column, bodies, spines = _vertebrae()
    plane = 0.07 * canvas.soft(column, blur=0.008)
    return plane + 0.055 * canvas.soft(*bodies, blur=0.005) + 0.04 * canvas.soft(*spines, blur=0.004)


@cache
def _vertebrae() -> tuple[Outline, list[Outline], list[Outline]]:
    """The outlines of the spinal column, vertebral bodies and spinous processes, the same in all patients."""
    bodies, spines = [], []
    for top in np.arange(-1.05, 1.0, 0.115):
        bodies.append(
            smooth(
                [
                    (-0.078, top),
                    (0.078, top),
                    (0.07, top + 0.045),
                    (0.078, top + 0.09),
                    (-0.078, top + 0.09),
                    (-0.07, top + 0.045),
                ],
                2,
            )
        )
        spines.append(smooth([(-0.012, top + 0.05), (0.012, top + 0.05), (0.014, top + 0.1), (-0.014, top + 0.1)], 2))
    return smooth([(-0.075, -1.2), (0.075, -1.2), (0.09, 1.3), (-0.09, 1.3)], 1), bodies, spines


def airways(canvas: Canvas) -> Map:
    """The air in trachea and main bronchi."""
    trachea = stroke(curve([(0.0, -1.2), (0.004, -0.8), (-0.004, -0.5), (0.0, -0.30)]), 0.062)
    right = stroke(curve([(0.0, -0.32), (-0.05, -0.24), (-0.11, -0.12)]), 0.045)
    left = stroke(curve([(0.0, -0.32), (0.07, -0.25), (0.15, -0.16)]), 0.040)
    return canvas.soft(trachea, right, left, blur=0.008)


def vessels(anatomy: Anatomy, canvas: Canvas) -> Map:
    """The branching vessels of the lungs, thick at the hila and thin at the rim."""
    generator = np.random.default_rng(anatomy.tree)
    plane = np.zeros(canvas.shape, np.uint8)
    for quads, shade in _vessel_tree(generator):
        corners = np.round(canvas.pixels(quads.reshape(-1, 2)) * 64).astype(np.int32).reshape(-1, 4, 2)
        for corner in corners:
            cv2.fillConvexPoly(plane, corner, shade, cv2.LINE_AA, 6)
    return canvas.blurred(plane.astype(np.float32) / 255, 0.0035)


def _vessel_tree(generator: np.random.Generator) -> Iterator[tuple[Float[np.ndarray, "segments 4 2"], int]]:
    """The segments of each generation of branches with their shade, finest and faintest first."""
    side = np.repeat([RIGHT, LEFT], 8)
    angle = np.tile(np.linspace(-1.45, 1.35, 8), 2) + generator.normal(0, 0.12, 16)
    start = np.array([hilum(s) for s in side]) + generator.normal(0, 0.02, (16, 2))
    width = generator.uniform(0.015, 0.023, 16)
    generations = []
    for depth in range(6):
        length = generator.uniform(0.07, 0.14, len(angle)) * (1.05 - 0.09 * depth)
        direction = np.stack([side * np.cos(angle), np.sin(angle)], 1)
        end = start + length[:, None] * direction
        normal = np.stack([-direction[:, 1], direction[:, 0]], 1) / 2
        thick, thin = normal * width[:, None], normal * width[:, None] * 0.75
        generations.append((np.stack([start + thick, end + thin, end - thin, start - thick], 1), 255 - 36 * depth))
        turn = generator.uniform(0.15, 0.55, (2, len(angle))) * np.array([[1], [-1]])
        angle = (angle + turn).reshape(-1)
        start, side = np.tile(end, (2, 1)), np.tile(side, 2)
        width = np.tile(width, 2) * generator.uniform(0.55, 0.78, len(side))
    return reversed(generations)


def lung_air(canvas: Canvas, field: Mask) -> Map:
    """The depth of air along each ray through the lung field, 0 at the rim and 1 in the middle."""
    if not field.any():
        return np.zeros(canvas.shape, np.float32)
    distance = cv2.distanceTransform(field.astype(np.uint8), cv2.DIST_L2, 3) / canvas.unit
    depth = np.clip(distance / 0.22, 0, 1)
    return canvas.blurred(np.sqrt(1 - (1 - depth) ** 2).astype(np.float32), 0.008)
