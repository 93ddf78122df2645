import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score
from torchmetrics.functional.classification import binary_calibration_error

from heatcheck.metrics import classification
from heatcheck.metrics.classification import (
    accuracy,
    auroc,
    calibration_error_by_chance,
    expected_calibration_error,
    reliability_curve,
    weighted_auroc,
)
from heatcheck.metrics.undefined import NO_LABEL, NO_NEGATIVE, NO_POSITIVE


def cohort(seed, n=60, levels=8):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, n).astype(float)
    labels[:2] = 0, 1
    probabilities = np.clip(generator.integers(0, levels, n) / levels + labels * 0.1, 0, 1)
    return labels, probabilities, generator


def test_area_worked_by_hand_with_a_tie_that_counts_half():
    labels, probabilities = np.array([1.0, 1, 0, 0]), np.array([0.9, 0.4, 0.4, 0.1])
    assert auroc(labels, probabilities).value == 3.5 / 4


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_area_equals_that_of_scikit_learn(seed):
    labels, probabilities, _ = cohort(seed)
    assert auroc(labels, probabilities).value == pytest.approx(roc_auc_score(labels, probabilities))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_weighted_areas_equal_those_of_scikit_learn_draw_by_draw(seed):
    labels, probabilities, generator = cohort(seed)
    weights = generator.integers(0, 4, (2, 3, len(labels))).astype(float)
    weights[..., :2] = 1
    score = weighted_auroc(labels, probabilities, weights)
    assert score.shape == (2, 3)
    for index in np.ndindex(2, 3):
        expected = roc_auc_score(labels, probabilities, sample_weight=weights[index])
        assert score[index] == pytest.approx(expected)


def test_cases_with_unknown_labels_take_no_part():
    labels, probabilities, _ = cohort(1)
    more_labels = np.concatenate([[np.nan], labels, [np.nan]])
    more_probabilities = np.concatenate([[0.99], probabilities, [np.nan]])
    assert auroc(more_labels, more_probabilities) == auroc(labels, probabilities)
    weights = np.concatenate([[5.0], np.ones(len(labels)), [7.0]])
    assert weighted_auroc(more_labels, more_probabilities, weights) == auroc(labels, probabilities).value
    assert reliability_curve(more_labels, more_probabilities) == reliability_curve(labels, probabilities)


@pytest.mark.parametrize(
    ("labels", "reason"), [([1.0, 1.0], NO_NEGATIVE), ([0.0, np.nan], NO_POSITIVE), ([np.nan, np.nan], NO_LABEL)]
)
def test_area_with_a_class_missing_is_undefined_with_a_reason(labels, reason):
    score = auroc(np.array(labels), np.array([0.2, 0.3]))
    assert math.isnan(score.value)
    assert score.reason == reason
    assert np.isnan(weighted_auroc(np.array(labels), np.array([0.2, 0.3]), np.ones((3, 2)))).all()


def test_draw_without_one_class_is_undefined_and_the_others_are_not():
    labels, probabilities = np.array([1.0, 0.0]), np.array([0.7, 0.3])
    score = weighted_auroc(labels, probabilities, np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(score, [1, np.nan, np.nan])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 20))
def test_calibration_error_equals_that_of_torchmetrics(seed, bins):
    generator = np.random.default_rng(seed)
    probabilities, labels = generator.random(80), generator.integers(0, 2, 80)
    probabilities[0] = 1.0
    probabilities[1] = 0.0
    expected = binary_calibration_error(torch.from_numpy(probabilities), torch.from_numpy(labels), bins, "l1")
    score = expected_calibration_error(labels.astype(float), probabilities, bins)
    assert score.value == pytest.approx(float(expected), abs=1e-12)


def test_reliability_curve_worked_by_hand():
    first, second = reliability_curve(np.array([0.0, 1, 1]), np.array([0.1, 0.3, 0.8]), bins=2)
    assert (first.low, first.high, first.n, first.observed) == (0.0, 0.5, 2, 0.5)
    assert first.predicted == pytest.approx(0.2)
    assert (second.low, second.high, second.n, second.observed, second.predicted) == (0.5, 1.0, 1, 1.0, 0.8)


def test_empty_bins_are_left_out_and_certainty_has_its_own_bin():
    curve = reliability_curve(np.array([0.0, 1, 1]), np.array([0.05, 0.95, 1.0]), bins=10)
    assert [(b.low, b.high) for b in curve] == [(0.0, 0.1), (0.9, 1.0), (1.0, 1.0)]


def test_edge_belongs_to_the_upper_bin():
    (only,) = reliability_curve(np.array([1.0]), np.array([0.5]), bins=2)
    assert only.low == 0.5


def test_the_error_of_a_perfect_model_by_hand():
    """Two cases of 1/2: 0, 1 or 2 findings with chances 1/4, 1/2, 1/4, so a mean distance of 1/2; one of 1/4: 3/8."""
    labels, probabilities = np.array([0.0, 1, 0]), np.array([0.5, 0.5, 0.25])
    chance = calibration_error_by_chance(labels, probabilities, np.arange(3), bins=2)
    assert chance.mean == pytest.approx((1 / 2 + 3 / 8) / 3)
    assert chance.mean < chance.high < 1


