"""Studentised and simultaneous intervals: cases worked by hand, an explicit loop, and simulations with known truth."""

import math

import numpy as np
import pytest
from scipy import stats

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.resampling.bca import NO_PATIENT, ONE_PATIENT
from heatcheck.stats.resampling.clusters import cluster_totals, resampled_weights
from heatcheck.stats.resampling.studentised import (
    FEW_DRAWS,
    FEW_PATIENTS,
    FEWEST_DRAWS,
    linearised_macro,
    linearised_ratios,
    simultaneous_intervals,
    studentised_intervals,
    t_intervals,
)


def means_of(values, patients):
    totals = cluster_totals(np.asarray(values, float), np.asarray(patients))
    return linearised_ratios(totals.sums, totals.counts)


def test_value_and_error_of_a_clustered_mean_by_hand():
    # patients a: 1, 3; b: 2; c: 6 → mean 3, influences (4 − 2·3, 2 − 3, 6 − 3) / 4, error² = Σ u² / (1 − share)
    found = means_of([[1], [3], [2], [6]], ["a", "a", "b", "c"])
    assert found.values == [3]
    assert found.influences[:, 0].tolist() == [-0.5, -0.25, 0.75]
    assert found.errors[0] ** 2 == pytest.approx(0.25 / 0.5 + 0.0625 / 0.75 + 0.5625 / 0.75)


def test_error_of_single_images_is_the_usual_standard_error():
    values = np.random.default_rng(0).random((40, 3))
    assert means_of(values, np.arange(40)).errors == pytest.approx(stats.sem(values))


def test_interval_is_that_of_an_explicit_loop():
    generator = np.random.default_rng(3)
    values = generator.random(12) ** 3
    (interval,) = studentised_intervals(means_of(values[:, None], np.arange(12)), 500, np.random.default_rng(8))
    seed = int(np.random.default_rng(8).integers(2**63))
    (weights,) = resampled_weights(12, 500, np.random.default_rng(seed))
    scores = []
    for row in weights:
        drawn = np.repeat(values, row.astype(int))
        scores.append((drawn.mean() - values.mean()) / stats.sem(drawn))
    low, high = np.sort(scores)[[11, -12]]  # of 500 draws, 12 beyond each end: p = 2 · 13 / 501 is not below 0.05
    error = stats.sem(values)
    assert high < stats.t.ppf(0.975, 11) < -low
    high = stats.t.ppf(0.975, 11)  # no end is nearer than Student's t
    assert (interval.low, interval.high) == pytest.approx((values.mean() - high * error, values.mean() - low * error))


def test_columns_do_not_depend_on_their_neighbours():
    values = np.random.default_rng(0).random((20, 3))
    values[:4, 1] = np.nan
    together = studentised_intervals(means_of(values, np.arange(20)), 200, np.random.default_rng(1))
    alone = studentised_intervals(means_of(values[:, 2:], np.arange(20)), 200, np.random.default_rng(1))
    assert (together[2].low, together[2].high) == pytest.approx((alone[0].low, alone[0].high), rel=1e-12)


@pytest.mark.parametrize(("patients", "reason"), [(1, ONE_PATIENT), (5, FEW_PATIENTS)])
def test_few_patients_get_a_value_and_no_interval(patients, reason):
    (interval,) = studentised_intervals(
        means_of(np.arange(float(patients))[:, None], np.arange(patients)), 100, np.random.default_rng(0)
    )
    assert interval.value == (patients - 1) / 2
    assert math.isnan(interval.low)
    assert interval.reason == reason


def test_equal_scores_and_no_scores_have_no_interval_and_a_reason():
    values = np.stack([np.full(9, 0.1), np.full(9, np.nan)], axis=1)
    same, none = studentised_intervals(means_of(values, np.arange(9)), 100, np.random.default_rng(0))
    assert (same.reason, none.reason) == (ONE_VALUE, NO_PATIENT)


def test_macro_mean_of_equal_findings_has_the_error_of_their_mean():
    # two independent findings on other patients: the error of the mean of two means
    generator = np.random.default_rng(0)
    values = np.full((400, 2), np.nan)
    values[:200, 0], values[200:, 1] = generator.normal(0, 1, 200), generator.normal(1, 1, 200)
    macro = linearised_macro(means_of(values, np.arange(400)), 2)
    expected = math.sqrt(stats.sem(values[:200, 0]) ** 2 + stats.sem(values[200:, 1]) ** 2) / 2
    assert macro.values[0] == pytest.approx(np.nanmean(values, axis=0).mean())
    assert macro.errors[0] == pytest.approx(expected, rel=0.01)
    assert macro.freedom[0] == pytest.approx(2 * 199 + 8, rel=0.02)


