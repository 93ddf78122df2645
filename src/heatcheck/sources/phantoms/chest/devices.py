"""Draws tubes, lines and a pacemaker as on a frontal film."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.records import Map, Mask
from heatcheck.sources.phantoms.chest.anatomy import LEFT, RIGHT, Anatomy
from heatcheck.sources.phantoms.chest.canvas import Canvas, Outline, curve, smooth, stroke

Generator = np.random.Generator


@dataclass
class Drawing:
    """The absorption of the devices, and the pixels they cover."""

    density: Map
    mask: Mask


def draw_devices(canvas: Canvas, anatomy: Anatomy, generator: Generator) -> Drawing:
    """One to three devices of different kinds."""
    drawing = Drawing(np.zeros(canvas.shape, np.float32), np.zeros(canvas.shape, bool))
    kinds = [_tracheal_tube, _central_line, _pacemaker, _gastric_tube, _chest_drain]
    chosen = generator.choice(len(kinds), size=generator.choice([1, 2, 3], p=[0.5, 0.35, 0.15]), replace=False)
    for index in sorted(chosen):
        kinds[index](canvas, anatomy, generator, drawing)
    return drawing


def _add(canvas: Canvas, drawing: Drawing, shapes: list[Outline], density: float) -> None:
    drawing.density += density * canvas.soft(*shapes, blur=0.0015)
    drawing.mask |= canvas.exact(*shapes)


def _tube(canvas: Canvas, drawing: Drawing, path: Outline, width: float, density: float) -> None:
    """Add a hollow tube: faint inside, with two walls."""
    drawing.density += density * (canvas.soft(stroke(path, width)) - 0.6 * canvas.soft(stroke(path, width * 0.5)))
    drawing.mask |= canvas.exact(stroke(path, width * 1.1))


def _tracheal_tube(canvas: Canvas, _: Anatomy, generator: Generator, drawing: Drawing) -> None:
    tip = -0.36 - generator.uniform(0.0, 0.16)
    path = curve([(generator.uniform(-0.03, 0.03), -1.1), (0.0, -0.8), (0.004, tip)])
    _tube(canvas, drawing, path, 0.036, 0.30)


def _central_line(canvas: Canvas, _: Anatomy, generator: Generator, drawing: Drawing) -> None:
    side = RIGHT if generator.random() < 0.6 else LEFT
    entry = (
        [(side * 0.16, -1.05), (side * 0.13, -0.8)]
        if generator.random() < 0.5
        else [(side * 0.75, -0.55), (side * 0.45, -0.60), (side * 0.2, -0.58)]
    )
    path = curve([*entry, (-0.07, -0.42), (-0.075, -0.22), (-0.07, generator.uniform(-0.12, 0.0))])
    _add(canvas, drawing, [stroke(path, 0.015)], 0.34)


def _pacemaker(canvas: Canvas, anatomy: Anatomy, generator: Generator, drawing: Drawing) -> None:
    side = LEFT if generator.random() < 0.8 else RIGHT
    x, y = side * generator.uniform(0.44, 0.56), generator.uniform(-0.58, -0.46)
    w, h = 0.085, 0.075
    can = smooth([(x - w, y - h), (x + w, y - h), (x + w, y + h * 0.7), (x + w * 0.4, y + h), (x - w, y + h)], 2)
    _add(canvas, drawing, [can], 0.75)
    floor = max(anatomy.dome)
    leads = [[(x, y - h), (side * 0.25, -0.60), (-0.05, -0.40), (-0.09, -0.05), (-0.02, 0.24), (0.20, floor - 0.05)]]
    if generator.random() < 0.6:
        leads.append([(x, y - h), (side * 0.22, -0.57), (-0.06, -0.36), (-0.10, 0.0), (-0.06, 0.12), (-0.02, 0.05)])
    for points in leads:
        path = curve(points, 40)
        _add(canvas, drawing, [stroke(path, 0.014), stroke(path[-4:], 0.024)], 0.45)


def _gastric_tube(canvas: Canvas, _: Anatomy, generator: Generator, drawing: Drawing) -> None:
    sway = generator.uniform(-0.02, 0.02)
    path = curve([(0.02, -1.1), (0.01 + sway, -0.6), (0.02, -0.1), (0.05 + sway, 0.3), (0.10, 0.5), (0.26, 0.62)], 40)
    _tube(canvas, drawing, path, 0.020, 0.30)


def _chest_drain(canvas: Canvas, anatomy: Anatomy, generator: Generator, drawing: Drawing) -> None:
    side = RIGHT if generator.random() < 0.5 else LEFT
    rim = anatomy.width + 0.16
    height = generator.uniform(0.1, 0.3)
    top = generator.uniform(-0.55, -0.3)
    path = curve(
        [
            (side * rim, height + 0.12),
            (side * anatomy.width * 0.86, height),
            (side * 0.42, (height + top) / 2),
            (side * 0.34, top),
        ],
        30,
    )
    _tube(canvas, drawing, path, 0.032, 0.30)
