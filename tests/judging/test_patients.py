"""How many patients would decide: against a calculation by hand for normal differences."""

import math
from dataclasses import replace

import numpy as np
import pytest

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import TEST
from heatcheck.judging.patients import OpenClaims, judged, judged_together, patients_needed


def needed(value, sd, n, size, reach=1.96, of_seeds=0.0):
    terms = np.random.default_rng(0).normal(size=n)
    terms = (terms - terms.mean()) / terms.std() * sd
    numbers = (np.array([number]) for number in (reach, reach, size, of_seeds))
    claims = OpenClaims(np.array([value]), terms[:, None] / n, *numbers)
    return patients_needed(claims, np.random.default_rng(1))[0]


def test_normal_differences_need_the_patients_of_the_usual_formula():
    # value 0.2, no size: power 80 % needs n = ((1.96 + 0.84) · sd / 0.2)²
    by_formula = ((1.96 + 0.8416) * 1.0 / 0.2) ** 2
    assert (
        by_formula / 1.3 < needed(0.2, 1.0, 50, 0.0) < by_formula * 1.35
    )  # steps of a quarter of a doubling, 200 draws


def test_a_value_at_the_size_is_never_decided():
    assert needed(0.1, 1.0, 30, 0.1) is None


def test_a_wider_interval_needs_more_patients():
    assert needed(0.3, 1.0, 20, 0.0, reach=3.5) > needed(0.3, 1.0, 20, 0.0)


def test_judged_estimates_have_their_size_and_the_patients_that_would_decide():
    influences = np.random.default_rng(4).normal(size=(30, 4)) * 0.01
    influences -= influences.mean(0)
    row = Estimate(TEST, "iou", value=0.1, low=-0.02, high=0.22)
    rows = [row, replace(row, low=0.05), replace(row, low=math.nan), replace(row, high=0.04, value=0.02)]
    found = judged_together(rows, [0.05, 0.05, 0.05, 0.05], influences, np.random.default_rng(5))
    assert [each.size for each in found] == [0.05] * 4
    assert found[0].n_needed > 30  # open
    assert [each.n_needed for each in found[1:]] == [0, 0, 0]  # yes, without an interval, no
    assert judged(row, 0.05, influences[:, 0], np.random.default_rng(5)) == found[0]  # other claims change nothing


def test_a_patient_who_takes_no_part_is_one_that_must_be_seen():
    """Where half of the patients have the finding, twice as many patients are needed as with the finding in all."""
    terms = np.random.default_rng(0).normal(size=40)
    terms = (terms - terms.mean()) / terms.std() / 40
    row = Estimate(TEST, "iou", value=0.3, low=-0.1, high=0.7)
    in_all = judged(row, 0.0, terms, np.random.default_rng(1)).n_needed
    in_half = judged(row, 0.0, np.concatenate([terms, np.zeros(40)]), np.random.default_rng(1)).n_needed
    assert in_half / in_all == pytest.approx(2, rel=0.2)


def test_variance_of_the_seeds_is_not_lessened_by_patients():
    assert needed(0.3, 1.0, 20, 0.0) < needed(0.3, 1.0, 20, 0.0, of_seeds=0.004)
    assert needed(0.3, 1.0, 20, 0.0, of_seeds=0.1) is None
