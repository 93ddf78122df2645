"""Means over trainings whose intervals hold together: by hand, of the largest of many, and where there are none."""

import math

import numpy as np
import pytest
from scipy import stats

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.resampling.bca import NO_VALUE
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.joint_means import joint_means
from heatcheck.stats.resampling.nested import NO_SEED, ONE_SEED, nested_means
from heatcheck.stats.resampling.studentised import FEW_PATIENTS


def design_of(seeds, patients):
    """Every patient once in every seed."""
    return Design(np.repeat(np.arange(seeds), patients), np.tile(np.arange(patients), seeds))


def test_one_column_by_hand():
    # seeds have means 0.1 and 0.3: variance of their mean 0.01, one degree of freedom; the images of a seed differ by
    # -0.1 and 0.1 in turn: squares of 0.1 / 8 over 8 patients, times 8/7
    values = (np.repeat([0.1, 0.3], 8) + np.tile([-0.1, 0.1], 8))[:, None]
    (found,) = joint_means(values, design_of(2, 8), 1)
    of_seeds, of_patients = stats.t.ppf(0.975, 1) * 0.1, stats.t.ppf(0.975, 7) * math.sqrt(0.01 / 7)
    assert found.estimate.value == pytest.approx(0.2)
    assert found.estimate.high - 0.2 == pytest.approx(math.hypot(of_seeds, of_patients))
    assert found.from_seeds == pytest.approx(of_seeds**2 / (of_seeds**2 + of_patients**2))
    assert np.sum(found.influences**2) * 8 / 7 == pytest.approx(0.01 / 7)


def test_columns_lend_each_other_their_variance_over_seeds_and_pay_for_being_many():
    generator = np.random.default_rng(1)
    values = generator.normal(0, 0.05, (3 * 20, 1)) + np.repeat(generator.normal(0, 0.05, 3), 20)[:, None]
    alone = joint_means(values, design_of(3, 20), 1)[0].estimate
    seeds = np.repeat(generator.normal(0, 0.05, (3, 5)), 20, axis=0)
    many = np.hstack([values, generator.normal(0, 0.05, (60, 5)) + seeds])
    together = joint_means(many, design_of(3, 20), 6)[0].estimate
    assert together.value == alone.value
    assert together.high - together.low < alone.high - alone.low  # t with two degrees of freedom knows less
    as_one_seed = joint_means(many[:20], design_of(1, 20), 6)[0].estimate
    alone_as_one = joint_means(values[:20], design_of(1, 20), 1)[0].estimate
    ratio = stats.t.ppf(1 - 0.025 / 6, 19) / stats.t.ppf(0.975, 19)
    assert as_one_seed.high - as_one_seed.value == pytest.approx(ratio * (alone_as_one.high - alone_as_one.value))
    assert as_one_seed.note == ONE_SEED


def test_the_largest_of_many_equal_means_has_an_interval_that_holds():
    generator = np.random.default_rng(2)
    held = {"joint": 0, "alone": 0}
    for _ in range(60):
        luck = np.repeat(generator.normal(0, 0.04, (3, 12)), 25, axis=0)
        values = luck + generator.normal(0, 0.05, luck.shape)
        joint = [each.estimate for each in joint_means(values, design_of(3, 25), 12)]
        best = max(range(12), key=lambda column: joint[column].value)
        alone = nested_means(values, design_of(3, 25), 200, generator)[best]
        for name, found in (("joint", joint[best]), ("alone", alone)):
            held[name] += found.low <= 0 <= found.high
    assert held["joint"] >= 57
    assert held["alone"] <= 51


def test_no_interval_below_six_patients_without_values_or_where_all_agree():
    generator = np.random.default_rng(3)
    few = joint_means(generator.normal(size=(10, 1)), design_of(2, 5), 1)[0].estimate
    assert (math.isnan(few.low), few.reason, few.n_seeds) == (True, FEW_PATIENTS, 2)
    values = np.column_stack([np.full(16, 0.5), np.full(16, np.nan)])
    same, none = (each.estimate for each in joint_means(values, design_of(2, 8), 2))
    assert (same.value, same.reason) == (0.5, ONE_VALUE)
    assert (none.reason, none.n_undefined) == (NO_VALUE, 16)
    assert joint_means(np.zeros((0, 1)), design_of(0, 0), 1)[0].estimate.reason == NO_SEED


def test_an_interval_stays_within_possible_values():
    generator = np.random.default_rng(4)
    (found,) = joint_means(0.9 + generator.normal(0, 0.3, (12, 1)), design_of(2, 6), 1, (-1.0, 1.0))
    assert found.estimate.high == 1.0
