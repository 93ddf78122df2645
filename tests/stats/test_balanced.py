import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.balanced import ONE_IN_A_GROUP, Strata, balanced_means, balanced_values
from heatcheck.stats.resampling.bootstrap import mean_estimates


def estimated(values, strata, clusters=None, draws=200):
    values = np.asarray(values, float).reshape(len(values), -1)
    clusters = np.arange(len(values)) if clusters is None else clusters
    return balanced_means(values, strata, clusters, draws, np.random.default_rng(0))


def test_mean_worked_by_hand():
    """Fold 1: class a ½, class b 1, mean ¾; fold 2: a 0, b ¼, mean ⅛; over folds 7/16."""
    right = [1, 0, 1, 0, 1, 0, 0, 0]
    strata = Strata(np.array([1, 1, 1, 2, 2, 2, 2, 2]), np.array(list("aabab") + list("bbb")))
    (one,) = estimated(right, strata)
    assert one.value == pytest.approx((0.75 + 0.125) / 2)
    np.testing.assert_allclose(balanced_values(np.array(right, float)[:, None], strata), one.value)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=3, max_size=30))
def test_one_fold_gives_scikit_learns_balanced_accuracy(cases):
    classes, right = np.array([c for c, _ in cases]), np.array([r for _, r in cases])
    assume(len(set(classes)) > 1)
    others = np.unique(classes)
    wrong = others[(np.searchsorted(others, classes) + 1) % len(others)]
    expected = balanced_accuracy_score(classes, np.where(right, classes, wrong))
    strata = Strata(np.ones(len(right)), classes)
    assert estimated(right, strata, draws=2)[0].value == pytest.approx(expected)


def test_without_groups_it_is_the_plain_mean_with_its_interval():
    values = np.random.default_rng(1).random((30, 2))
    patients = np.repeat(np.arange(15), 2)
    balanced = estimated(values, Strata(np.ones(30)), patients, draws=500)
    plain = mean_estimates(values, patients, 500, np.random.default_rng(0))
    for one, other in zip(balanced, plain, strict=True):
        assert one.value == pytest.approx(other.value)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.02)
        assert (one.n_cases, one.n_patients, one.n_undefined) == (30, 15, 0)


def test_interval_covers_the_truth_as_often_as_it_says():
    """Accuracies 0.9 and 0.5 in classes of 45 and 15: balanced 0.7."""
    classes, covered = np.repeat([0, 1], [45, 15]), []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        right = (generator.random(60) < np.where(classes, 0.5, 0.9)).astype(float)
        (one,) = balanced_means(right[:, None], Strata(np.ones(60), classes), np.arange(60), 300, generator)
        covered.append(one.low <= 0.7 <= one.high)
    assert 0.89 <= np.mean(covered) <= 0.99


def test_small_classes_in_many_folds_have_an_interval_that_covers():
    """Three patients a class in each of five folds: a draw over all of them would nearly always miss a group."""
    folds, classes = np.repeat(np.arange(5), 6), np.tile([0, 0, 0, 1, 1, 1], 5)
    covered = []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        right = (generator.random(30) < np.where(classes, 0.5, 0.8)).astype(float)
        (one,) = balanced_means(right[:, None], Strata(folds, classes), np.arange(30), 200, generator)
        assert one.reason == ""
        covered.append(one.low <= 0.65 <= one.high)
    assert 0.89 <= np.mean(covered) <= 0.995


def test_draws_keep_every_patient_within_its_group():
    """All variation lies between folds and classes, so every draw gives the same value."""
    folds, classes = np.repeat([1, 2], 8), np.tile([0, 1], 8)
    (one,) = estimated(10.0 * folds + classes, Strata(folds, classes))
    assert one.value == pytest.approx(15.5)
    assert one.reason == ONE_VALUE


def test_cases_of_a_patient_are_drawn_together():
    """Ten patients of three like cases tell as much as ten cases."""
    right, classes = np.array([1.0, 0, 1, 1, 0, 1, 0, 1, 1, 1]), np.repeat([0, 1], 5)
    (single,) = estimated(right, Strata(np.ones(10), classes), draws=1000)
    (tripled,) = estimated(right.repeat(3), Strata(np.ones(30), classes.repeat(3)), np.arange(10).repeat(3), 1000)
    assert (tripled.low, tripled.high) == pytest.approx((single.low, single.high))
    assert (tripled.n_cases, tripled.n_patients) == (30, 10)


def test_patient_of_several_classes_is_drawn_with_those_of_the_first():
    classes, patients = np.array([0, 1, 0, 1, 0, 1, 0, 1]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    (one,) = estimated([1, 0, 0, 0, 1, 1, 1, 0], Strata(np.ones(8), classes), patients)
    assert one.value == pytest.approx(0.5)
    assert one.low < 0.5 < one.high


def test_group_of_one_patient_has_no_interval():
    strata = Strata(np.ones(6), np.array([0, 0, 0, 0, 0, 1]))
    (one,) = estimated([1, 0, 1, 0, 1, 1], strata)
    assert one.value == pytest.approx(0.8)
    assert math.isnan(one.low)
    assert one.reason == ONE_IN_A_GROUP


def test_fold_without_one_of_the_classes_has_no_balanced_value():
    strata = Strata(np.array([1, 1, 2, 2]), np.array(["LGG", "HGG", "LGG", "LGG"]))
    right = np.array([[1.0], [0], [1], [1]])
    assert np.isnan(balanced_values(right, strata)).all()
    (one,) = estimated(right, strata)
    assert math.isnan(one.value)
    assert one.reason.startswith("fold 2 has no test case of HGG")


def test_class_that_no_fold_has_is_named():
    strata = Strata(np.ones(3, int), np.array(["HGG"] * 3), ("LGG", "HGG"))
    assert estimated([1, 1, 0], strata)[0].reason.startswith("fold 1 has no test case of LGG")
    assert estimated([1, 1, 0], Strata(np.ones(3)))[0].value == pytest.approx(2 / 3)


def test_undefined_values_and_lost_patients_are_refused():
    with pytest.raises(ValueError, match="finite"):
        estimated([1, np.nan], Strata(np.ones(2)))
    with pytest.raises(ValueError, match="one row per case"):
        estimated([1, 0], Strata(np.ones(2)), np.arange(3))
