"""How many patients would decide: against a calculation by hand for normal differences."""

import numpy as np
import pytest

from heatcheck.judging.patients import OpenClaim, patients_needed


def claim(value, sd, n, size, reach=1.96):
    terms = np.random.default_rng(0).normal(size=n)
    terms = (terms - terms.mean()) / terms.std() * sd
    return OpenClaim(value, terms / n, reach, reach, size)


def test_normal_differences_need_the_patients_of_the_usual_formula():
    # value 0.2, no size: power 80 % needs n = ((1.96 + 0.84) · sd / 0.2)²
    by_formula = ((1.96 + 0.8416) * 1.0 / 0.2) ** 2
    needed = patients_needed(claim(0.2, 1.0, 50, 0.0), np.random.default_rng(1))
    assert by_formula / 1.3 < needed < by_formula * 1.35  # steps of a quarter of a doubling, 200 draws


def test_a_value_at_the_size_is_never_decided():
    assert patients_needed(claim(0.1, 1.0, 30, 0.1), np.random.default_rng(1)) is None or pytest.fail("decided")


def test_a_wider_interval_needs_more_patients():
    narrow = patients_needed(claim(0.3, 1.0, 20, 0.0), np.random.default_rng(1))
    wide = patients_needed(claim(0.3, 1.0, 20, 0.0, reach=3.5), np.random.default_rng(1))
    assert wide > narrow
