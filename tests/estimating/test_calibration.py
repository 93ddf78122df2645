"""The calibration error beside what chance gives, as several studies report it."""

import math

import numpy as np
import pytest

from heatcheck.estimating.calibration import calibration_rows


def test_error_and_chance_by_hand():
    labels, probabilities = np.array([1.0, 0.0, 1.0, 1.0, np.nan]), np.array([0.5, 0.5, 0.9, 0.9, 0.9])
    error, chance = calibration_rows(labels, probabilities, np.array(["a", "b", "c", "d", "e"]), "ece_stamped")
    assert error.value == pytest.approx((2 * 0.0 + 2 * 0.1) / 4)
    assert (error.statistic, chance.statistic) == ("calibration", "chance_calibration")
    assert (error.metric, error.n_cases, error.n_patients) == ("ece_stamped", 4, 4)
    # right answers among two: their number is off by 1 in half of the cases at 0.5; by 0.2, 0.8 or 1.8 at 0.9
    off = 0.5 * 1 + (0.81 * 0.2 + 0.18 * 0.8 + 0.01 * 1.8)
    assert chance.value == pytest.approx(off / 4)
    assert 0 == chance.low < chance.value < chance.high


def test_without_a_label_nothing_is_known():
    error, chance = calibration_rows(np.array([np.nan]), np.array([0.5]), np.array(["a"]))
    assert math.isnan(error.value)
    assert math.isnan(chance.value)
    assert error.reason
    assert error.n_cases == 0