@pytest.mark.parametrize("views", [1, 3])
def test_the_error_of_a_perfect_model_is_that_of_simulated_labels(views):
    """Labels drawn from the probabilities themselves; views of a patient have the same probability and label."""
    generator = np.random.default_rng(5)
    probabilities = np.repeat(generator.beta(0.7, 1.5, 60), views)
    patients = np.repeat(np.arange(60), views)
    drawn = [np.repeat(generator.random(60), views) < probabilities for _ in range(2000)]
    errors = [expected_calibration_error(labels.astype(float), probabilities).value for labels in drawn]
    chance = calibration_error_by_chance(drawn[0].astype(float), probabilities, patients)
    assert chance.mean == pytest.approx(np.mean(errors), rel=0.03)
    assert np.mean(np.array(errors) <= chance.high) == pytest.approx(0.95, abs=0.02)


def test_cases_of_a_patient_that_are_alike_leave_more_to_chance():
    generator = np.random.default_rng(6)
    probabilities, patients = np.repeat(generator.random(40), 3), np.repeat(np.arange(40), 3)
    labels = (np.repeat(generator.random(40), 3) < probabilities).astype(float)
    alike = calibration_error_by_chance(labels, probabilities, patients)
    apart = calibration_error_by_chance(labels, probabilities, np.arange(120))
    assert alike.mean > 1.4 * apart.mean
    assert alike.high > 1.4 * apart.high


def test_a_bin_of_many_cases_is_nearly_normal(monkeypatch):
    labels, probabilities = np.zeros(900), np.linspace(0.3, 0.33, 900)
    exact = calibration_error_by_chance(labels, probabilities, np.arange(900))
    monkeypatch.setattr(classification, "_MOST_EXACT", 100)
    assert calibration_error_by_chance(labels, probabilities, np.arange(900)).mean == pytest.approx(
        exact.mean, rel=1e-3
    )


def test_certainty_leaves_nothing_to_chance_and_no_label_is_undefined():
    certain = calibration_error_by_chance(np.array([0.0, 1]), np.array([0.0, 1]), np.arange(2))
    assert (certain.mean, certain.high) == (0, 0)
    assert math.isnan(calibration_error_by_chance(np.array([np.nan]), np.array([0.5]), np.arange(1)).mean)
    with pytest.raises(ValueError, match="not logits"):
        calibration_error_by_chance(np.array([0.0, 1]), np.array([-2.0, 3]), np.arange(2))


def test_calibration_without_known_labels_is_undefined():
    score = expected_calibration_error(np.array([np.nan]), np.array([0.5]))
    assert math.isnan(score.value)
    assert score.reason == NO_LABEL
    assert reliability_curve(np.array([np.nan]), np.array([0.5])) == ()


@pytest.mark.parametrize(
    ("labels", "probabilities", "sentence"),
    [
        ([0.0, 1.0], [0.5], "two lists of the same length"),
        ([0.0, 2.0], [0.5, 0.5], "labels must be 1"),
        ([0.0, -1.0], [0.5, 0.5], "labels must be 1"),
        ([0.0, 1.0], [0.5, np.nan], "has no probability"),
    ],
)
def test_lists_that_do_not_fit_are_refused(labels, probabilities, sentence):
    for score in (auroc, expected_calibration_error):
        with pytest.raises(ValueError, match=sentence):
            score(np.array(labels), np.array(probabilities))


def test_logits_are_refused_as_probabilities_of_a_curve():
    with pytest.raises(ValueError, match="not logits"):
        reliability_curve(np.array([0.0, 1.0]), np.array([-2.0, 3.0]))


def test_weights_of_another_length_are_refused():
    with pytest.raises(ValueError, match="one entry per case"):
        weighted_auroc(np.array([0.0, 1.0]), np.array([0.1, 0.2]), np.ones((4, 3)))


def test_accuracy_worked_by_hand():
    """Of the five cases the last three have no class, two, and an unknown one."""
    labels = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0], [1, math.nan, 0]])
    probabilities = np.array([[0.4, 0.4, 0.2], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1], [0.8, 0.1, 0.1]])
    assert accuracy(labels, probabilities).value == 0.5
    assert accuracy(labels[2:], probabilities[2:]).reason == NO_LABEL
    with pytest.raises(ValueError, match="two tables of the same shape"):
        accuracy(labels[:, 0], probabilities[:, 0])


@given(st.integers(0, 99))
def test_accuracy_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    classes, probabilities = rng.integers(0, 4, 20), rng.dirichlet(np.ones(4), 20)
    expected = accuracy_score(classes, probabilities.argmax(1))
    assert accuracy(np.eye(4)[classes], probabilities).value == pytest.approx(expected)
