from itertools import pairwise

import cv2
import numpy as np
import pytest

from heatcheck.sources.phantoms.chest.anatomy import LEFT, RIGHT, draw_anatomy
from heatcheck.sources.phantoms.chest.canvas import Canvas
from heatcheck.sources.phantoms.chest.classes import (
    CLASSES,
    bilateral_opacity,
    diffuse_fine_pattern,
    focal_opacity,
    normal,
)
from heatcheck.sources.phantoms.chest.film import Exposure, expose, new_scene

PEOPLE = range(40)
PLAIN = Exposure(brightness=0, contrast=1, scatter=0.05, noise=0)


def generator(seed=0):
    return np.random.default_rng(seed)


def scene(seed, shape=(128, 128)):
    return new_scene(Canvas(shape), draw_anatomy(generator(seed)))


def drawn(draw, seed, shape=(128, 128)):
    film = scene(seed, shape)
    return film, draw(film, generator(seed))


@pytest.mark.parametrize("draw", CLASSES.values())
def test_equal_generators_draw_equal_patterns_within_the_lungs(draw):
    for seed in PEOPLE:
        (one, mask), (two, again) = drawn(draw, seed), drawn(draw, seed)
        np.testing.assert_array_equal(mask, again)
        np.testing.assert_array_equal(one.density, two.density)
        assert not (mask & ~(one.lungs[RIGHT] | one.lungs[LEFT])).any()


@pytest.mark.parametrize("draw", [bilateral_opacity, focal_opacity, diffuse_fine_pattern])
def test_the_film_is_brighter_inside_the_mask_and_unchanged_elsewhere(draw):
    for seed in PEOPLE:
        film, mask = drawn(draw, seed)
        change = expose(film, PLAIN, generator(9)) - expose(scene(seed), PLAIN, generator(9))
        far = cv2.dilate(mask.astype(np.uint8), np.ones((15, 15))) == 0
        assert change[mask].mean() > 0.025
        assert np.abs(change[far]).max() < 0.02


def test_a_normal_chest_is_not_changed():
    film, mask = drawn(normal, 3)
    assert not mask.any()
    assert not film.density.any()
    assert (film.markings == 1).all()


def test_bilateral_opacity_is_in_both_lungs_low_and_on_the_outside():
    for seed in PEOPLE:
        film, mask = drawn(bilateral_opacity, seed)
        x, y = film.canvas.frame
        for side in (RIGHT, LEFT):
            in_lung = mask & film.lungs[side]
            assert in_lung.sum() > 0.03 * film.lungs[side].sum()
            assert (side * x)[in_lung].mean() > (side * x)[film.lungs[side]].mean()
            assert y[in_lung].mean() > y[film.lungs[side]].mean()


def test_focal_opacity_is_one_dense_piece_of_one_lung():
    sides = []
    for seed in PEOPLE:
        film, mask = drawn(focal_opacity, seed)
        touched = [side for side in (RIGHT, LEFT) if (mask & film.lungs[side]).any()]
        assert len(touched) == 1
        _, _, facts, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
        assert facts[1:, cv2.CC_STAT_AREA].max() > 0.97 * mask.sum()
        assert film.density[mask].mean() > 0.2
        sides += touched
    assert 10 < sides.count(RIGHT) < 30


def test_focal_opacity_is_denser_than_bilateral_haze():
    dense, haze = (
        np.mean([film.density[mask].mean() for film, mask in (drawn(draw, seed) for seed in PEOPLE)])
        for draw in (focal_opacity, bilateral_opacity)
    )
    assert dense > 1.4 * haze


def test_diffuse_pattern_fills_both_lungs_with_fine_detail():
    for seed in PEOPLE:
        film, mask = drawn(diffuse_fine_pattern, seed)
        np.testing.assert_array_equal(mask, film.lungs[RIGHT] | film.lungs[LEFT])
        _, y = film.canvas.frame
        detail = film.density - cv2.GaussianBlur(film.density, (0, 0), 3)
        thirds = np.quantile(y[mask], [0, 1 / 3, 2 / 3, 1])
        for side in (RIGHT, LEFT):
            for low, high in pairwise(thirds):
                part = film.lungs[side] & (y >= low) & (y <= high)
                assert detail[part].std() > 0.015  # in every third of both lungs


def test_films_differ_between_people():
    for draw in (bilateral_opacity, focal_opacity, diffuse_fine_pattern):
        assert len({drawn(draw, seed)[0].density.tobytes() for seed in range(8)}) == 8