def test_macro_mean_with_a_finding_of_one_patient_still_has_an_interval():
    generator = np.random.default_rng(0)
    values = generator.random((30, 3))
    values[1:, 2] = np.nan
    (interval,) = t_intervals(linearised_macro(means_of(values, np.arange(30)), 3))
    alone = stats.sem(values[:, 0])
    assert interval.high - interval.low > 4 * alone / 3  # the third finding's error is not taken for 0


def test_interval_excludes_0_exactly_where_the_corrected_p_is_small():
    generator = np.random.default_rng(2)
    for _ in range(20):
        values = generator.normal(generator.normal(0, 0.5, 12), 1, (25, 12))
        family = simultaneous_intervals(means_of(values, np.arange(25)), 999, generator)
        beyond = [interval.low > 0 or interval.high < 0 for interval in family.intervals]
        assert (family.p_adjusted < 0.05).tolist() == beyond
        assert (family.p_adjusted >= family.p_values).all()


def test_so_it_does_where_columns_have_different_patients():
    generator = np.random.default_rng(4)
    for _ in range(10):
        values = generator.normal(generator.normal(0, 0.6, 9), 1, (40, 9))
        values[generator.random((40, 9)) < np.repeat([0, 0.4, 0.7], 3)] = np.nan
        family = simultaneous_intervals(means_of(values, np.arange(40)), 499, generator)
        beyond = [interval.low > 0 or interval.high < 0 for interval in family.intervals]
        assert (family.p_adjusted < 0.05).tolist() == beyond


def test_a_column_of_few_patients_does_not_widen_the_intervals_of_all_others():
    generator = np.random.default_rng(5)
    values = generator.random((60, 4)) ** 2
    few = np.concatenate([values, np.where(np.arange(60)[:, None] < 6, values[:, :1], np.nan)], axis=1)
    without, with_few = (
        simultaneous_intervals(means_of(each, np.arange(60)), 999, np.random.default_rng(6)).intervals[1]
        for each in (values, few)
    )
    assert with_few.high - with_few.low < 1.4 * (without.high - without.low)


def false_claims(repetitions: int, patients: int, methods: int, findings: int) -> int:
    """In how many families a method that mostly scores 0 differs from a steady floor of the same mean on a finding."""
    generator = np.random.default_rng(7)
    count = 0
    for _ in range(repetitions):
        patient = np.repeat(np.arange(patients), generator.integers(1, 5, patients))
        has = (generator.random((patients, findings)) < 0.35)[patient]
        looks = (generator.random((patients, methods, findings)) < 0.4)[patient]
        scores = np.where(looks, generator.beta(1, 3, looks.shape), 0.0) - generator.normal(0.1, 0.005, looks.shape)
        values = np.where(has[:, None], scores, np.nan).reshape(len(patient), -1)
        family = simultaneous_intervals(means_of(values, patient), 300, generator)
        count += bool(np.any(family.p_adjusted < 0.05))
    return count


def test_many_comparisons_on_findings_with_few_patients_make_few_false_claims():
    assert false_claims(40, patients=30, methods=10, findings=4) <= 5  # 2 are due


def test_any_family_can_be_significant_with_the_fewest_draws_and_none_with_one_less():
    values = np.random.default_rng(8).normal(3, 1, (30, 700))
    enough, few = (
        simultaneous_intervals(means_of(values, np.arange(30)), draws, np.random.default_rng(0))
        for draws in (FEWEST_DRAWS, FEWEST_DRAWS - 1)
    )
    assert (enough.p_adjusted < 0.05).all()
    assert {interval.reason for interval in few.intervals} == {FEW_DRAWS}
    assert np.isnan(few.p_adjusted).all()


def test_family_without_enough_patients_says_why():
    family = simultaneous_intervals(means_of([[1.0], [2.0]], ["a", "b"]), 100, np.random.default_rng(0))
    assert family.intervals[0].reason == FEW_PATIENTS
    assert math.isnan(family.p_adjusted[0])


def test_where_few_of_many_patients_take_part_interval_and_p_agree():
    """A draw may hold one of them alone, many times: it lies beyond every limit, and is no gap in the count."""
    generator = np.random.default_rng(0)
    few = linearised_ratios(generator.random((6, 12)) - 0.25, np.ones((6, 12)))
    statistics = few.among(np.arange(200) < 6)
    for seed in range(5):
        found = simultaneous_intervals(statistics, 500, np.random.default_rng(seed))
        beyond = [not interval.low <= 0 <= interval.high for interval in found.intervals]
        assert beyond == (found.p_adjusted < 0.05).tolist()
        assert not any(np.isnan([interval.low, interval.high]).any() for interval in found.intervals)
