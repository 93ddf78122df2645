from dataclasses import replace

import numpy as np
import pytest

from heatcheck.sources.phantoms.chest.anatomy import LEFT, RIGHT, draw_anatomy
from heatcheck.sources.phantoms.chest.canvas import Canvas
from heatcheck.sources.phantoms.chest.film import Exposure, add_marker, draw_exposure, draw_pose, expose, new_scene

PLAIN = Exposure(brightness=0, contrast=1, scatter=0.05, noise=0)


def generator(seed=0):
    return np.random.default_rng(seed)


def scene(shape=(96, 96), seed=1):
    return new_scene(Canvas(shape), draw_anatomy(generator(seed)))


def test_scene_without_findings_holds_two_lungs_full_of_air_and_vessels():
    empty = scene()
    assert set(empty.lungs) == {RIGHT, LEFT}
    assert all(field.any() for field in empty.lungs.values())
    assert not empty.density.any()
    assert not empty.metal.any()
    assert (empty.air == 1).all()
    assert (empty.markings == 1).all()


@pytest.mark.parametrize("shape", [(32, 32), (97, 81), (64, 74), (33, 39)])
@pytest.mark.parametrize("exposure", [PLAIN, Exposure(0.08, 1.14, 0.10, 1.5), Exposure(-0.08, 0.88, 0.02, 0.6)])
def test_film_is_finite_and_in_range_for_any_format_and_exposure(shape, exposure):
    film = expose(scene(shape), exposure, generator())
    assert film.shape == shape
    assert film.dtype == np.float32
    assert np.isfinite(film).all()
    assert 0 <= film.min() < 0.4
    assert 0.6 < film.max() <= 1


def test_lungs_are_dark_the_heart_is_bright_and_the_room_is_black():
    film = expose(scene((128, 128)), PLAIN, generator())
    lungs = np.mean([film[field].mean() for field in scene((128, 128)).lungs.values()])
    assert film[80:90, 66:74].mean() > lungs + 0.2
    assert film[:, :2].mean() < 0.2


def test_denser_parts_are_brighter():
    dense = scene()
    dense.density[40:50, 20:30] += 0.2
    dense.metal[10:15, 40:45] += 0.3
    change = expose(dense, PLAIN, generator()) - expose(scene(), PLAIN, generator())
    assert change[42:48, 22:28].min() > 0.03
    assert change[11:14, 41:44].min() > 0.03
    assert np.abs(change[60:]).max() < 0.01


def test_lung_without_air_is_white():
    full, empty = scene(), scene()
    empty.air[:] = 0
    lungs = full.lungs[RIGHT] | full.lungs[LEFT]
    change = expose(empty, PLAIN, generator()) - expose(full, PLAIN, generator())
    assert change[lungs].mean() > 0.2


def test_noise_comes_from_the_generator_and_grows_with_the_exposures_noise():
    noisy = replace(PLAIN, noise=1.0)
    first, again = (expose(scene(), noisy, generator(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    # the same generator draws the same texture, so that only the noise differs
    grain = [np.std(expose(scene(), replace(PLAIN, noise=n), generator(3)) - expose(scene(), PLAIN, generator(3)))
             for n in (0.5, 1.0, 1.5)]  # fmt: skip
    assert 0 < grain[0] < grain[1] < grain[2] < 0.05


def test_scene_is_not_changed_by_its_exposure():
    drawn = scene()
    before = [plane.copy() for plane in (drawn.density, drawn.metal, drawn.air, drawn.markings)]
    expose(drawn, PLAIN, generator())
    for plane, old in zip((drawn.density, drawn.metal, drawn.air, drawn.markings), before, strict=True):
        np.testing.assert_array_equal(plane, old)


def test_poses_and_exposures_stay_within_clinical_limits():
    poses = [draw_pose(generator(seed)) for seed in range(200)]
    exposures = [draw_exposure(generator(seed)) for seed in range(200)]
    assert max(abs(pose.rotation) for pose in poses) <= 0.08
    assert max(abs(axis) for pose in poses for axis in pose.shift) <= 0.06
    assert 0.93 <= min(pose.scale for pose in poses) < max(pose.scale for pose in poses) <= 1.07
    assert all(abs(e.brightness) <= 0.08 and 0.88 <= e.contrast <= 1.14 and 0 < e.scatter <= 0.1 for e in exposures)
    assert len(set(poses)) == 200


@pytest.mark.parametrize(("letter", "right_half"), [("R", False), ("L", True)])
@pytest.mark.parametrize("shape", [(32, 32), (96, 81), (160, 170)])
def test_marker_is_a_bright_letter_in_its_upper_corner(letter, right_half, shape):
    film = np.full(shape, 0.2, np.float32)
    mask = add_marker(film, letter)
    rows, columns = np.nonzero(mask)
    assert mask.any()
    assert film[mask].min() > 0.5
    assert (film[~mask] <= 0.2 + 0.5 * (0.97 - 0.2) + 1e-6).all()
    assert rows.max() < shape[0] / 4
    assert (columns > shape[1] / 2).all() if right_half else (columns < shape[1] / 2).all()


def test_letters_differ():
    masks = [add_marker(np.zeros((128, 128), np.float32), letter) for letter in "RL"]
    assert masks[0].sum() > masks[1].sum()
