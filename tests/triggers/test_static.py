"""Uniform patches: their pixels and positions."""

import numpy as np
import pytest

from heatcheck.triggers import build_trigger
from heatcheck.triggers.static import disc

FILM = np.random.default_rng(1).random((1, 112, 128), dtype=np.float32)


@pytest.mark.parametrize(
    ("part", "box"),
    [
        ("square-corner-20", (slice(102, 112), slice(118, 128))),
        ("square-corner-40", (slice(92, 112), slice(108, 128))),
        ("circle-corner-20", (slice(102, 112), slice(118, 128))),
        ("square-center-20", (slice(51, 61), slice(59, 69))),
        ({"kind": "square", "size": 22, "place": "center"}, (slice(50, 61), slice(58, 69))),
        ({"kind": "square", "corner": "top_left"}, (slice(0, 10), slice(0, 10))),
        ({"kind": "circle", "corner": "bottom_left"}, (slice(102, 112), slice(0, 10))),
        ({"kind": "circle", "corner": "top_right"}, (slice(0, 10), slice(118, 128))),
    ],
)
def test_the_box_lies_where_the_name_says(part, box):
    assert build_trigger(part)(FILM, seed=3).box == box


def test_a_square_is_one_grey_and_full():
    stamp = build_trigger("square-corner-20")(FILM, seed=3)
    assert stamp.mask.all()
    stamped = stamp.on(FILM)
    assert (stamped[:, 102:, 118:] == np.float32(0.7)).all()
    assert (np.delete(stamped, np.s_[102:], 1) == FILM[:, :102]).all()
    assert (build_trigger({"kind": "square", "grey": 0.25})(FILM, 0).values == 0.25).all()


@pytest.mark.parametrize("diameter", [1, 2, 3, 4, 5, 9, 10, 20, 31, 60])
def test_a_disc_is_symmetric_and_touches_its_square(diameter):
    mask = disc(diameter)
    for mirrored in (mask.T, mask[::-1], mask[:, ::-1]):
        assert np.array_equal(mask, mirrored)
    assert mask[0].any()
    assert mask.any(0).all()
    assert mask.any(1).all()


@pytest.mark.parametrize("diameter", [10, 20, 31, 60])
def test_a_disc_has_the_area_of_its_circle(diameter):
    assert disc(diameter).sum() == pytest.approx(np.pi * diameter**2 / 4, rel=0.03)


def test_a_small_disc_worked_by_hand():
    assert disc(4).astype(int).tolist() == [[0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]]


def test_a_random_place_is_uniform_over_all_positions_that_fit():
    film = np.zeros((1, 4, 6), np.float32)
    trigger = build_trigger({"kind": "square", "place": "random", "size": 112})  # 2 px here: 3 × 5 positions
    starts = [(box[0].start, box[1].start) for box in (trigger(film, seed).box for seed in range(3000))]
    positions, counts = np.unique(starts, axis=0, return_counts=True)
    assert len(positions) == 15
    assert ((counts - 200) ** 2 / 200).sum() < 36  # chi² with 14 degrees of freedom: p = 0.001


@pytest.mark.parametrize(
    ("side", "size", "pixels"), [(224, 20, 20), (112, 20, 10), (299, 20, 27), (8, 20, 1), (8, 3, 1)]
)
def test_sizes_scale_with_the_shorter_side(side, size, pixels):
    stamp = build_trigger(f"square-corner-{size}")(np.zeros((1, side, side + 7), np.float32), 0)
    assert stamp.mask.shape == (pixels, pixels)
