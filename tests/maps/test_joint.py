"""The maps of all modalities are scaled to [0, 1] together."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from heatcheck.maps.joint import joint


@st.composite
def maps_with_heads(draw):
    shape = draw(array_shapes(min_dims=3, max_dims=4, max_side=5))
    values = draw(arrays(np.float32, shape, elements=st.floats(-1e6, 1e6, width=32)))
    return values, draw(arrays(np.bool_, shape[1:]))


def test_map_worked_by_hand():
    values = np.stack([np.arange(1, 102), -np.arange(1, 102)]).reshape(2, 1, 101).astype(np.float32)
    expected = np.minimum(np.stack([np.arange(1, 102), np.zeros(101)]), 100).reshape(2, 1, 101) / 100
    np.testing.assert_allclose(joint(values, np.ones((1, 101), bool)), expected, rtol=1e-6)


@settings(deadline=None)
@given(maps_with_heads())
def test_result_lies_between_zero_and_one_and_reaches_one_unless_nothing_is_positive(drawn):
    values, head = drawn
    scaled = joint(values, head)
    assert scaled.shape == values.shape
    assert scaled.dtype == np.float32
    assert scaled.min() >= 0
    assert scaled.max() == (1 if (values > 0).any() else 0)
    assert (scaled[values <= 0] == 0).all()


@settings(deadline=None)
@given(maps_with_heads())
def test_order_and_share_of_modalities_are_kept_below_the_cap(drawn):
    values, head = drawn
    scaled = joint(values, head)
    kept = (values > 0) & (scaled < 1) & (scaled > 1e-20)  # smaller values have lost digits
    assume(kept.sum() > 1)
    factors = values[kept] / scaled[kept].astype(np.float64)
    np.testing.assert_allclose(factors, factors[0], rtol=1e-4)  # one factor for all modalities


@settings(deadline=None)
@given(maps_with_heads(), st.sampled_from([2.0**-20, 0.25, 8.0]))
def test_scaling_the_map_changes_nothing(drawn, factor):
    values, head = drawn
    assume(np.abs(values[values != 0]).min(initial=1) > 1e-20)
    np.testing.assert_allclose(joint(values * np.float32(factor), head), joint(values, head), rtol=1e-5, atol=1e-7)


@settings(deadline=None)
@given(maps_with_heads())
def test_values_outside_the_head_do_not_change_the_cap(drawn):
    values, head = drawn
    assume((values[:, head] > 0).any())
    louder = np.where(head, values, np.float32(1e7))
    np.testing.assert_array_equal(joint(louder, head)[:, head], joint(values, head)[:, head])


def test_a_sparse_map_in_a_large_volume_of_air_is_not_erased():
    values = np.zeros((4, 20, 20, 20), np.float32)
    values[1, 9:12, 9:12, 9:12] = 2.0
    head = np.zeros((20, 20, 20), bool)
    head[5:15, 5:15, 5:15] = True
    scaled = joint(values, head)
    np.testing.assert_array_equal(scaled, values / 2)


def test_a_map_that_is_positive_only_outside_the_head_is_scaled_by_those_values():
    values = np.array([[[0.0, 4.0, -1.0]]], np.float32)
    np.testing.assert_array_equal(joint(values, np.array([[True, False, True]])), [[[0, 1, 0]]])


def test_the_given_map_is_not_changed():
    values = np.array([[[-1.0, 4.0]]], np.float32)
    joint(values, np.ones((1, 2), bool))
    np.testing.assert_array_equal(values, [[[-1, 4]]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_map_with_a_value_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="finite numbers only"):
        joint(np.array([[[1.0, bad]]], np.float32), np.ones((1, 2), bool))


def test_a_head_on_another_grid_is_refused():
    with pytest.raises(ValueError, match=r"share one grid, got \(2, 2\) and \(3, 2\)"):
        joint(np.ones((4, 2, 2), np.float32), np.ones((3, 2), bool))
