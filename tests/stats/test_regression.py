"""Slopes by hand, against statsmodels, and what they do where nothing can be said."""

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t as student
from tests.stats.regression_material import columns_of, rows_of

from heatcheck.stats.regression import (
    FEW_CASES,
    FEW_PATIENTS,
    ONE_DECIDES,
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


def dense_precision(rows):
    """Error and degrees of freedom as Bell and McCaffrey print them, with matrices over all rows."""
    columns = columns_of(rows)
    inverse = np.linalg.inv(columns.T @ columns)
    maker = np.eye(len(columns)) - columns @ inverse @ columns.T
    residuals = maker @ rows.scores
    total, vectors = 0.0, []
    for patient in np.unique(rows.patients):
        own_rows = rows.patients == patient
        eigenvalues, directions = np.linalg.eigh(maker[np.ix_(own_rows, own_rows)])
        roots = np.where(eigenvalues > 1e-9, 1 / np.sqrt(np.maximum(eigenvalues, 1e-9)), 0)
        weights = directions @ np.diag(roots) @ directions.T @ columns[own_rows] @ inverse[:, 0]
        total += float(weights @ residuals[own_rows]) ** 2
        vectors.append(maker[:, own_rows] @ weights)
    products = np.array(vectors) @ np.array(vectors).T
    return math.sqrt(total), np.trace(products) ** 2 / np.sum(products**2)


@pytest.mark.parametrize(("patients", "groups", "most"), [(60, 4, 8), (12, 1, 4), (15, 9, 4), (20, 3, 1)])
def test_clustered_slopes_are_those_of_dense_matrices(patients, groups, most):
    rows = rows_of(np.random.default_rng(2), patients, groups, most=most)
    rows = replace(rows, feature=rows.feature**4, patients=3 * rows.patients, groups=2 * rows.groups)
    fit = clustered_least_squares(rows)
    error, freedom = dense_precision(rows)
    assert fit.value == pytest.approx(sm.OLS(rows.scores, columns_of(rows)).fit().params[0], rel=1e-9)
    assert fit.high - fit.value == pytest.approx(student.ppf(0.975, freedom) * error, rel=1e-7)
    assert fit.p_value == pytest.approx(2 * student.sf(abs(fit.value) / error, freedom), rel=1e-7)
    assert freedom < patients - 1
    assert fit.n_patients == patients


def test_with_one_row_per_patient_errors_are_those_of_statsmodels_for_unequal_variances():
    rows = rows_of(np.random.default_rng(12), patients=30, groups=3, most=1)
    fit = clustered_least_squares(rows)
    judge = sm.OLS(rows.scores, columns_of(rows)).fit(cov_type="HC2")
    _, freedom = dense_precision(rows)
    assert fit.high - fit.value == pytest.approx(student.ppf(0.975, freedom) * judge.bse[0], rel=1e-9)


def test_with_many_patients_errors_approach_the_plain_sandwich_of_statsmodels():
    rows = rows_of(np.random.default_rng(13), patients=1500)
    fit = clustered_least_squares(rows)
    judge = sm.OLS(rows.scores, columns_of(rows)).fit(cov_type="cluster", cov_kwds={"groups": rows.patients})
    assert fit.high - fit.value == pytest.approx(1.96 * judge.bse[0], rel=0.005)


def test_two_arms_of_patients_by_hand():
    """A feature of 0 and 1: the slope is the difference of two means, with error √(s₀²/n₀ + s₁²/n₁) as in Welch's test.

    Under equal variances B is diag(1/n(n − 1)) less its mean in each arm, so that the degrees of freedom are
    (1/n₀ + 1/n₁)² / (1/n₀²(n₀ − 1) + 1/n₁²(n₁ − 1)).
    """
    generator = np.random.default_rng(14)
    feature = np.repeat([0.0, 1], [4, 9])
    scores = generator.normal(size=13)
    fit = clustered_least_squares(Observations(feature, scores, np.zeros(13, int), np.arange(13)))
    error = math.sqrt(scores[:4].var(ddof=1) / 4 + scores[4:].var(ddof=1) / 9)
    freedom = (1 / 4 + 1 / 9) ** 2 / (1 / (16 * 3) + 1 / (81 * 8))
    assert fit.value == pytest.approx(scores[4:].mean() - scores[:4].mean())
    assert fit.high - fit.value == pytest.approx(student.ppf(0.975, freedom) * error)


def test_a_slope_that_one_patient_gives_alone_has_no_interval():
    generator = np.random.default_rng(15)
    feature = np.zeros(30)
    feature[:3] = 1, 2, 5
    fit = clustered_least_squares(
        Observations(feature, generator.normal(size=30), np.zeros(30, int), np.arange(30) // 3)
    )
    assert (fit.reason, math.isnan(fit.low)) == (ONE_DECIDES, True)
    assert math.isfinite(fit.value)


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
