"""Shares over one finding or several: every finding counts the same, and limits lie between 0 and 1."""

import math

import numpy as np
import pytest

from heatcheck.stats.resampling.bca import NO_PATIENT, NO_VALUE
from heatcheck.stats.resampling.macro import mean_share_interval, share_intervals
from heatcheck.stats.resampling.studentised import FEW_PATIENTS, linearised_ratios


def interval(parts, wholes):
    return mean_share_interval(np.asarray(parts, float), np.asarray(wholes, float), 200, np.random.default_rng(0))


def test_every_finding_counts_the_same_however_large_its_regions():
    found = interval([[1, 30], [1, 30]], [[4, 100], [4, 300]])
    assert found.value == pytest.approx((2 / 8 + 60 / 400) / 2)
    assert found.reason == FEW_PATIENTS


def test_limits_are_possible_values():
    generator = np.random.default_rng(1)
    wholes = generator.integers(50, 500, (9, 2)).astype(float)
    for findings in (1, 2):
        found = interval((wholes - (generator.random((9, 2)) < 0.2))[:, :findings], wholes[:, :findings])
        assert 0 <= found.low < found.value < found.high <= 1


def test_one_finding_has_the_interval_that_it_has_by_itself():
    generator = np.random.default_rng(2)
    parts, wholes = generator.integers(0, 9, (12, 2)).astype(float), np.full((12, 2), 10.0)
    first, second = (
        share_intervals(linearised_ratios(parts[:, columns], wholes[:, columns]), 1, 200, np.random.default_rng(3))[0]
        for columns in ([0], [0, 1])
    )
    assert (first.low, first.high) == pytest.approx((second.low, second.high))


def test_a_finding_without_pixels_and_no_patient_at_all_have_no_value():
    assert interval([[1, 0]] * 7, [[4, 0]] * 7).reason == NO_VALUE
    nobody = interval(np.zeros((0, 1)), np.zeros((0, 1)))
    assert math.isnan(nobody.value)
    assert nobody.reason == NO_PATIENT
