import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatcheck.stats.resampling.clusters import (
    MOST_GROUPS,
    cluster_codes,
    cluster_totals,
    left_out_weights,
    resampled_weights,
)


def test_patients_are_numbered_in_sorted_order():
    np.testing.assert_array_equal(cluster_codes(np.array(["b", "a", "b", "c"])), [1, 0, 1, 2])


def test_totals_worked_by_hand_leave_undefined_values_out():
    values = np.array([[1.0, np.nan], [2.0, 5.0], [4.0, np.nan]])
    totals = cluster_totals(values, np.array(["b", "a", "b"]))
    np.testing.assert_array_equal(totals.sums, [[2, 5], [5, 0]])
    np.testing.assert_array_equal(totals.counts, [[1, 1], [2, 0]])
    np.testing.assert_array_equal(totals.joined, [[2, 5, 1, 1], [5, 0, 2, 0]])


def test_no_cases_make_no_patients():
    totals = cluster_totals(np.empty((0, 3)), np.array([], dtype=str))
    assert totals.sums.shape == totals.counts.shape == (0, 3)


def test_infinite_value_is_refused():
    with pytest.raises(ValueError, match="finite, or NaN"):
        cluster_totals(np.array([[np.inf]]), np.array(["a"]))


@pytest.mark.parametrize("shape", [(3,), (2, 1)])
def test_values_that_do_not_match_the_cases_are_refused(shape):
    with pytest.raises(ValueError, match="one row per case"):
        cluster_totals(np.zeros(shape), np.array(["a", "b", "c"]))


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**32))
def test_every_draw_takes_as_many_patients_as_there_are(n_clusters, draws, seed):
    weights = np.concatenate(list(resampled_weights(n_clusters, draws, np.random.default_rng(seed))))
    assert weights.shape == (draws, n_clusters)
    assert (weights.sum(axis=1) == n_clusters).all()
    drawn = np.random.default_rng(seed).integers(0, n_clusters, (draws, n_clusters))
    np.testing.assert_array_equal(weights, [np.bincount(row, minlength=n_clusters) for row in drawn])


def test_many_draws_come_in_blocks_that_fit_into_memory():
    blocks = list(resampled_weights(50_000, 90, np.random.default_rng(0)))
    assert sum(map(len, blocks)) == 90
    assert max(block.nbytes for block in blocks) <= 2**24
    left_out = left_out_weights(50_000, np.random.default_rng(0))
    assert max(block.nbytes for block, _ in zip(left_out, range(2), strict=False)) <= 2**24


def test_leaving_one_out_gives_each_patient_weight_zero_once():
    generator = np.random.default_rng(0)
    before = generator.bit_generator.state
    weights = np.concatenate(list(left_out_weights(7, generator)))
    np.testing.assert_array_equal(weights, 1 - np.eye(7))
    assert generator.bit_generator.state == before


def test_many_patients_are_left_out_in_random_groups_of_about_one_size():
    weights = np.concatenate(list(left_out_weights(2500, np.random.default_rng(0))))
    assert weights.shape == (MOST_GROUPS, 2500)
    assert ((weights == 0).sum(axis=0) == 1).all()
    assert set((weights == 0).sum(axis=1)) == {2, 3}
    together = np.array([np.flatnonzero(row == 0)[:2] for row in weights])
    assert np.abs(np.diff(together)).std() > 100  # neither neighbours nor a fixed distance apart


def test_bootstrap_without_draws_is_refused():
    with pytest.raises(ValueError, match="at least one draw"):
        list(resampled_weights(3, 0, np.random.default_rng(0)))
