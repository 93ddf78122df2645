import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score

from heatcheck.stats.balanced import Strata, balanced_means, balanced_values

SHARES = (0.0, 1.0)  # of cases that are right


def estimated(values, strata, clusters=None, ends=SHARES):
    values = np.asarray(values, float).reshape(len(values), -1)
    clusters = np.arange(len(values)) if clusters is None else clusters
    return balanced_means(values, strata, clusters, ends)


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
    assert estimated(right, strata)[0].value == pytest.approx(expected)


def test_without_groups_it_is_the_plain_mean_with_students_interval():
    values = np.random.default_rng(1).random((30, 2))
    patients = np.repeat(np.arange(15), 2)
    for one, column in zip(estimated(values, Strata(np.ones(30)), patients), values.T, strict=True):
        means = column.reshape(15, 2).mean(1)
        assert one.value == pytest.approx(means.mean())
        assert one.high - one.value == pytest.approx(stats.t.ppf(0.975, 14) * stats.sem(means), rel=0.05)
        assert (one.n_cases, one.n_patients, one.n_undefined) == (30, 15, 0)


def test_interval_covers_the_truth_as_often_as_it_says():
    """Accuracies 0.9 and 0.5 in classes of 45 and 15: balanced 0.7."""
    classes, covered = np.repeat([0, 1], [45, 15]), []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        right = (generator.random(60) < np.where(classes, 0.5, 0.9)).astype(float)
        (one,) = estimated(right, Strata(np.ones(60), classes))
        covered.append(one.low <= 0.7 <= one.high)
    assert 0.89 <= np.mean(covered) <= 0.99


def test_small_classes_in_many_folds_have_an_interval_that_covers():
    """Three patients a class in each of five folds: a draw over all of them would nearly always miss a group."""
    folds, classes = np.repeat(np.arange(5), 6), np.tile([0, 0, 0, 1, 1, 1], 5)
    covered = []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        right = (generator.random(30) < np.where(classes, 0.5, 0.8)).astype(float)
        (one,) = estimated(right, Strata(folds, classes))
        assert one.reason == ""
        covered.append(one.low <= 0.65 <= one.high)
    assert 0.89 <= np.mean(covered) <= 0.995


def test_where_every_patient_agrees_the_interval_allows_for_others_who_do_not():
    """All of eight are right in each class; a share of others that 16 would miss in 2.5 % is 1 − 0.025^(1/16)."""
    (one,) = estimated(np.ones(16), Strata(np.ones(16), np.tile([0, 1], 8)))
    assert (one.value, one.high, one.reason) == (1, 1, "")
    assert one.low == pytest.approx(0.025 ** (1 / 16))
    (apart,) = estimated(np.tile([0.0, 1.0], 8), Strata(np.ones(16), np.tile([0, 1], 8)), ends=(-1.0, 1.0))
    assert apart.low < 0.5 < apart.high < 0.75


def test_cases_of_a_patient_count_together():
    """Ten patients of three like cases tell as much as ten cases."""
    right, classes = np.array([1.0, 0, 1, 1, 0, 1, 0, 1, 1, 1]), np.repeat([0, 1], 5)
    (single,) = estimated(right, Strata(np.ones(10), classes))
    (tripled,) = estimated(right.repeat(3), Strata(np.ones(30), classes.repeat(3)), np.arange(10).repeat(3))
    assert (tripled.low, tripled.high) == pytest.approx((single.low, single.high))
    assert (tripled.n_cases, tripled.n_patients) == (30, 10)


def test_patient_of_several_classes_counts_in_each():
    classes, patients = np.tile([0, 1], 6), np.arange(6).repeat(2)
    (one,) = estimated([1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1], Strata(np.ones(12), classes), patients)
    assert one.value == pytest.approx((4 / 6 + 2 / 6) / 2)
    assert one.low < 0.5 < one.high


def test_class_of_one_patient_borrows_the_others_variance():
    strata = Strata(np.ones(8), np.array([0] * 7 + [1]))
    (one,) = estimated([1, 0, 1, 0, 1, 1, 0, 1], strata)
    assert one.low < one.value < one.high


def test_fewer_than_six_patients_have_no_interval():
    (one,) = estimated([1, 0, 1, 0, 1], Strata(np.ones(5)))
    assert math.isnan(one.low)
    assert one.reason == "fewer than 6 patients"


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
