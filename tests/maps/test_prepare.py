import numpy as np
import pytest

from heatcheck.maps.normalise import min_max
from heatcheck.maps.prepare import prepare
from heatcheck.maps.smooth import box_smooth


def test_map_without_smoothing_is_only_stretched():
    np.testing.assert_array_equal(prepare(np.array([[2.0, 3.0, 4.0]], dtype=np.float32)), [[0, 0.5, 1]])


def test_smoothed_map_is_stretched_again_so_that_all_levels_are_used():
    raw = np.full((9, 9), -5, dtype=np.float32)
    raw[4, 4] = 13
    expected = np.zeros((9, 9))
    expected[3:6, 3:6] = 1
    np.testing.assert_allclose(prepare(raw, smooth=3 / 9), expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(20, 14), (5, 20, 14)])
def test_smoothing_comes_between_two_stretches(shape):
    raw = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    prepared = prepare(raw, 0.2)
    np.testing.assert_array_equal(prepared, min_max(box_smooth(min_max(raw), 0.2)))
    assert (prepared.min(), prepared.max()) == (0, 1)


def test_pattern_that_smoothing_levels_out_becomes_zeros():
    rows, columns = np.indices((24, 24))
    checkers = np.where((rows + columns) % 2, 0.7, 0.1).astype(np.float32)
    assert not prepare(checkers, smooth=4 / 24).any()


def test_constant_map_stays_empty_when_smoothed():
    assert not prepare(np.full((8, 8), 3.0, dtype=np.float32), smooth=0.25).any()
