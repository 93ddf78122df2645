"""Slopes of one family hold together; a feature's usual range is that of most of its values."""

import math

import numpy as np
import pytest
from scipy import stats

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import SLOPE
from heatcheck.estimating.slopes import ALL_POSSIBLE, Slope, corrected_slopes, usual_range
from heatcheck.stats.regression import Fit, least_squares


def test_intervals_hold_for_all_slopes_that_have_one():
    generator = np.random.default_rng(1)
    x = generator.random(30)
    fits = [least_squares(x, generator.normal(slope * x, 0.3)) for slope in (0, 1, 3)]
    rows = corrected_slopes([Slope(Estimate(SLOPE, "iou"), fit) for fit in (*fits, Fit(reason="too few"))], "these")
    for fit, row in zip(fits, rows, strict=False):
        reach = stats.t.ppf(1 - 0.025 / 3, 28) * fit.error
        assert (row.low, row.high) == pytest.approx((fit.value - reach, fit.value + reach))
        assert row.p_adjusted == pytest.approx(min(1, 3 * fit.p_value))
        assert (row.p_adjusted < 0.05) == (row.low > 0 or row.high < 0)
    assert rows[3].reason == "too few"
    assert {row.family for row in rows} == {"these"}


def test_an_interval_ends_where_no_change_is_possible_and_is_not_given_where_it_would_hold_all():
    cut = Fit(0.5, p_value=0.01, error=0.3, freedom=20)
    anything = Fit(0.1, p_value=0.9, error=0.9, freedom=1)  # one patient decides it
    narrow, none = corrected_slopes([Slope(Estimate(SLOPE, "iou"), fit, 1.0) for fit in (cut, anything)], "these")
    assert (narrow.low, narrow.high) == (pytest.approx(0.5 - stats.t.ppf(1 - 0.025 / 2, 20) * 0.3), 1)
    assert (none.value, none.reason) == (0.1, ALL_POSSIBLE)
    assert all(math.isnan(each) for each in (none.low, none.high, none.p_value, none.p_adjusted))
    steep = Slope(Estimate(SLOPE, "iou"), Fit(2.0, 1.5, 2.5, 0.01), 1.0).row  # of a feature that hardly varies
    assert (steep.low, steep.high) == (1.5, 2.0)


def test_usual_range_leaves_out_the_tenths_at_both_ends():
    assert usual_range(np.linspace(0, 1, 101)) == pytest.approx(0.8)
    assert usual_range(np.array([0.0] * 19 + [1.0, math.nan])) == 1  # hardly varies
    assert usual_range(np.array([math.nan])) == 1
