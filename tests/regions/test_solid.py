import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from heatcheck.regions.solid import drop_specks, fill_holes

planes = arrays(bool, st.tuples(st.integers(1, 9), st.integers(1, 9)))
volumes = arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)))


def mask_of(*rows):
    return np.array([[character == "#" for character in row] for row in rows])


def test_diagonal_chain_closes_a_hole_and_a_gap_to_the_border_opens_it():
    chain = mask_of(".#..", "#.#.", ".#..")
    assert fill_holes(chain)[1, 1]
    assert not fill_holes(mask_of("....", "#.#.", ".#.."))[1, 1]
    assert not fill_holes(mask_of("#.#.", "#.#.", "###."))[0, 1]


def test_island_in_a_hole_is_swallowed_by_the_filling():
    ring = mask_of("#####", "#...#", "#.#.#", "#...#", "#####")
    assert fill_holes(ring).all()


def test_pixel_without_neighbours_is_dropped_and_a_diagonal_pair_stays():
    kept = drop_specks(mask_of("#....", "...#.", "..#..", "....."))
    np.testing.assert_array_equal(kept, mask_of(".....", "...#.", "..#..", "....."))


def test_single_pixels_at_the_corners_of_the_image_are_dropped():
    corners = mask_of("#...#", ".....", "#...#")
    assert not drop_specks(corners).any()


@settings(deadline=None)
@given(st.one_of(planes, volumes))
def test_holes_are_those_that_scipy_fills(mask):
    np.testing.assert_array_equal(fill_holes(mask), ndimage.binary_fill_holes(mask))


@settings(deadline=None)
@given(st.one_of(planes, volumes))
def test_specks_are_the_components_of_one_pixel(mask):
    parts, n = ndimage.label(mask, np.ones((3,) * mask.ndim))
    expected = mask.copy()
    for part in range(1, n + 1):
        if (parts == part).sum() == 1:
            expected[parts == part] = False
    np.testing.assert_array_equal(drop_specks(mask), expected)


@settings(deadline=None)
@given(planes)
def test_a_volume_of_one_slice_drops_the_same_specks(mask):
    np.testing.assert_array_equal(drop_specks(mask[None])[0], drop_specks(mask))


@pytest.mark.parametrize("step", [fill_holes, drop_specks])
def test_given_mask_is_not_changed(step):
    mask = mask_of("###.", "#.#.", "###.", "...#", "#...")
    before = mask.copy()
    step(mask)
    np.testing.assert_array_equal(mask, before)
