"""Artefacts of the exposure, by what is known of their physics."""

import numpy as np
import pytest

from heatcheck.triggers import build_trigger

SIDE = 224
GREY = np.full((1, SIDE, SIDE), 0.5, np.float32)


def stamped(part, image, seed=3):
    stamp = build_trigger(part)(image, seed)
    return stamp.on(image), stamp


@pytest.mark.parametrize("kind", ["motion", "metal", "mottle"])
def test_it_differs_from_image_to_image(kind):
    generator = np.random.default_rng(1)
    image = generator.random((1, SIDE, SIDE), dtype=np.float32)
    first, second = (stamped(kind, image, seed) for seed in (1, 2))
    assert first[1].box != second[1].box
    assert not np.array_equal(first[0], second[0])


def test_motion_moves_what_is_there_and_changes_nothing_on_a_plain_surface():
    assert np.allclose(stamped("motion", GREY)[0], GREY, atol=1e-6)


def test_a_moving_edge_is_seen_twice_with_its_mean_kept():
    image = np.full((1, SIDE, SIDE), 0.2, np.float32)
    trigger = build_trigger({"kind": "motion", "size": 200, "shift": 30})
    middle = SIDE // 2
    image[:, middle:] = 0.8
    stamp = trigger(image, 3)
    profile = stamp.on(image)[0][:, middle]
    moving = np.flatnonzero(np.abs(np.diff(profile)) > 1e-3)
    assert moving[-1] - moving[0] == pytest.approx(30, abs=8)  # from end to end of the movement
    steps = np.diff(profile[moving[0] : moving[-1] + 2])
    assert steps.max() < 0.2  # an edge of 0.6 is spread
    ends, centre = (steps[:4].sum() + steps[-4:].sum()) / 8, steps[len(steps) // 2 - 4 :][:8].mean()
    assert ends > 1.5 * centre  # who breathes dwells at both ends
    assert profile.mean() == pytest.approx(image[0, :, middle].mean(), abs=0.01)
    assert stamp.mask[[0, 0, -1, -1], [0, -1, 0, -1]].sum() == 0  # a disc


def test_metal_is_white_and_streaks_are_brighter_and_darker():
    image, stamp = stamped("metal-100", GREY)
    change = (image - GREY)[0]
    assert image.max() == 1
    rows, columns = np.nonzero(image[0] == 1)
    assert np.ptp(rows) < 20
    assert np.ptp(columns) < 20
    assert (change < -0.1).sum() > 50
    assert ((change > 0.1) & (image[0] < 1)).sum() > 50
    far = np.zeros((SIDE, SIDE), bool)
    top, left = (line.start for line in stamp.box)
    bottom, right = (line.stop for line in stamp.box)
    far[top:bottom, left:right] = True
    far[rows.min() - 25 : rows.max() + 25, columns.min() - 25 : columns.max() + 25] = False
    assert np.abs(change)[far].max() < 0.45 * 0.6  # streaks fade


def test_mottle_is_as_strong_as_it_says_without_a_shift_and_stronger_where_fewer_photons_arrive():
    part = {"kind": "mottle", "size": 200, "contrast": 0.1}
    spreads = {}
    for grey in (0.35, 0.5, 0.65):
        image = np.full((1, SIDE, SIDE), grey, np.float32)
        after, stamp = stamped(part, image)
        noise = (after - image)[0][stamp.mask_on((SIDE, SIDE))]
        assert noise.mean() == pytest.approx(0, abs=0.01)
        spreads[grey] = float(noise.std())
    assert spreads[0.5] == pytest.approx(0.1, rel=0.03)
    assert spreads[0.35] < spreads[0.5] < spreads[0.65]
