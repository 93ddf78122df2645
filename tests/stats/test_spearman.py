"""Rank correlations against scipy and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from heatcheck.stats.regression import SAME_FEATURE, SAME_SCORE
from heatcheck.stats.spearman import FEW_CASES, PERFECT, ranks, spearman


def test_by_hand():
    # rank differences 1, 1, 1, 1, 0: r = 1 − 6 · 4 / (5 · 24) = 0.8
    fit = spearman(np.array([1.0, 2, 3, 4, 5]), np.array([20.0, 10, 40, 30, 50]))
    assert fit.value == pytest.approx(0.8)
    assert fit.low == pytest.approx(math.tanh(math.atanh(0.8) - 1.96 / math.sqrt(2)))
    assert fit.high == pytest.approx(math.tanh(math.atanh(0.8) + 1.96 / math.sqrt(2)))


@settings(max_examples=100, deadline=None)
@given(arrays(float, st.tuples(st.just(2), st.integers(4, 30)), elements=st.integers(0, 6)))
def test_scipy_agrees_on_ranks_and_correlation(numbers):
    feature, scores = numbers
    assert ranks(feature).tolist() == stats.rankdata(feature).tolist()
    fit = spearman(feature, scores)
    if fit.reason in (SAME_FEATURE, SAME_SCORE):
        assert len(set(feature)) == 1 or len(set(scores)) == 1
        return
    judge = stats.spearmanr(feature, scores)
    assert fit.value == pytest.approx(judge.statistic, abs=1e-12)
    if not fit.reason:
        assert fit.p_value == pytest.approx(judge.pvalue, rel=1e-6, abs=1e-12)
        assert fit.low <= fit.value <= fit.high


def test_what_has_no_interval_says_why():
    steps = np.arange(6.0)
    assert spearman(steps[:3], steps[:3]).reason == FEW_CASES
    perfect = spearman(steps, -steps)
    assert (perfect.value, perfect.reason) == (-1, PERFECT)
    assert math.isnan(perfect.low)
    assert math.isnan(perfect.p_value)
    assert spearman(np.ones(6), steps).reason == SAME_FEATURE
    assert spearman(steps, np.ones(6)).reason == SAME_SCORE
    assert spearman(np.array([]), np.array([])).reason == FEW_CASES


def test_undefined_rows_are_left_out_and_counted():
    fit = spearman(np.array([1.0, np.nan, 2, 3, 4, 5]), np.array([20.0, 7, 10, 40, 30, 50]))
    assert (fit.value, fit.n_cases, fit.n_undefined) == (pytest.approx(0.8), 5, 1)
