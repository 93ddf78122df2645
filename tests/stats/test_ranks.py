import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata, tukey_hsd

from heatcheck.stats.ranks import ALL_TIED, FEW_BLOCKS, FEW_METHODS, among_best, compare_ranks, critical_value

# ranks of four classifiers on fourteen data sets: Demšar 2006, Journal of Machine Learning Research 7, table 6
DEMSAR = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)


def test_published_example():
    """His statistic of 9.28 ignores ties: two equal ranks in three blocks, four in one; his difference is 1.25."""
    comparison = compare_ranks(DEMSAR, higher_is_better=False)
    np.testing.assert_allclose(comparison.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    ties = (3 * (2**3 - 2) + (4**3 - 4)) / (14 * (4**3 - 4))
    assert comparison.chi_squared * (1 - ties) == pytest.approx(9.28, abs=5e-3)
    assert comparison.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert comparison.p_values[0, 3] > 0.05
    loosely = compare_ranks(DEMSAR, higher_is_better=False, level=0.90)
    assert loosely.critical_difference == pytest.approx(1.12, abs=5e-3)
    assert comparison.p_values[0, 3] < 0.10
    assert (comparison.n_blocks, comparison.n_incomplete, comparison.reason) == (14, 0, "")


def test_statistic_worked_by_hand():
    """Three methods in the same order in four blocks: ranks 1, 2, 3 and χ² = 12·4/(3·4)·(1 + 4 + 9) − 3·4·4 = 8."""
    comparison = compare_ranks(np.array([[0.9, 0.5, 0.1]] * 4) * [[1], [2], [3], [4]], higher_is_better=True)
    np.testing.assert_array_equal(comparison.mean_ranks, [1, 2, 3])
    assert comparison.chi_squared == pytest.approx(8)
    assert comparison.p_value == pytest.approx(math.exp(-4))  # χ² with two degrees of freedom
    assert comparison.critical_difference == pytest.approx(2.3437 * math.sqrt(3 * 4 / (6 * 4)), abs=1e-4)


@pytest.mark.parametrize("levels", [3, 50])
@pytest.mark.parametrize(("blocks", "methods"), [(2, 3), (5, 7), (55, 10)])
def test_statistic_is_scipys_with_ties_and_without(levels, blocks, methods):
    scores = np.random.default_rng(blocks + levels).integers(0, levels, (blocks, methods)).astype(float)
    comparison = compare_ranks(scores, higher_is_better=True)
    judge = friedmanchisquare(*scores.T)
    assert comparison.chi_squared == pytest.approx(judge.statistic)
    assert comparison.p_value == pytest.approx(judge.pvalue)
    np.testing.assert_allclose(comparison.mean_ranks, rankdata(-scores, axis=1).mean(0))


@pytest.mark.parametrize(("methods", "published"), [(2, 1.960), (3, 2.343), (5, 2.728), (7, 2.949), (10, 3.164)])
def test_critical_values_are_the_published_ones(methods, published):
    assert critical_value(methods) == pytest.approx(published, abs=1e-3)


def test_a_pair_is_significant_exactly_when_it_lies_a_critical_difference_apart():
    generator = np.random.default_rng(0)
    scores = generator.random((12, 6)) + np.linspace(0, 1, 6)
    comparison = compare_ranks(scores, higher_is_better=True)
    apart = np.abs(comparison.mean_ranks[:, None] - comparison.mean_ranks)
    np.testing.assert_array_equal(comparison.p_values < 0.05, apart > comparison.critical_difference)
    assert (comparison.p_values < 0.05).any()
    np.testing.assert_array_equal(comparison.p_values, comparison.p_values.T)
    np.testing.assert_array_equal(comparison.p_values.diagonal(), 1)


def test_p_values_of_pairs_are_those_of_tukeys_test_on_ranks_of_known_spread():
    """Very many blocks leave Tukey's test no doubt about the error; samples are made to have the one of ranks."""
    scores = np.random.default_rng(3).random((6000, 4)) + np.array([0, 0.002, 0.01, 0.02])
    comparison = compare_ranks(scores, higher_is_better=True)
    n, k = 6000, 4
    wave = np.resize([1.0, -1.0], n)
    error = math.sqrt(k * (k + 1) / 12) * math.sqrt((n - 1) / n)
    judge = tukey_hsd(*(mean + error * wave for mean in comparison.mean_ranks))
    np.testing.assert_allclose(comparison.p_values, judge.pvalue, atol=1e-3)


def test_direction_turns_ranks_round_and_scale_does_not_matter():
    scores = np.random.default_rng(1).random((5, 4))
    up, down = (compare_ranks(scores, higher_is_better=direction) for direction in (True, False))
    np.testing.assert_allclose(up.mean_ranks, 5 - down.mean_ranks)
    assert up.chi_squared == pytest.approx(down.chi_squared)
    stretched = compare_ranks(np.exp(scores * 5), higher_is_better=True)
    np.testing.assert_array_equal(stretched.mean_ranks, up.mean_ranks)


def test_incomplete_blocks_are_counted_and_dropped():
    scores = np.random.default_rng(2).random((8, 4))
    with_gaps = np.insert(scores, [2, 5], np.nan, axis=0)
    with_gaps[2, 0] = 0.5
    comparison, complete = compare_ranks(with_gaps, higher_is_better=True), compare_ranks(scores, higher_is_better=True)
    assert (comparison.n_blocks, comparison.n_incomplete) == (8, 2)
    assert comparison.chi_squared == complete.chi_squared
    np.testing.assert_array_equal(comparison.p_values, complete.p_values)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.3]]), FEW_METHODS),
        (np.array([[0.1, 0.2, 0.3]]), FEW_BLOCKS),
        (np.array([[0.1, 0.2, 0.3], [0.1, np.nan, 0.3]]), FEW_BLOCKS),
        (np.empty((0, 4)), FEW_BLOCKS),
        (np.ones((5, 3)), ALL_TIED),
    ],
)
def test_a_test_that_cannot_be_made_has_a_reason(scores, reason):
    comparison = compare_ranks(scores, higher_is_better=True)
    assert comparison.reason == reason
    assert math.isnan(comparison.chi_squared)
    assert math.isnan(comparison.p_value)
    assert math.isnan(comparison.critical_difference)
    assert np.isnan(comparison.p_values).all()
    assert np.isnan(comparison.mean_ranks).all() == (not len(scores))


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="one row per block"):
        compare_ranks(np.ones(3), higher_is_better=True)
    with pytest.raises(ValueError, match="got infinity"):
        compare_ranks(np.array([[1, np.inf, 2], [1, 2, 3]]), higher_is_better=True)


