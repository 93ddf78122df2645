import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.metrics import METRIC_FACTS
from heatcheck.metrics.modality.removal import NO_ANSWER, aupc, delta_aupc, random_shares, random_voxels, removal

ALL = np.ones((2, 5), bool)


def test_steps_worked_by_hand():
    """Ten positive values in five steps: two go at a time, the highest first."""
    values = np.arange(1, 11, dtype=np.float32).reshape(1, 2, 5)
    steps_of_map = removal(values, ALL, steps=5)
    np.testing.assert_array_equal(steps_of_map.thresholds, [9, 7, 5, 3, 1])
    np.testing.assert_allclose(steps_of_map.shares, [0, 0.2, 0.4, 0.6, 0.8, 1])
    gone = list(steps_of_map.voxels(values, ALL))
    assert [int(voxels.sum()) for voxels in gone] == [2, 4, 6, 8, 10]
    np.testing.assert_array_equal(gone[0], values >= 9)


def test_only_positive_voxels_of_the_head_go():
    values = np.array([[[5, 4, 0, -3, 9]] * 2, [[0, 0, 2, 0, 9]] * 2], np.float32)
    head = np.array([[1, 1, 1, 1, 0]] * 2, bool)
    steps_of_map = removal(values, head, steps=3)
    last = list(steps_of_map.voxels(values, head))[-1]
    np.testing.assert_array_equal(last, head & (values > 0))
    assert steps_of_map.shares[-1] == 6 / 16  # of eight voxels of the head in two modalities


def test_voxels_of_one_value_go_together():
    values = np.array([[[1, 1, 1, 1, 1], [1, 2, 2, 2, 0]]], np.float32)
    steps_of_map = removal(values, ALL, steps=10)
    np.testing.assert_allclose(steps_of_map.shares[1:], [0.3] * 3 + [0.9] * 7)


def test_map_without_a_positive_voxel_takes_nothing_away():
    values = np.zeros((1, 2, 5), np.float32)
    steps_of_map = removal(values, ALL, steps=4)
    assert not any(voxels.any() for voxels in steps_of_map.voxels(values, ALL))
    np.testing.assert_array_equal(steps_of_map.shares, 0)
    chance = np.array([1.0, 0.4, 0.0])
    assert delta_aupc(np.ones(5), steps_of_map.shares, chance, np.array([0, 0.5, 1])).value == 0


@given(arrays(np.float32, (3, 4, 6), elements=st.floats(-4, 4, width=16)), st.integers(1, 12))
def test_voxels_go_in_order_and_never_return(values, steps):
    head = np.ones((4, 6), bool)
    steps_of_map = removal(values, head, steps)
    assert (np.diff(steps_of_map.shares) >= 0).all()
    before = np.zeros(values.shape, bool)
    for step, gone in enumerate(steps_of_map.voxels(values, head), start=1):
        assert (before <= gone).all()
        assert not gone.any() or values[gone].min() >= values[~gone].max(initial=-9)
        assert gone.mean() == pytest.approx(steps_of_map.shares[step])
        assert gone.sum() >= np.floor(step * (values > 0).sum() / steps)
        before = gone
    np.testing.assert_array_equal(before, values > 0)


def test_random_order_takes_the_asked_shares_of_the_head_and_nothing_else():
    head = np.zeros((80, 90), bool)
    head[10:70, 10:80] = True
    shares = random_shares(6)
    assert (shares[0], shares[-1]) == (0, 1)
    before = np.zeros((2, 80, 90), bool)
    for share, gone in zip(shares[1:], random_voxels(head, 2, shares, np.random.default_rng(1)), strict=True):
        assert (before <= gone).all()
        assert not gone[:, ~head].any()
        assert gone[:, head].mean() == pytest.approx(share, abs=0.02)
        before = gone
    assert before[:, head].all()
    assert not np.array_equal(next(random_voxels(head, 2, shares, np.random.default_rng(2))), before)


def test_area_worked_by_hand():
    """Right at first, wrong from the second of four steps on: ½·¼ + ¼."""
    assert aupc(np.array([1, 1, 0, 0, 0.0])).value == pytest.approx(0.375)
    assert aupc(np.ones(11)).value == 1


def test_difference_worked_by_hand():
    """The map's steps take 10 and 20 per cent; the random curve falls from 1 to 0 over 40, so it stands at ¾ and ½."""
    right, gone = np.array([1, 0, 0.0]), np.array([0, 0.1, 0.2])
    score = delta_aupc(right, gone, np.array([1.0, 0, 0]), np.array([0, 0.4, 1]))
    assert score.value == pytest.approx(0.75 - 0.25)


def test_map_that_is_random_itself_differs_by_nothing():
    shares = random_shares()
    curve = np.linspace(1, 0, 11)
    assert delta_aupc(curve, shares, curve, shares).value == pytest.approx(0)


def test_missing_answer_leaves_the_areas_undefined():
    lost = np.array([1, np.nan, 0])
    assert math.isnan(aupc(lost).value)
    shares = np.array([0, 0.5, 1])
    for score in (
        aupc(lost), delta_aupc(lost, shares, np.ones(3), shares), delta_aupc(np.ones(3), shares, lost, shares)
    ):  # fmt: skip
        assert score.reason == NO_ANSWER


def test_other_grids_curves_without_steps_and_other_numbers_of_shares_are_refused():
    with pytest.raises(ValueError, match="share one grid"):
        removal(np.ones((1, 2, 4), np.float32), ALL)
    with pytest.raises(ValueError, match="at least two points, got 1"):
        aupc(np.ones(1))
    with pytest.raises(ValueError, match="3 steps and 2 shares"):
        delta_aupc(np.ones(3), np.ones(2), np.ones(3), np.ones(3))


def test_lower_area_and_higher_difference_are_better():
    assert not METRIC_FACTS["aupc"].higher_is_better
    assert METRIC_FACTS["delta_aupc"].higher_is_better
