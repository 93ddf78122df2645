"""Temperatures by hand, against a search by scipy, and where there is none."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit

from heatcheck.stats.temperature import NO_ERROR, ONE_CLASS, WRONG_WAY, calibrated_probabilities, fitted_temperature


def test_by_hand():
    # at logits ±2 three of four are right: the best probability is 3/4, so 2 / T = ln 3
    labels, logits = np.array([1.0, 1, 1, 0]), np.array([2.0, 2, 2, 2])
    both = np.append(labels, 1 - labels), np.append(logits, -logits)
    assert fitted_temperature(*both).value == pytest.approx(2 / math.log(3))


@pytest.mark.parametrize("true", [0.25, 1.0, 6.0])
def test_a_search_by_scipy_finds_the_same_and_the_truth_is_near(true):
    generator = np.random.default_rng(1)
    logits = generator.normal(0, 3, 4000)
    labels = (generator.random(4000) < expit(logits / true)).astype(float)
    signs = 2 * labels - 1
    judge = minimize_scalar(lambda b: -log_expit(signs * logits * np.exp(b)).sum(), (-1, 1), tol=1e-10)
    temperature = fitted_temperature(labels, logits).value
    assert temperature == pytest.approx(math.exp(-judge.x), rel=1e-5)
    assert temperature == pytest.approx(true, rel=0.15)


def test_unknown_labels_are_left_out():
    labels = np.array([1.0, 0, 1, np.nan, 0, np.nan])
    logits = np.array([2.0, -1, -1, 7, 1.5, np.nan])
    known = ~np.isnan(labels)
    assert fitted_temperature(labels, logits) == fitted_temperature(labels[known], logits[known])


def test_where_there_is_no_temperature_it_says_why():
    logits = np.array([2.0, 1, -1, -2])
    assert fitted_temperature(np.array([1.0, 1, 0, 0]), logits).reason == NO_ERROR
    assert fitted_temperature(np.array([0.0, 0, 1, 1]), logits).reason == WRONG_WAY
    assert fitted_temperature(np.ones(4), logits).reason == ONE_CLASS
    assert fitted_temperature(np.full(4, np.nan), logits).reason == ONE_CLASS
    assert fitted_temperature(np.array([1.0, 0]), np.zeros(2)).reason == WRONG_WAY
    with pytest.raises(ValueError, match="finite"):
        fitted_temperature(np.array([1.0, 0]), np.array([np.inf, 0]))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, math.nan]), st.floats(-40, 40)), max_size=30))
def test_no_other_temperature_is_better(cases):
    labels, logits = np.array(cases, float).reshape(-1, 2).T
    temperature = fitted_temperature(labels, logits)
    if math.isnan(temperature.value):
        assert temperature.reason
        return
    known = ~np.isnan(labels)
    margins = (2 * labels[known] - 1) * logits[known]
    likelihood = [log_expit(margins / (temperature.value * factor)).sum() for factor in (0.8, 1, 1.25)]
    assert temperature.value > 0
    assert likelihood[1] >= max(likelihood) - 1e-9 * abs(likelihood[1])


def test_a_temperature_moves_probabilities_but_never_across_one_half():
    logits = np.array([-3.0, -0.1, 0, 0.1, 3])
    cold, hot = calibrated_probabilities(logits, np.full(5, 0.1)), calibrated_probabilities(logits, np.full(5, 10.0))
    assert ((cold >= 0.5) == (hot >= 0.5)).all()
    assert cold[-1] > 0.999
    assert hot[-1] < 0.6
