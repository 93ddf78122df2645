"""Means of scores whose weights are estimated from the same patients."""

import math

import numpy as np
import pytest

from heatcheck.stats.resampling.clusters import resampled_weights
from heatcheck.stats.resampling.studentised import studentised_draws
from heatcheck.stats.resampling.uncertain_weights import (
    DrawnWeights,
    PartSums,
    as_deviations,
    drawn_interval,
    drawn_mean,
    simultaneous_drawn,
)

DRAWS = 999


def fixed(patients, parts=1, seed=0):
    """Weights that are 1 in every draw."""
    (times,) = resampled_weights(patients, DRAWS, np.random.default_rng(seed))
    return DrawnWeights(np.ones((1, parts)), np.ones((DRAWS, 1, parts)), times, np.zeros(patients, int))


def sums(values):
    return PartSums(values.reshape(len(values), -1), np.ones(len(values)))


def test_weights_that_never_change_give_the_studentised_interval_of_a_mean():
    values = np.random.default_rng(1).exponential(1, 25)
    one = drawn_interval(drawn_mean(sums(values), fixed(25)))
    deviations = studentised_draws((values[:, None] - values.mean()) / 25, 20_000, np.random.default_rng(0))
    error = values.std(ddof=1) / 5
    low, high = values.mean() - np.quantile(deviations, (0.975, 0.025)) * error
    assert one.value == pytest.approx(values.mean())
    assert (one.low, one.high) == pytest.approx((low, high), abs=0.1)


def test_weights_that_may_be_either_give_an_interval_that_holds_both():
    """A draw that prefers the second part is as likely as not: its mean is 0.2, that of the first 0.8."""
    generator = np.random.default_rng(2)
    parts = np.column_stack([0.8 + generator.normal(0, 0.01, 20), 0.2 + generator.normal(0, 0.01, 20)])
    weights = fixed(20, 2)
    which = generator.random(DRAWS) < 0.5
    drawn = np.stack([which, ~which], 1)[:, None].astype(float)
    uncertain = DrawnWeights(np.array([[1.0, 0.0]]), drawn, weights.times, weights.networks)
    interval = drawn_interval(drawn_mean(sums(parts), uncertain))
    assert interval.value == pytest.approx(0.8, abs=0.02)
    assert interval.low == pytest.approx(0.2, abs=0.03)
    assert interval.high == pytest.approx(0.8, abs=0.03)
    certain = DrawnWeights(uncertain.weights, np.broadcast_to(uncertain.weights, drawn.shape), weights.times,
                           weights.networks)  # fmt: skip
    assert drawn_interval(drawn_mean(sums(parts), certain)).low > 0.75


@pytest.mark.parametrize(("cancel", "width"), [(True, 0.9), (False, 1.0)])
def test_errors_of_several_networks_cancel_only_where_they_may(cancel, width):
    """Each of two networks loses everything in half of the draws: both together in a quarter, at worst in half."""
    networks, generator = np.repeat([0, 1], 10), np.random.default_rng(3)
    times = np.ones((DRAWS, 20))
    drawn = (generator.random((DRAWS, 2, 1)) < 0.5).astype(float)
    weights = DrawnWeights(np.ones((2, 1)), drawn, times, networks, cancel=cancel)
    values = drawn_mean(sums(np.ones(20)), weights).values
    assert np.mean(np.isclose(values, 0)) == pytest.approx(0.25 if cancel else 0.5, abs=0.05)
    assert values.max() - values.min() >= width


def test_scores_that_are_known_move_by_what_a_draw_adds_to_the_weights():
    parts, scores = np.tile([0.5, 0.1], (8, 1)), np.full(8, 0.5)
    plain = fixed(8, 2)
    weights = DrawnWeights(np.array([[1.0, 0.0]]), np.tile([0.0, 1.0], (DRAWS, 1, 1)), plain.times, plain.networks)
    drawn = drawn_mean(sums(np.column_stack([scores, parts])), as_deviations(weights))
    assert drawn.value == 0.5
    np.testing.assert_allclose(drawn.values, 0.1)


def test_a_network_without_weights_takes_no_part():
    plain = fixed(12)
    weights = np.array([[1.0], [np.nan]])
    given = DrawnWeights(weights, np.broadcast_to(weights, (DRAWS, 2, 1)), plain.times, np.repeat([0, 1], 6))
    drawn = drawn_mean(sums(np.arange(12.0)), given)
    assert (drawn.value, drawn.n_patients, drawn.n_cases) == (2.5, 6, 6)


def test_few_patients_and_equal_values_have_no_interval():
    assert drawn_interval(drawn_mean(sums(np.arange(5.0)), fixed(5))).reason == "fewer than 6 patients"
    assert drawn_interval(drawn_mean(sums(np.ones(9)), fixed(9))).reason == "every draw gives the same value"
    nobody = PartSums(np.zeros((4, 1)), np.zeros(4))
    assert math.isnan(drawn_interval(drawn_mean(nobody, fixed(4))).value)


def test_a_family_is_wider_than_one_and_excludes_0_where_its_corrected_p_is_small():
    wider = 0
    for seed in range(20):
        values = np.random.default_rng(seed).normal(0.4, 1, (30, 6))
        each = [drawn_mean(sums(column), fixed(30, seed=seed)) for column in values.T]
        result = simultaneous_drawn(each)
        for drawn, interval, p in zip(each, result.intervals, result.p_adjusted, strict=True):
            assert (interval.low > 0 or interval.high < 0) == (p < 0.05)
            alone = drawn_interval(drawn)
            wider += interval.high - interval.low > alone.high - alone.low
    assert wider > 110
