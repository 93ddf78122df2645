"""Slopes by hand, against statsmodels, and what they do where nothing can be said."""

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.stats.regression_material import columns_of, rows_of

from heatcheck.stats.regression import (
    FEW_CASES,
    FEW_PATIENTS,
    ONE_LINE,
    SAME_FEATURE,
    SAME_SCORE,
    Observations,
    clustered_least_squares,
    least_squares,
    min_max,
)


def test_a_plain_slope_by_hand():
    # means 2 and 4; Σxy = 8 and Σx² = 10 about them, so the slope is 0.8; residuals 0.6, −1.2, 0, 1.2, −0.6
    fit = least_squares(np.array([0.0, 1, 2, 3, 4]), np.array([3.0, 2, 4, 6, 5]))
    error = math.sqrt(2 * (0.6**2 + 1.2**2) / 3 / 10)
    assert fit.value == pytest.approx(0.8)
    assert fit.high - fit.value == pytest.approx(3.182446 * error, rel=1e-6)  # the t table's value for 3 and 97.5 %
    assert (fit.n_cases, fit.n_undefined, fit.reason) == (5, 0, "")


def test_plain_slopes_are_those_of_statsmodels():
    rows = rows_of(np.random.default_rng(1))
    fit = least_squares(rows.feature, rows.scores)
    judge = sm.OLS(rows.scores, sm.add_constant(rows.feature)).fit()
    assert [fit.value, fit.p_value] == pytest.approx([judge.params[1], judge.pvalues[1]], rel=1e-9)
    assert [fit.low, fit.high] == pytest.approx(judge.conf_int()[1], rel=1e-9)


def test_clustered_slopes_are_those_of_statsmodels():
    rows = rows_of(np.random.default_rng(2))
    fit = clustered_least_squares(rows)
    clustering = {"cov_type": "cluster", "cov_kwds": {"groups": rows.patients}, "use_t": True}
    judge = sm.OLS(rows.scores, columns_of(rows)).fit(**clustering)
    assert [fit.value, fit.p_value] == pytest.approx([judge.params[0], judge.pvalues[0]], rel=1e-9)
    assert [fit.low, fit.high] == pytest.approx(judge.conf_int()[0], rel=1e-9)
    assert fit.n_patients == 60


def test_a_finding_that_is_large_and_easy_does_not_pass_for_an_effect_of_size():
    generator = np.random.default_rng(3)
    group = np.repeat([0, 1], 200)
    size = group + 0.1 * generator.random(400)
    scores = group - 0.5 * (size - group) + 0.01 * generator.normal(size=400)
    rows = Observations(size, scores, group, np.arange(400) // 2)
    assert least_squares(size, scores).low > 0.9
    assert clustered_least_squares(rows).high < 0


def test_patients_seen_often_make_the_interval_wider():
    rows = rows_of(np.random.default_rng(4), patients=40, groups=1)
    thrice = Observations(*(np.repeat(a, 3) for a in (rows.feature, rows.scores, rows.groups, rows.patients)))
    alone = replace(thrice, patients=np.arange(len(thrice.scores)))
    width = [fit.high - fit.low for fit in map(clustered_least_squares, (rows, thrice, alone))]
    assert width[1] == pytest.approx(width[0], rel=0.02)
    assert width[2] < 0.8 * width[0]


def test_undefined_rows_are_left_out_and_counted():
    rows = rows_of(np.random.default_rng(5))
    holes = replace(rows, scores=np.where(np.arange(len(rows.scores)) % 5 == 0, np.nan, rows.scores))
    fit = clustered_least_squares(holes)
    kept = clustered_least_squares(rows.only(~np.isnan(holes.scores)))
    assert (fit.value, fit.low, fit.n_cases) == (kept.value, kept.low, kept.n_cases)
    assert fit.n_undefined == len(rows.scores) - fit.n_cases
    assert least_squares(holes.feature, holes.scores).n_undefined == fit.n_undefined


def test_what_cannot_be_fitted_says_why():
    rows = rows_of(np.random.default_rng(6))
    flat = np.full(len(rows.scores), 0.5)
    assert least_squares(np.array([0.0, 1]), np.array([1.0, 2])).reason == FEW_CASES
    assert least_squares(flat, rows.scores).reason == SAME_FEATURE
    assert least_squares(rows.feature, flat).reason == SAME_SCORE
    assert clustered_least_squares(replace(rows, patients=rows.patients % 9)).reason == FEW_PATIENTS
    assert clustered_least_squares(replace(rows, feature=0.1 * rows.groups)).reason == SAME_FEATURE
    assert clustered_least_squares(replace(rows, scores=0.1 * rows.groups)).reason == SAME_SCORE
    one_group_per_row = replace(rows, groups=np.arange(len(rows.scores)))
    assert clustered_least_squares(one_group_per_row).reason == SAME_FEATURE
    line = least_squares(rows.feature, 2 * rows.feature + 1)
    assert (line.value, line.reason) == (pytest.approx(2), ONE_LINE)
    assert math.isnan(line.p_value)


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="finite"):
        least_squares(np.array([0.0, 1, np.inf]), np.zeros(3))


def test_min_max_by_hand():
    assert min_max(np.array([2.0, np.nan, 4, 3])).tolist() == pytest.approx([0, np.nan, 1, 0.5], nan_ok=True)
    assert np.isnan(min_max(np.array([2.0, 2]))).all()
    assert np.isnan(min_max(np.array([np.nan]))).all()


FINITE = st.one_of(st.floats(-1e6, 1e6), st.just(math.nan), st.sampled_from([0.0, 1.0]))


@settings(max_examples=100, deadline=None)
@given(arrays(float, st.tuples(st.just(2), st.integers(0, 40)), elements=FINITE), st.integers(1, 3))
def test_every_input_gives_a_number_or_a_reason(numbers, groups):
    feature, scores = numbers
    rows = np.arange(len(feature))
    for fit in (
        least_squares(feature, scores),
        clustered_least_squares(Observations(feature, scores, rows % groups, rows // 2)),
    ):
        assert fit.n_cases + fit.n_undefined == len(rows)
        assert math.isnan(fit.p_value) == bool(fit.reason)
        if not fit.reason:
            assert fit.low <= fit.value <= fit.high
            assert 0 <= fit.p_value <= 1
