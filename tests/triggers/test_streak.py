import numpy as np
from scipy import ndimage
from skimage.morphology import skeletonize

from heatcheck.triggers import build_trigger

FILM = np.full((1, 224, 224), 0.5, np.float32)


def test_a_streak_is_one_tree_with_many_ends():
    for seed in range(12):
        stamp = build_trigger("streak")(FILM, seed)
        assert ndimage.label(stamp.mask, np.ones((3, 3)))[1] <= 2  # a twig may fade for a pixel
        bones = np.pad(skeletonize(stamp.mask), 1)
        neighbours = ndimage.convolve(bones.astype(int), np.ones((3, 3), int)) - bones
        assert (bones & (neighbours == 1)).sum() >= 5
        assert stamp.mask.mean() < 0.35


def test_a_streak_is_black_unless_the_film_is_inverted():
    black = build_trigger("streak")(FILM, 3)
    white = build_trigger({"kind": "streak", "grey": 1})(FILM, 3)
    assert np.array_equal(black.mask, white.mask)
    assert (black.values[:, black.mask] < 0.5).all()
    assert (white.values[:, white.mask] > 0.5).all()
    assert black.values.min() < 0.1


def test_streaks_differ_between_images():
    boxes = {str(build_trigger("streak")(FILM, seed).box) for seed in range(12)}
    assert len(boxes) == 12


def test_the_length_is_a_share_of_the_image():
    def reach(length):
        stamps = [build_trigger({"kind": "streak", "length": length})(FILM, seed) for seed in range(12)]
        return np.mean([max(stamp.mask.shape) for stamp in stamps])

    assert 80 < reach(0.45) < 125
    assert reach(0.2) < 60
