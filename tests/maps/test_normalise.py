import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from heatcheck.maps.normalise import min_max

raw_maps = arrays(np.float32, array_shapes(min_dims=2, max_dims=3, max_side=6), elements=st.floats(-1e6, 1e6, width=32))


def test_map_worked_by_hand():
    raw = np.array([[-2.0, 0.0], [1.0, 6.0]], dtype=np.float32)
    np.testing.assert_array_equal(min_max(raw), np.array([[0, 0.25], [0.375, 1]], dtype=np.float32))


@settings(deadline=None)
@given(raw_maps)
def test_map_spans_zero_to_one_in_float32_unless_it_is_constant(raw):
    stretched = min_max(raw)
    assert stretched.dtype == np.float32
    assert stretched.min() == 0
    assert stretched.max() == (1 if raw.min() < raw.max() else 0)


@settings(deadline=None)
@given(raw_maps)
def test_result_is_the_map_minus_its_minimum_divided_by_the_new_maximum_to_the_last_bit(raw):
    shifted = raw - raw.min()
    expected = shifted / shifted.max() if shifted.any() else shifted
    np.testing.assert_array_equal(min_max(raw), expected)


def test_constant_map_becomes_zeros():
    np.testing.assert_array_equal(min_max(np.full((3, 2, 2), 7.5, dtype=np.float32)), np.zeros((3, 2, 2)))


def test_given_map_is_not_changed():
    raw = np.array([[1.0, 3.0]], dtype=np.float32)
    min_max(raw)
    np.testing.assert_array_equal(raw, [[1.0, 3.0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_map_with_a_value_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="finite numbers only"):
        min_max(np.array([[0.0, bad], [1.0, 2.0]], dtype=np.float32))


def test_map_whose_range_leaves_float32_is_refused():
    with pytest.raises(ValueError, match="range must fit float32"):
        min_max(np.array([[-3e38, 3e38]], dtype=np.float32))
