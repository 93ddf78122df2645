"""Means over seeds of statistics that patients make up: what seeds add to an interval."""

import math

import numpy as np
import pytest
from scipy import stats

from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.over_seeds import SeedFigure, figure_interval, macro_interval, widened
from heatcheck.stats.resampling.studentised import linearised_ratios, t_intervals


def figure(by_seed, generator=None, reach=0.1):
    """A figure with these values by seed, and patients who differ where a generator draws them."""
    noise = generator.normal(0, 0.1, 20) if generator else np.zeros(20)
    by_seed = np.array(by_seed)
    mean = linearised_ratios((by_seed.mean() + noise - noise.mean())[:, None], np.ones((20, 1)))
    value = float(by_seed.mean())
    return SeedFigure(by_seed, mean, Interval(value, value - reach, value + reach))


def test_one_seed_adds_nothing_and_two_add_their_reach_as_squares():
    one = figure([0.7])
    assert figure_interval(one, [one], (0.0, 1.0)) == pytest.approx(one.interval)
    two = figure([0.68, 0.72])  # the error of their mean is 0.02
    found = figure_interval(two, [two], (-math.inf, math.inf))
    reach = math.hypot(0.1, stats.t.ppf(0.975, 1) * 0.02)
    assert (found.low, found.high) == pytest.approx((0.7 - reach, 0.7 + reach))


def test_networks_trained_alike_lend_their_variance():
    every = [figure([0.68, 0.72]), figure([0.6, 0.64]), figure([0.5, 0.54])]
    alone, lent = (figure_interval(every[0], alike, (0.0, 1.0)) for alike in (every[:1], every))
    assert lent.high - lent.low < alone.high - alone.low
    reach = math.hypot(0.1, stats.t.ppf(0.975, 1 + 2) * 0.02)  # two others, with one degree of freedom each
    assert lent.high == pytest.approx(0.7 + reach)


def test_the_mean_over_findings_allows_for_patients_and_for_seeds_that_err_together():
    generator = np.random.default_rng(1)
    figures = [figure([0.6, 0.64], generator), figure([0.7, 0.78], generator)]
    found = macro_interval(figures, [[each] for each in figures], (0.0, 1.0))
    assert found.value == pytest.approx(0.68)
    of_seeds = stats.t.ppf(0.975, 1) * (0.02 + 0.04) / 2
    assert found.value - found.low > of_seeds
    certain = [SeedFigure(each.by_seed[:1], each.mean, each.interval) for each in figures]
    alone = macro_interval(certain, [[each] for each in certain], (0.0, 1.0))
    assert math.hypot(alone.value - alone.low, of_seeds) == pytest.approx(found.value - found.low)
    assert alone.value - alone.low < t_intervals(figures[0].mean)[0].value - t_intervals(figures[0].mean)[0].low


def test_patients_who_all_agree_leave_the_findings_own_limits_and_one_finding_its_own_interval():
    figures = [figure([0.6], reach=0.1), figure([0.8], reach=0.2)]
    found = macro_interval(figures, [[each] for each in figures], (0.0, 1.0))
    assert (found.value, found.low, found.high) == pytest.approx((0.7, 0.55, 0.85))
    assert macro_interval(figures[:1], [figures[:1]], (0.0, 1.0)) == pytest.approx(figures[0].interval)


def test_limits_stay_within_possible_values_and_a_missing_one_stays_missing():
    assert widened(Interval(0.9, 0.8, 0.95), 0.3, (0.0, 1.0)).high == 1.0
    assert math.isnan(widened(Interval(0.9, reason="one patient"), 0.3, (0.0, 1.0)).low)
