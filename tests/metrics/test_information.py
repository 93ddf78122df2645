import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import hypergeom
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from heatcheck.metrics.information import _expected_pair_sum, _tables, information, levels_of, shared_information

level_pairs = arrays(np.intp, st.tuples(st.just(2), st.integers(2, 40)), elements=st.integers(0, 4))


def slow_information(one, other):
    """The formula as it is printed: a loop over the levels of one map and over those of the other."""
    total = 0.0
    for u in set(one.tolist()):
        for v in set(other.tolist()):
            together = np.mean((one == u) & (other == v))
            if together:
                total += together * math.log(together / (np.mean(one == u) * np.mean(other == v)))
    return total


def test_information_worked_by_hand():
    """Two levels that agree on three pixels of four."""
    levels = np.array([[0, 0, 1, 1], [0, 0, 1, 0]])
    expected = (
        0.5 * math.log(0.5 / (0.5 * 0.75)) + 0.25 * math.log(0.25 / (0.5 * 0.25)) + 0.25 * math.log(0.25 / (0.5 * 0.75))
    )
    result = shared_information(levels, 2)
    assert result[0, 1] == pytest.approx(expected)
    assert result[0, 0] == pytest.approx(math.log(2))
    assert result[1, 1] == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))


def test_chance_worked_by_hand():
    """A level of two pixels and one of one pixel, in three: they meet with chance 2/3, wherever the one pixel lies."""
    levels = np.array([[0, 0, 1], [0, 1, 1]])
    meet = (2 / 3) * shared_information(np.array([[0, 0, 1], [1, 0, 0]]), 2)[0, 1]
    miss = (1 / 3) * shared_information(np.array([[0, 0, 1], [0, 0, 1]]), 2)[0, 1]
    assert information(levels, 2).by_chance[0, 1] == pytest.approx(meet + miss)


@settings(deadline=None)
@given(level_pairs)
def test_information_is_that_of_a_slow_double_loop_and_of_scikit_learn(levels):
    result = shared_information(levels, 5)[0, 1]
    assert result == pytest.approx(slow_information(*levels), abs=1e-12)
    assert result == pytest.approx(mutual_info_score(*levels), abs=1e-12)


@settings(deadline=None, max_examples=20)
@given(arrays(np.intp, (2, 6), elements=st.integers(0, 3)))
def test_chance_is_the_mean_over_every_way_to_shuffle(levels):
    ways = [levels[1][list(order)] for order in itertools.permutations(range(6))]
    by_way = {tuple(way): shared_information(np.array([levels[0], way]), 4)[0, 1] for way in set(map(tuple, ways))}
    expected = np.mean([by_way[tuple(way)] for way in ways])
    assert information(levels, 4).by_chance[0, 1] == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(level_pairs)
def test_chance_and_normalised_information_are_scikit_learns(levels):
    result = information(levels, 5)
    table = contingency_matrix(*levels, sparse=True)
    assert result.by_chance[0, 1] == pytest.approx(expected_mutual_information(table, levels.shape[1]), abs=1e-10)
    if math.isfinite(result.normalised[0, 1]) and min(result.entropy) > 0:
        assert result.normalised[0, 1] == pytest.approx(adjusted_mutual_info_score(*levels), abs=1e-7)


def test_maps_of_many_pixels_are_scikit_learns_too():
    generator = np.random.default_rng(2)
    one = generator.random(128 * 128) ** 3
    levels = levels_of(np.array([one, (one + generator.random(128 * 128)) / 2]), 32)
    result = information(levels, 32)
    table = contingency_matrix(*levels, sparse=True)
    assert result.shared[0, 1] == pytest.approx(mutual_info_score(*levels), abs=1e-12)
    assert result.by_chance[0, 1] == pytest.approx(expected_mutual_information(table, 128 * 128), abs=1e-7)
    assert result.normalised[0, 1] == pytest.approx(adjusted_mutual_info_score(*levels), abs=1e-7)


@pytest.mark.parametrize("n", [49, 700, 5000])
def test_looking_at_some_counts_only_is_as_good_as_looking_at_all(n):
    """Against SciPy's probabilities of every count, for levels from almost empty to almost full."""
    sizes = sorted({1, 2, 9, n // 50 + 1, n // 3, n // 2, n - n // 20, n - 7, n - 1, n})
    for a, b in itertools.combinations_with_replacement(sizes, 2):
        counts = np.arange(max(0, a + b - n), min(a, b) + 1)
        expected = hypergeom.pmf(counts, n, a, b) @ _tables(n).count_times_log[counts]
        assert _expected_pair_sum(np.array([a]), np.array([b]), n) / n == pytest.approx(expected / n, abs=2e-8)


def test_chance_nears_its_known_limit_on_very_many_pixels():
    small = np.full(32, 16384 // 32)
    met = _expected_pair_sum(small * 100, small * 100, 100 * 16384)
    chance = (met - 64 * _tables(1638400).count_times_log[51200] + _tables(1638400).count_times_log[-1]) / 1638400
    assert chance == pytest.approx(31**2 / (2 * 1638400), rel=1e-3)


def test_edges_of_the_bins_belong_to_the_upper_bin_and_one_to_the_last():
    values = np.array([[0.0, 0.2499, 0.25, 0.5, 0.999, 1.0]])
    np.testing.assert_array_equal(levels_of(values, 4), [[0, 0, 1, 2, 3, 3]])


def test_too_few_pixels_leave_nothing_to_normalise():
    result = information(np.array([[0, 1, 2], [2, 0, 1]]), 3)
    assert math.isnan(result.normalised[0, 1])
