"""How often an interval that should hold the truth 95 times of 100 does, when patients have several images."""

from collections.abc import Callable

import numpy as np
import pytest

from heatcheck.stats.gee import logistic_gee
from heatcheck.stats.regression import Observations, clustered_least_squares, least_squares
from heatcheck.stats.resampling.bootstrap import mean_estimates

pytestmark = pytest.mark.slow
REPETITIONS, DRAWS, PATIENTS = 400, 300, 60


def ious(patients, generator):
    """Overlaps: some patients are easy, some hard, and two images of one are much alike; their mean is 0.4."""
    ease = generator.beta(2, 3, PATIENTS)[patients]
    return ease + generator.normal(0, 0.1, len(patients))


def hits(patients, generator):
    """Hits: each patient has a chance of its own, mostly near 0 or 1; the mean chance is 0.4."""
    chance = generator.beta(0.4, 0.6, PATIENTS)[patients]
    return (generator.random(len(patients)) < chance).astype(float)


def coverage(scores: Callable, clusters_of: Callable) -> float:
    """The share of made-up data sets whose interval holds the true mean of 0.4."""
    held = 0
    for number in range(REPETITIONS):
        generator = np.random.default_rng(number)
        patients = np.repeat(np.arange(PATIENTS), generator.integers(1, 5, PATIENTS))
        values = scores(patients, generator)[:, None]
        (one,) = mean_estimates(values, clusters_of(patients), DRAWS, generator)
        held += one.low <= 0.4 <= one.high
    return held / REPETITIONS


@pytest.mark.parametrize("scores", [ious, hits])
def test_intervals_by_patient_hold_the_truth_as_often_as_they_say(scores):
    assert 0.90 <= coverage(scores, lambda patients: patients) <= 0.98


@pytest.mark.parametrize("scores", [ious, hits])
def test_intervals_by_image_do_not_because_two_images_of_a_patient_are_alike(scores):
    assert coverage(scores, lambda patients: np.arange(len(patients))) < 0.90


def slopes_that_hold_nothing(scores: Callable, fit: Callable) -> float:
    """The share of intervals around a slope that hold 0, when a patient's images share a feature that has no effect."""
    held = 0
    for number in range(REPETITIONS):
        generator = np.random.default_rng(number)
        patients = np.repeat(np.arange(PATIENTS), generator.integers(1, 5, PATIENTS))
        feature = generator.random(PATIENTS)[patients]
        rows = Observations(feature, scores(patients, generator), generator.integers(0, 3, len(patients)), patients)
        one = fit(rows)
        held += one.low <= 0 <= one.high
    return held / REPETITIONS


def test_slopes_by_patient_find_nothing_where_there_is_nothing_as_often_as_they_say():
    assert 0.90 <= slopes_that_hold_nothing(ious, clustered_least_squares) <= 0.98
    assert 0.90 <= slopes_that_hold_nothing(hits, logistic_gee) <= 0.98


def test_plain_slopes_find_effects_that_are_not_there():
    assert slopes_that_hold_nothing(ious, lambda rows: least_squares(rows.feature, rows.scores)) < 0.85
