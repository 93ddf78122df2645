"""Clustered AUROC against scikit-learn, against Obuchowski's sums over all pairs, and at perfect separation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.auroc import FEW_NEGATIVE, FEW_OF_A_KIND, FEW_POSITIVE, auroc_difference, clustered_auroc


def cohort(seed, patients=25, levels=12):
    """Patients with 1 to 4 cases, some of both classes, and many ties."""
    generator = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), generator.integers(1, 5, patients))
    labels = (generator.random(len(patient)) < generator.beta(1, 1, patients)[patient]).astype(float)
    labels[:2], labels[-2:] = 1, 0
    labels[patient == 0], labels[patient == 1] = 1, 0
    labels[patient == 2], labels[patient == 3] = 1, 0
    rated = generator.integers(0, levels, len(patient)) + 3 * labels + generator.integers(0, 4, patients)[patient]
    return labels, rated / 20, patient


def obuchowskis(labels, probabilities, patients):
    """Value, error and degrees of freedom from all pairs, as printed in the paper."""
    positive, negative = labels == 1, labels == 0
    wins = (probabilities[positive, None] > probabilities[negative]) + 0.5 * (
        probabilities[positive, None] == probabilities[negative]
    )
    value, (m, n) = wins.mean(), wins.shape
    everyone = np.unique(patients)
    x = np.array([np.sum(wins.mean(1)[patients[positive] == each] - value) for each in everyone])
    y = np.array([np.sum(wins.mean(0)[patients[negative] == each] - value) for each in everyone])
    i10, i01, i = len(np.unique(patients[positive])), len(np.unique(patients[negative])), len(everyone)
    s10, s01 = i10 / ((i10 - 1) * m) * np.sum(x**2), i01 / ((i01 - 1) * n) * np.sum(y**2)
    s11 = i / (i - 1) * np.sum(x * y)
    a, b = s10 / m, s01 / n
    return value, math.sqrt(a + b + 2 * s11 / (m * n)), (a + b) ** 2 / (a**2 / (i10 - 1) + b**2 / (i01 - 1))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_value_error_and_freedom_are_those_of_scikit_learn_and_of_all_pairs(seed):
    labels, probabilities, patients = cohort(seed)
    result = clustered_auroc(labels, probabilities, patients)
    value, error, freedom = obuchowskis(labels, probabilities, patients)
    assert result.interval.value == pytest.approx(roc_auc_score(labels, probabilities))
    assert (result.interval.value, result.error, result.freedom) == pytest.approx((value, error, freedom))
    assert result.influences.sum() == pytest.approx(0, abs=1e-12)
    assert 0 <= result.interval.low < value < result.interval.high <= 1


def test_an_influence_is_how_much_the_value_changes_with_the_weight_of_a_patient():
    labels, probabilities, patients = cohort(3)
    result = clustered_auroc(labels, probabilities, patients)
    for patient in range(25):
        weights = np.where(patients == patient, 1 + 1e-6, 1)
        moved = roc_auc_score(labels, probabilities, sample_weight=weights) - result.interval.value
        assert result.influences[patient] == pytest.approx(moved / 1e-6, abs=1e-5)


def test_one_case_per_patient_has_delongs_error_by_hand():
    """Positives win 1, 1/2 and 1 of two negatives, which win 1 and 2/3: variances 1/12 and 1/18 over 3 and 2."""
    labels, probabilities = np.array([1.0, 1, 1, 0, 0]), np.array([0.9, 0.4, 0.8, 0.3, 0.5])
    result = clustered_auroc(labels, probabilities, np.array(["e", "d", "c", "b", "a"]))
    assert result.interval.value == pytest.approx(5 / 6)
    assert result.error == pytest.approx(math.sqrt(1 / 36 + 1 / 36))
    assert result.freedom == pytest.approx(4 / (1 / 2 + 1))
    assert result.influences == pytest.approx([-1 / 12, 1 / 12, 1 / 18, -1 / 9, 1 / 18])  # from a to e


def test_perfect_separation_reaches_down_to_where_hanley_and_mcneils_error_is_too_small():
    labels, probabilities = np.repeat([1.0, 0], [8, 30]), np.repeat([0.9, 0.1], [8, 30])
    result = clustered_auroc(labels, probabilities, np.arange(38))

    def excess(x):
        q1, q2 = x / (2 - x), 2 * x**2 / (1 + x)
        larger = max(q1, q2) - x**2
        alone = x * (1 - x) - (q1 - x**2) - (q2 - x**2)
        degrees = (1 / 8 + 1 / 30) ** 2 / (1 / 8**2 / 10 + 1 / 30**2 / 32)
        return 1 - x - student.ppf(0.975, degrees) * math.sqrt(larger * (1 / 8 + 1 / 30) + alone / 240)

    assert (result.interval.value, result.interval.high, result.error) == (1, 1, 0)
    assert result.interval.low == pytest.approx(brentq(excess, 0.1, 0.99))
    assert 0.6 < result.interval.low < 0.8


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_exchanging_the_classes_turns_nothing_around(seed):
    labels, probabilities, patients = cohort(seed)
    result = clustered_auroc(labels, probabilities, patients).interval
    exchanged = clustered_auroc(1 - labels, 1 - np.round(probabilities, 3), patients).interval
    mirrored = clustered_auroc(labels, -probabilities, patients).interval
    assert (exchanged.low, exchanged.high) == pytest.approx((result.low, result.high))
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - result.high, 1 - result.low))


def test_copies_of_a_case_add_nothing():
    labels, probabilities, patients = cohort(5)
    twice = clustered_auroc(*(np.repeat(each, 2) for each in (labels, probabilities, patients)))
    once = clustered_auroc(labels, probabilities, patients)
    limits = (once.interval.low, once.interval.high, once.error)
    assert (twice.interval.low, twice.interval.high, twice.error) == pytest.approx(limits)


def test_unknown_labels_take_no_part():
    labels, probabilities, patients = cohort(6)
    more = np.append(labels, np.nan), np.append(probabilities, np.nan), np.append(patients, 99)
    result, without = clustered_auroc(*more), clustered_auroc(labels, probabilities, patients)
    assert result.interval == without.interval
    assert (result.influences[-1], result.takes_part[-1], result.takes_part[:-1].all()) == (0, False, True)


@pytest.mark.parametrize(
    ("labels", "patients", "reason", "value"),
    [
        ([1.0, 1, 0, 0], [0, 0, 1, 2], FEW_POSITIVE, 1.0),
        ([1.0, 1, 0, 0], [0, 1, 2, 2], FEW_NEGATIVE, 1.0),
        ([1.0, 1, 1, 1], [0, 1, 2, 3], FEW_NEGATIVE, math.nan),
        ([0.0, 0, 0, np.nan], [0, 1, 2, 3], FEW_POSITIVE, math.nan),
    ],
)
def test_fewer_than_two_patients_of_a_class_have_no_interval(labels, patients, reason, value):
    result = clustered_auroc(np.array(labels), np.array([0.9, 0.8, 0.2, 0.1]), np.array(patients))
    assert result.interval.reason == reason
    assert result.interval.value == pytest.approx(value, nan_ok=True)
    assert math.isnan(result.interval.low)


def test_two_patients_of_each_class_have_an_interval():
    result = clustered_auroc(np.array([1.0, 1, 0, 0]), np.array([0.9, 0.8, 0.2, 0.85]), np.arange(4))
    assert 0 < result.interval.low < 0.3
    assert result.interval.high > 0.9


def test_lists_that_do_not_fit_are_refused():
    for labels, rated, patients, sentence in (
        ([0.0, 1], [0.5], [0, 1], "same length"),
        ([0.0, 2], [0.5, 0.5], [0, 1], "labels must be 1"),
        ([0.0, 1], [0.5, np.nan], [0, 1], "no probability"),
    ):
        with pytest.raises(ValueError, match=sentence):
            clustered_auroc(np.array(labels), np.array(rated), np.array(patients))


def test_difference_of_two_aurocs_by_hand_and_its_error_as_delong_has_it():
    generator = np.random.default_rng(0)
    labels = (np.arange(60) < 25).astype(float)
    first, second = (labels * shift + generator.normal(size=60) for shift in (1.5, 0.8))
    found = auroc_difference(labels, first, second, np.arange(60))
    assert found.value == pytest.approx(
        clustered_auroc(labels, first, np.arange(60)).interval.value
        - clustered_auroc(labels, second, np.arange(60)).interval.value
    )
    wins = [(ratings[:25, None] > ratings[25:]).astype(float) for ratings in (first, second)]
    gained = wins[0] - wins[1]
    error = math.sqrt(gained.mean(1).var(ddof=1) / 25 + gained.mean(0).var(ddof=1) / 35)  # DeLong 1988
    parts = np.array([gained.mean(1).var(ddof=1) / 25, gained.mean(0).var(ddof=1) / 35])
    reach = student.ppf(0.975, parts.sum() ** 2 / np.sum(parts**2 / [24, 34])) * error
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach))


def test_difference_of_two_aurocs_needs_patients_of_both_kinds_and_ratings_that_differ():
    labels, ratings = (np.arange(20) < 5).astype(float), np.random.default_rng(1).random(20)
    assert auroc_difference(labels, ratings, -ratings, np.arange(20)).reason == FEW_OF_A_KIND
    labels[:8] = 1
    assert auroc_difference(labels, ratings, 2 * ratings, np.arange(20)).reason == ONE_VALUE
    assert auroc_difference(np.ones(20), ratings, -ratings, np.arange(20)).reason == FEW_NEGATIVE
