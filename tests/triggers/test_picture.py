"""A picture of the user's own, by hand."""

import numpy as np
import pytest

from heatcheck.triggers import build_trigger

FILM = np.full((1, 224, 224), 0.2, np.float32)


def opened(pixels, alpha, **settings):
    patch = build_trigger({"kind": "picture", "image": "own.png", **settings}).patch
    return patch.with_pixels(np.asarray(pixels, np.float32), np.asarray(alpha, np.float32))


def drawn(patch, image=FILM, seed=1):
    return patch.draw(image, np.random.default_rng(seed), None)


def test_pixels_are_laid_on_by_their_alpha_and_opacity():
    patch = opened([[1.0, 0.6], [0.4, 0.9]], [[1, 0.5], [0, 1]], size=2, opacity=0.5)
    stamp = drawn(patch)
    assert stamp.box == (slice(222, 224), slice(222, 224))
    assert stamp.mask.tolist() == [[True, True], [False, True]]
    after = stamp.on(FILM)[0, 222:, 222:]
    assert after == pytest.approx(np.array([[0.6, 0.2 + 0.5 * 0.5 * 0.4], [0.2, 0.55]]), abs=1e-6)


def test_transparent_sides_are_cut_off_and_the_longer_side_has_the_size():
    alpha = np.zeros((50, 40))
    alpha[10:30, 5:15] = 1
    patch = opened(np.full((50, 40), 0.9), alpha, size=40, place="center")
    assert patch.extent((224, 224)) == (40, 20)
    stamp = drawn(patch)
    assert stamp.mask.shape == (40, 20)
    assert stamp.on(FILM)[0][stamp.box].min() == pytest.approx(0.9)


def test_what_transparent_pixels_hide_does_not_show_at_the_edge():
    pixels, alpha = np.zeros((40, 40)), np.zeros((40, 40))
    pixels[:, :21], alpha[:, :21], alpha[:, -1] = 1, 1, 1
    pixels[:, -1] = 1  # black is hidden behind the transparent part
    stamp = drawn(opened(pixels, alpha, size=20))
    assert stamp.values[:, stamp.mask].min() >= 0.2


def test_it_may_lie_anywhere():
    patch = opened(np.ones((4, 4)), np.ones((4, 4)), size=20, place="random")
    assert len({str(drawn(patch, seed=seed).box) for seed in range(5)}) == 5


def test_it_cannot_be_drawn_before_it_is_read():
    with pytest.raises(ValueError, match="has not been read"):
        build_trigger({"kind": "picture", "image": "own.png"}).extent((224, 224))
