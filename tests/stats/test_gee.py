"""Logistic slopes against statsmodels, by hand, and what they do where nothing can be said."""

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from tests.stats.regression_material import columns_of, rows_of

from heatcheck.stats.gee import FEW_HITS, SEPARATED, logistic_gee
from heatcheck.stats.regression import FEW_PATIENTS, ONE_LINE, SAME_FEATURE, SAME_SCORE, Observations


def judge_of(rows):
    structure = sm.cov_struct.Exchangeable()
    family = sm.families.Binomial()
    return sm.GEE(rows.scores, columns_of(rows), rows.patients, family=family, cov_struct=structure).fit(ctol=1e-12)


@pytest.mark.parametrize("shares", [False, True], ids=["hits", "shared hits"])
def test_slopes_and_errors_are_those_of_statsmodels(shares):
    rows = rows_of(np.random.default_rng(1), hits=True)
    if shares:
        rows = replace(rows, scores=np.where(np.arange(len(rows.scores)) % 6 == 0, 0.25, rows.scores))
    fit, judge = logistic_gee(rows), judge_of(rows)
    assert judge.cov_struct.dep_params > 0.05  # patients matter here
    assert fit.value == pytest.approx(judge.params[0], rel=1e-6)
    cases, patients, coefficients = len(rows.scores), 60, 5
    few = patients / (patients - 1) * (cases - 1) / (cases - coefficients)
    reach = stats.t.ppf(0.975, patients - 1) * judge.bse[0] * math.sqrt(few)
    assert [fit.low, fit.high] == pytest.approx([fit.value - reach, fit.value + reach], rel=1e-6)
    assert (fit.n_cases, fit.n_patients, fit.reason) == (cases, patients, "")


def test_the_log_odds_ratio_of_two_by_two_by_hand():
    # of 20 without the feature 5 hit, of 20 with it 15: odds 1/3 and 3
    feature = np.repeat([0.0, 1.0], 20)
    scores = np.concatenate([np.arange(20) < 5, np.arange(20) < 15]).astype(float)
    fit = logistic_gee(Observations(feature, scores, np.zeros(40, int), np.arange(40)))
    assert fit.value == pytest.approx(math.log(9))


@pytest.mark.parametrize(("hits", "few"), [(7, True), (8, False), (32, False), (33, True)])
def test_too_few_patients_with_a_hit_or_a_miss_have_no_slope(hits, few):
    """Noise on so few hits had a p-value below 0.002 in up to 6 % of fits."""
    scores = np.zeros(40)
    scores[np.random.default_rng(0).permutation(40)[:hits]] = 1.0
    fit = logistic_gee(Observations(np.arange(40.0), scores, np.zeros(40, int), np.arange(40)))
    assert (fit.reason == FEW_HITS) == few
    assert math.isnan(fit.p_value) == few


def test_the_unit_of_the_feature_is_the_callers():
    rows = rows_of(np.random.default_rng(2), hits=True)
    fit, other = logistic_gee(rows), logistic_gee(replace(rows, feature=1000 + 10 * rows.feature))
    assert other.value == pytest.approx(fit.value / 10, rel=1e-6)
    assert other.p_value == pytest.approx(fit.p_value, rel=1e-5)


def test_a_finding_that_all_hit_takes_no_part_and_is_named():
    rows = rows_of(np.random.default_rng(3), hits=True)
    sure = replace(rows, scores=np.where(rows.groups == 2, 1.0, rows.scores))
    fit, without = logistic_gee(sure), logistic_gee(rows.only(rows.groups != 2))
    assert (fit.value, fit.low, fit.n_cases) == (without.value, without.low, without.n_cases)
    assert fit.reason == "over 3 of 4 findings: in the others all hit or all miss"
    assert fit.n_undefined == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_separation_is_found_and_said(sign):
    rows = rows_of(np.random.default_rng(4), hits=True)
    split = replace(rows, scores=(sign * (rows.feature - 0.5) > 0).astype(float))
    assert logistic_gee(split).reason == SEPARATED
    by_group = replace(rows, scores=(sign * (rows.feature - 0.2 * rows.groups - 0.1) > 0).astype(float))
    assert logistic_gee(by_group).reason == SEPARATED
    row = np.flatnonzero(split.scores == 1)[0]
    scores = split.scores.copy()
    scores[row] = 0.5  # a shared hit among hits is a miss above the others
    assert logistic_gee(replace(split, scores=scores)).reason != SEPARATED


def test_what_cannot_be_fitted_says_why():
    rows = rows_of(np.random.default_rng(5), hits=True)
    assert logistic_gee(replace(rows, scores=np.ones(len(rows.scores)))).reason == SAME_SCORE
    assert logistic_gee(replace(rows, scores=np.full(len(rows.scores), 0.5))).reason == SAME_SCORE
    curve = replace(rows, scores=1 / (1 + np.exp(1 - 2 * rows.feature)))
    assert (logistic_gee(curve).value, logistic_gee(curve).reason) == (pytest.approx(2), ONE_LINE)
    assert logistic_gee(replace(rows, patients=rows.patients % 9)).reason == FEW_PATIENTS
    assert logistic_gee(replace(rows, feature=1.0 * rows.groups)).reason == SAME_FEATURE
    with pytest.raises(ValueError, match="between 0 and 1"):
        logistic_gee(replace(rows, scores=rows.scores * 2))


def test_patients_whose_rows_repel_each_other_still_have_an_interval():
    generator = np.random.default_rng(6)
    patients = np.repeat(np.arange(40), 6)
    scores = np.tile([0.0, 1.0], 120)  # three hits of six in every patient: as unlike as rows can be
    fit = logistic_gee(Observations(generator.random(240), scores, np.zeros(240, int), patients))
    assert fit.low < fit.value < fit.high


@settings(max_examples=100, deadline=None)
@given(
    arrays(float, st.integers(0, 60), elements=st.one_of(st.floats(0, 1), st.just(math.nan))),
    st.data(),
    st.integers(1, 3),
)
def test_every_input_gives_a_number_or_a_reason(feature, data, groups):
    hits = st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.5, math.nan])
    scores = data.draw(arrays(float, len(feature), elements=hits))
    rows = np.arange(len(feature))
    fit = logistic_gee(Observations(feature, scores, rows % groups, rows // 3))
    if math.isnan(fit.value):
        assert fit.reason
    else:
        assert fit.low <= fit.value <= fit.high
        assert 0 <= fit.p_value <= 1


def test_a_correlation_that_chases_the_slope_is_held():
    generator = np.random.default_rng(1057)
    count = generator.integers(20, 100)
    patients = np.sort(generator.integers(0, max(12, count // 2), count))
    feature, scores = generator.random(count), (generator.random(count) < 0.45).astype(float)
    fit = logistic_gee(Observations(feature, scores, np.zeros(count, int), patients))
    assert fit.low < fit.value < fit.high
    plain = logistic_gee(Observations(feature, scores, np.zeros(count, int), np.arange(count)))
    assert abs(fit.value - plain.value) < plain.high - plain.low
