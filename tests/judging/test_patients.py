"""How many patients would decide: against a calculation by hand for normal differences."""

import math
from dataclasses import replace

import numpy as np
import pytest

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import TEST
from heatcheck.judging.patients import OpenClaim, judged, patients_needed


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


def test_judged_estimate_has_its_size_and_the_patients_that_would_decide():
    generator = np.random.default_rng(4)
    influences = generator.normal(size=30)
    influences = (influences - influences.mean()) * 0.01
    error = float(np.sqrt(np.sum(influences**2)))
    row = Estimate(TEST, "iou", value=0.1, low=0.1 - 2 * error, high=0.1 + 2 * error)
    open_row = judged(row, 0.05, influences, generator)
    assert open_row.size == 0.05
    assert (open_row.n_needed == 0) == (row.low > 0)
    unclear = replace(row, low=-0.02, high=0.22)
    assert judged(unclear, 0.05, influences, generator).n_needed > 30
    assert judged(replace(row, low=0.05), 0.05, influences, generator).n_needed == 0  # decided
    assert judged(replace(row, low=math.nan), 0.05, influences, generator).n_needed == 0  # no interval
