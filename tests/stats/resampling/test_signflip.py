import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heatcheck.stats.resampling.signflip import _random_signs, sign_flip_test

FLIPS = 10_000


def generator(seed=0):
    return np.random.default_rng(seed)


def flipped(differences, clusters=None, flips=FLIPS, seed=0):
    differences = np.asarray(differences, dtype=float)
    clusters = np.arange(len(differences)) if clusters is None else np.asarray(clusters)
    return sign_flip_test(differences, clusters, flips, generator(seed))


def exact_p_value(totals):
    """By adding up the whole distribution of the sum of signed integers."""
    span = int(np.abs(totals).sum())
    chances = np.zeros(2 * span + 1)
    chances[span] = 1
    for total in totals:
        chances = (np.roll(chances, total) + np.roll(chances, -total)) / 2
    return chances[np.abs(np.arange(-span, span + 1)) >= abs(totals.sum())].sum()


def test_test_worked_by_hand():
    # of the 8 ways to sign 1, 2, 4 only +++ and --- reach 7
    result = flipped([1.0, 2.0, 4.0])
    assert result.p_value == 2 / 8
    assert result.exact
    assert (result.n_patients, result.n_undefined) == (3, 0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=7))
def test_few_patients_equal_counting_every_way_to_flip(differences):
    limit = abs(math.fsum(differences)) - 1e-12 * math.fsum(map(abs, differences))
    ways = itertools.product([-1, 1], repeat=len(differences))
    reached = [abs(sum(s * d for s, d in zip(way, differences, strict=True))) >= limit for way in ways]
    assert flipped(differences).p_value == pytest.approx(np.mean(reached))


def test_p_value_is_that_of_scipy_for_paired_samples():
    first, second = generator(1).random(9), generator(2).random(9)
    judge = stats.permutation_test(
        (first, second),
        lambda a, b, axis: np.sum(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert flipped(first - second).p_value == pytest.approx(judge.pvalue)


def test_random_flips_come_close_to_the_exact_p_value():
    totals = generator(3).integers(-9, 12, 40)
    expected = exact_p_value(totals)
    assert 0.05 < expected < 0.95
    result = flipped(totals)
    assert not result.exact
    assert result.p_value == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / FLIPS))


def test_exact_count_ends_where_the_flips_do_not_suffice():
    assert flipped(np.ones(13)).exact
    assert not flipped(np.ones(14)).exact


def test_p_value_of_random_flips_counts_the_data_as_one_more():
    assert flipped(np.ones(60)).p_value == 1 / (1 + FLIPS)
    assert flipped(np.ones(60), flips=20_000).p_value == 1 / 20_001


def test_images_of_one_patient_flip_together():
    result = flipped([1.0, 2.0, 4.0, 1.0], ["a", "a", "b", "c"])
    assert result.n_patients == 3
    assert result.p_value == 2 / 8


def test_direction_does_not_matter():
    differences = generator(4).normal(0.3, 1, 30)
    assert flipped(differences).p_value == pytest.approx(flipped(-differences).p_value)


@pytest.mark.parametrize("n", [5, 50])
def test_differences_that_are_all_zero_have_a_p_value_of_one(n):
    assert flipped(np.zeros(n)).p_value == 1


def test_undefined_differences_are_dropped_and_counted():
    result = flipped([1.0, np.nan, 2.0, np.nan, 4.0], ["a", "a", "b", "x", "c"])
    assert result == sign_flip_test(np.array([1.0, 2, 4]), np.arange(3), FLIPS, generator()).__class__(
        2 / 8, 3, 2, True
    )


def test_ties_survive_the_rounding_of_sums():
    # 0.1 + 0.2 - 0.3 is not quite 0: every way to flip must still count as reaching the observed sum
    result = flipped([0.1, 0.2, -0.3])
    assert result.p_value == 1


def test_no_patient_is_undefined_with_a_reason():
    for result in (flipped([]), flipped([np.nan, np.nan])):
        assert math.isnan(result.p_value)
        assert result.reason == "no patient"


def test_generator_alone_decides_the_flips():
    differences = generator(5).normal(0.2, 1, 40)
    assert flipped(differences, seed=1) == flipped(differences, seed=1)
    assert flipped(differences, seed=1) != flipped(differences, seed=2)


def test_true_null_gives_p_values_that_are_spread_evenly():
    p_values = [flipped(generator(seed).normal(size=12)).p_value for seed in range(200)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_too_few_flips_are_refused():
    with pytest.raises(ValueError, match="at least 10000 flips, got 999"):
        flipped([1.0, 2.0], flips=999)


def test_signs_come_in_blocks_that_fit_into_memory():
    blocks = [block.shape for block in _random_signs(3000, FLIPS, generator())]
    assert sum(rows for rows, _ in blocks) == FLIPS
    assert max(rows * columns for rows, columns in blocks) <= 2**20
