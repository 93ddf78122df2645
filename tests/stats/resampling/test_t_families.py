"""Intervals of several statistics that hold together, by Student's t."""

import numpy as np
import pytest
from scipy import stats

from heatcheck.stats.resampling.studentised import linearised_ratios, t_intervals
from heatcheck.stats.resampling.t_families import UnanimousGroup, simultaneous_t, unanimous_interval, unanimous_p


def family(values):
    return linearised_ratios(values, np.ones(values.shape))


def together(values, draws=999, seed=0):
    return simultaneous_t(family(values), draws, np.random.default_rng(seed))


def test_one_statistic_has_students_own_interval():
    values = np.random.default_rng(1).normal(1, 1, (20, 1))
    (one,), (alone,) = together(values, 20_000).intervals, t_intervals(family(values))
    assert (one.low, one.high) == pytest.approx((alone.low, alone.high), abs=0.01)


def test_columns_that_are_alike_cost_nothing_and_others_cost_what_sidak_says():
    values = np.random.default_rng(2).normal(0, 1, (4000, 1))
    alike = together(np.hstack([values] * 5), 20_000).intervals[0]
    apart = np.random.default_rng(3).normal(0, 1, (4000, 5))
    other = together(apart, 20_000).intervals[0]
    assert (alike.high - alike.value) / family(values).errors[0] == pytest.approx(1.96, abs=0.04)
    sidak = stats.norm.ppf(0.5 + 0.5 * 0.95 ** (1 / 5))
    assert (other.high - other.value) / family(apart).errors[0] == pytest.approx(sidak, abs=0.06)


@pytest.mark.parametrize("draws", [100, 200, 999, 2000])
def test_an_interval_excludes_0_exactly_where_its_corrected_p_is_small(draws):
    for seed in range(40):
        values = np.random.default_rng(seed).normal(0.5, 1, (15, 4))
        result = together(values, draws, seed)
        for interval, p in zip(result.intervals, result.p_adjusted, strict=True):
            assert (interval.low > 0 or interval.high < 0) == (p < 0.05)


def test_a_column_that_two_patients_decide_does_not_spoil_the_others():
    """Draws without these two have no spread: a bootstrap by its own error would have no limits at all."""
    sparse = np.zeros((30, 1))
    sparse[:2] = 1
    values = np.hstack([sparse, np.random.default_rng(4).normal(1, 0.1, (30, 1))])
    rare, usual = together(values).intervals
    assert rare.low < 0 < rare.high < 0.3
    assert 0.9 < usual.low < usual.high < 1.1


def test_few_patients_and_columns_without_spread_have_none():
    assert {each.reason for each in together(np.eye(5)).intervals} == {"fewer than 6 patients"}
    same = together(np.ones((9, 2)))
    assert {each.reason for each in same.intervals} == {"every draw gives the same value"}
    assert np.isnan(same.p_adjusted).all()


def test_unanimous_patients_have_clopper_and_pearsons_limit():
    one = unanimous_interval([UnanimousGroup(1.0, 20)], (0.0, 1.0))
    expected = stats.binomtest(20, 20).proportion_ci().low
    assert (one.low, one.high) == (pytest.approx(expected), 1)


def test_who_differs_is_taken_to_be_where_it_matters_most():
    """Two groups that weigh the same: those who differ hide among the fewer patients."""
    small, large = UnanimousGroup(0.0, 4, 0.5), UnanimousGroup(0.0, 100, 0.5)
    both = unanimous_interval([small, large], (-1.0, 1.0)).high
    shares = np.linspace(0, 0.7, 20_001)  # of the small group
    rest = 1 - (0.025 / (1 - shares) ** 4) ** (1 / 100)
    reachable = (0.5 * shares + 0.5 * np.maximum(rest, 0))[(1 - shares) ** 4 >= 0.025]
    assert both == pytest.approx(reachable.max(), abs=1e-3)


@pytest.mark.parametrize(("value", "patients"), [(1.0, 6), (0.4, 24), (-0.7, 12)])
def test_unanimous_p_is_where_the_interval_reaches_0(value, patients):
    p = unanimous_p(value, patients, (-1.0, 1.0))
    interval = unanimous_interval([UnanimousGroup(value, patients)], (-1.0, 1.0), 1 - p)
    assert min(abs(interval.low), abs(interval.high)) == pytest.approx(0, abs=1e-6)
