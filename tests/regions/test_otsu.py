import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from heatcheck.regions.otsu import has_otsu_region, otsu_region


def noise_map(seed, shape, width):
    values = ndimage.gaussian_filter(np.random.default_rng(seed).random(shape), width).astype(np.float32)
    values -= values.min()
    return values / values.max()


def brute_force_threshold(levels):
    """The level that separates the two classes best, by trying all of them."""
    spreads = []
    for level in range(256):
        low, high = levels[levels <= level], levels[levels > level]
        between = low.size * high.size * (low.mean() - high.mean()) ** 2 if low.size and high.size else 0.0
        spreads.append(between)
    return int(np.argmax(spreads))


def filled_contours(mask):
    """The region as the benchmark computes it: filled outer contours, without those of a single point."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    drawn = np.zeros(mask.shape, np.uint8)
    cv2.drawContours(drawn, [c for c in contours if len(c) > 1], -1, 1, cv2.FILLED)
    return drawn.astype(bool)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(8, 60), st.integers(8, 60), st.sampled_from([0.6, 1.5, 4.0]))
def test_region_equals_the_filled_contours_above_the_best_of_all_thresholds(seed, height, width, smoothness):
    values = noise_map(seed, (height, width), smoothness)
    levels = (255 * values).astype(np.uint8)
    expected = filled_contours(levels > brute_force_threshold(levels.astype(float)))
    np.testing.assert_array_equal(otsu_region(values), expected)


def test_two_plain_levels_are_separated():
    values = np.zeros((8, 8), dtype=np.float32)
    values[2:5, 3:7] = 1
    np.testing.assert_array_equal(otsu_region(values), values == 1)


def test_hole_is_filled_and_speck_is_dropped():
    values = np.zeros((12, 12), dtype=np.float32)
    values[2:7, 2:7] = 1
    values[4, 4] = 0
    values[10, 10] = 1
    region = otsu_region(values)
    assert region[4, 4]
    assert not region[10, 10]
    assert region.sum() == 25


def test_levels_are_truncated_not_rounded():
    # 0.999 is level 254 when truncated: apart from 1.0, and so below the threshold of a map that has nothing else
    values = np.full((6, 6), 0.999, dtype=np.float32)
    values[:2] = 1
    np.testing.assert_array_equal(otsu_region(values), values == 1)


def test_volume_is_cut_at_one_threshold_and_made_solid():
    values = np.full((9, 9, 9), 0.1, dtype=np.float32)
    values[2:7, 2:7, 2:7] = 0.9
    values[4, 4, 4] = 0.0
    values[0, 8, 8] = 1.0
    expected = np.zeros((9, 9, 9), dtype=bool)
    expected[2:7, 2:7, 2:7] = True
    np.testing.assert_array_equal(otsu_region(values), expected)


def test_threshold_of_a_volume_is_that_of_all_its_voxels():
    values = noise_map(1, (7, 9, 11), 1.5)
    levels = (255 * values).astype(np.uint8)
    above = levels > brute_force_threshold(levels.astype(float))
    region = otsu_region(values)
    np.testing.assert_array_equal(region & ~above, ndimage.binary_fill_holes(above) & ~above)


@pytest.mark.parametrize("level", [0.0, 0.4, 1.0])
def test_map_without_contrast_has_no_region(level):
    assert not otsu_region(np.full((5, 5), level, dtype=np.float32)).any()


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_map_beyond_zero_to_one_is_refused(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        otsu_region(np.array([[0.0, bad], [0.5, 0.5]], dtype=np.float32))


@given(arrays(np.float32, (5, 6), elements=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])))
def test_has_otsu_region_agrees_with_the_region_itself(values):
    assert has_otsu_region(values) == otsu_region(values).any()


def test_single_pixels_are_no_region():
    specks = np.zeros((9, 9), np.float32)
    specks[1, 1], specks[5, 5] = 1.0, 0.9
    assert not has_otsu_region(specks)
    specks[5, 6] = 0.9
    assert has_otsu_region(specks)
