import math

import numpy as np
import pytest
from scipy import stats

from heatcheck.stats.resampling.bca import NO_VALUE, ONE_VALUE, bca


def test_unbiased_and_symmetric_replicates_give_the_plain_percentiles():
    replicates = np.linspace(-1, 1, 2001)
    interval = bca(0.0, replicates, np.array([-1.0, 1.0]), 0.9)
    assert (interval.low, interval.high) == pytest.approx((-0.9, 0.9))


def test_interval_of_a_known_bias_and_acceleration_worked_by_hand():
    replicates = np.arange(1.0, 1001)
    value = 600.0  # 599.5 of 1000 draws lie below
    jackknife = np.array([0.0, 0.0, 3.0])  # deviations 1, 1, -2: sum of cubes -6, of squares 6
    bias, acceleration = stats.norm.ppf(0.5995), -6 / (6 * 6**1.5)
    expected = []
    for tail in (0.025, 0.975):
        z = bias + stats.norm.ppf(tail)
        expected.append(np.quantile(replicates, stats.norm.cdf(bias + z / (1 - acceleration * z))))
    interval = bca(value, replicates, jackknife, 0.95)
    assert (interval.low, interval.high) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("seed", range(5))
def test_p_value_is_the_level_at_which_an_end_of_the_interval_is_0(seed):
    generator = np.random.default_rng(seed)
    replicates = generator.gamma(3, 1, 999) - generator.uniform(0.5, 6)
    value, jackknife = float(np.median(replicates)) + generator.normal(0, 0.1), generator.gamma(2, 1, 30)
    p = bca(value, replicates, jackknife, 0.95).p_at_zero
    assert 0.001 < p < 1
    at_p = bca(value, replicates, jackknife, 1 - p)
    assert min(abs(at_p.low), abs(at_p.high)) == pytest.approx(0, abs=1e-6)


def test_p_value_worked_by_hand():
    replicates = np.linspace(-1, 3, 401)  # 0 is the hundred and first of them, a quarter of the way
    even = np.array([-1.0, 1.0])
    assert bca(1.0, replicates, even, 0.9).p_at_zero == pytest.approx(0.5)
    assert bca(0.0, np.linspace(-1, 1, 401), even, 0.9).p_at_zero == pytest.approx(1)
    above = bca(2.0, np.linspace(1, 3, 401), even, 0.9)  # no draw at or below 0: half of one
    assert above.p_at_zero == pytest.approx(2 * 0.5 / 401)
    assert math.isnan(bca(2.0, np.full(401, 2.0), even, 0.9).p_at_zero)


def test_few_undefined_draws_are_left_out():
    replicates = np.linspace(-1, 1, 2001)
    with_gaps = np.concatenate([replicates, np.full(50, np.nan)])
    assert bca(0.0, with_gaps, np.array([-1.0, 1.0]), 0.9) == bca(0.0, replicates, np.array([-1.0, 1.0]), 0.9)


def test_more_undefined_draws_than_the_interval_leaves_out_mean_no_interval():
    replicates = np.concatenate([np.linspace(-1, 1, 949), np.full(51, np.nan)])
    interval = bca(0.0, replicates, np.array([-1.0, 1.0]), 0.95)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.value == 0
    assert interval.reason == "undefined in 51 of 1000 draws"
    assert not bca(0.0, replicates, np.array([-1.0, 1.0]), 0.9).reason


def test_undefined_value_has_no_interval():
    interval = bca(math.nan, np.linspace(0, 1, 10), np.array([0.0, 1.0]), 0.95)
    assert math.isnan(interval.value)
    assert math.isnan(interval.low)
    assert interval.reason == NO_VALUE


@pytest.mark.parametrize("wobble", [0.0, 3e-16])
def test_replicates_that_differ_by_rounding_at_most_are_no_ground_for_certainty(wobble):
    noise = 0.3 * (1 + np.random.default_rng(0).uniform(-wobble, wobble, 100))
    interval = bca(0.3, np.append(noise, np.nan), noise[:5], 0.95)
    assert interval.value == 0.3
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.reason == ONE_VALUE


def test_one_draw_that_differs_is_enough_for_an_interval():
    interval = bca(0.3, np.append(np.full(99, 0.3), 0.4), np.array([0.3, 0.31]), 0.95)
    assert interval.low <= 0.3 <= interval.high
    assert not interval.reason


@pytest.mark.parametrize("side", [-1, 1])
def test_draws_that_all_lie_on_one_side_still_give_an_ordered_interval(side):
    jackknife = np.zeros(1000)
    jackknife[0] = side * 9  # as skewed as can be
    interval = bca(0.0, side * np.linspace(1, 2, 10_000), jackknife, 0.9999)
    assert 1 <= side * interval.low <= 2
    assert interval.low <= interval.high
