import cv2
import numpy as np
import pytest

from heatcheck.sources.phantoms.chest import devices as chest_devices
from heatcheck.sources.phantoms.chest.anatomy import draw_anatomy
from heatcheck.sources.phantoms.chest.canvas import Canvas
from heatcheck.sources.phantoms.chest.devices import Drawing, draw_devices

CANVAS = Canvas((96, 96))
KINDS = ("_tracheal_tube", "_central_line", "_pacemaker", "_gastric_tube", "_chest_drain")


def generator(seed):
    return np.random.default_rng(seed)


def drawn(kind, seed):
    drawing = Drawing(np.zeros(CANVAS.shape, np.float32), np.zeros(CANVAS.shape, bool))
    getattr(chest_devices, kind)(CANVAS, draw_anatomy(generator(seed)), generator(seed + 1), drawing)
    return drawing


@pytest.mark.parametrize("kind", KINDS)
def test_device_absorbs_where_its_mask_is_and_nowhere_else(kind):
    for seed in range(8):
        drawing = drawn(kind, seed)
        near = cv2.dilate(drawing.mask.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
        assert drawing.mask.any()
        assert drawing.density[drawing.mask].mean() > 0.02
        assert drawing.density[~near].max() < 0.01
        assert drawing.density.min() > -0.05  # in single pixels a tube's bore may outweigh its walls


def test_each_device_has_a_different_shape():
    masks = [drawn(kind, 1).mask for kind in KINDS]
    assert len({mask.tobytes() for mask in masks}) == len(KINDS)


def test_pacemaker_is_the_densest_device():
    peaks = {kind: drawn(kind, 2).density.max() for kind in KINDS}
    assert max(peaks, key=peaks.get) == "_pacemaker"


def test_same_generator_places_the_same_devices():
    first, again, other = (draw_devices(CANVAS, draw_anatomy(generator(1)), generator(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.density, again.density)
    np.testing.assert_array_equal(first.mask, again.mask)
    assert not np.array_equal(first.mask, other.mask)


def test_one_to_three_devices_are_drawn_and_all_kinds_occur(monkeypatch):
    drawn_kinds = []
    for kind in KINDS:
        monkeypatch.setattr(chest_devices, kind, lambda *_, kind=kind: drawn_kinds[-1].append(kind))
    for seed in range(60):
        drawn_kinds.append([])
        draw_devices(CANVAS, draw_anatomy(generator(1)), generator(seed))
    assert {len(kinds) for kinds in drawn_kinds} == {1, 2, 3}
    assert all(len(set(kinds)) == len(kinds) for kinds in drawn_kinds)
    assert set().union(*drawn_kinds) == set(KINDS)