def test_the_slow_import_is_made_only_when_a_pair_is_tested():
    code = "import heatcheck.stats.ranks, sys; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_all_that_do_not_rank_behind_the_best_beyond_chance_may_be_best():
    """Six methods in blocks of 40: three are near each other, three are far behind."""
    generator = np.random.default_rng(2)
    scores = generator.random((40, 6)) + np.array([0, 0.02, 0.05, 2, 3, 4])
    comparison = compare_ranks(-scores, higher_is_better=True)
    np.testing.assert_array_equal(among_best(comparison), [True, True, True, False, False, False])


def test_one_method_is_best_alone_where_it_ranks_before_every_other():
    steps = np.arange(5) + np.random.default_rng(3).random((60, 5)) / 10
    comparison = compare_ranks(steps, higher_is_better=False)
    assert comparison.p_values[0, 1] < 0.05
    np.testing.assert_array_equal(among_best(comparison), [True, False, False, False, False])


def test_as_published_the_second_is_best_too_even_where_it_clearly_differs_from_the_first():
    steps = np.arange(5) + np.random.default_rng(3).random((60, 5)) / 10
    comparison = compare_ranks(steps, higher_is_better=False)
    np.testing.assert_array_equal(among_best(comparison, tops=2), [True, True, False, False, False])


@pytest.mark.parametrize("tops", [1, 2])
def test_top_marks_equal_those_of_an_independent_computation(tops):
    """Ranks, Friedman and Nemenyi anew, with scipy's studentized range."""
    from scipy.stats import studentized_range

    for seed in range(20):
        generator = np.random.default_rng(seed)
        n, k = int(generator.integers(5, 40)), int(generator.integers(3, 9))
        scores = generator.random((n, k)) + generator.random(k)
        mean_ranks = rankdata(-scores, axis=1).mean(0)
        q = np.abs(mean_ranks[:, None] - mean_ranks) / math.sqrt(k * (k + 1) / (12 * n))
        differs = studentized_range.sf(q, k, np.inf) < 0.05
        best = np.argsort(mean_ranks, kind="stable")[:tops].tolist()
        expected = {m for m in range(k) if not any(differs[m, b] for b in best)} | set(best)
        comparison = compare_ranks(scores, higher_is_better=True)
        np.testing.assert_allclose(comparison.p_values[0, 1:], studentized_range.sf(q[0, 1:], k, np.inf), atol=1e-12)
        assert set(np.flatnonzero(among_best(comparison, tops=tops)).tolist()) == expected


def test_nobody_is_top_without_a_test():
    for tops in (1, 2):
        assert not among_best(compare_ranks(np.ones((4, 3)), higher_is_better=True), tops=tops).any()
