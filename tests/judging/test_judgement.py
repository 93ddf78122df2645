"""A claim needs an interval above 0 and a size that matters."""

import math

import pytest

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import TEST
from heatcheck.judging.judgement import NO_INTERVAL, NO_SIZE, Answer, both, judge, judgement_of, opposite_of


@pytest.mark.parametrize(
    ("value", "low", "high", "size", "answer"),
    [
        (0.20, 0.05, 0.35, 0.10, Answer.YES),
        (0.20, 0.00, 0.40, 0.10, Answer.OPEN),  # the interval touches 0
        (0.08, 0.05, 0.20, 0.10, Answer.OPEN),  # beyond chance, and perhaps too small
        (0.05, 0.02, 0.08, 0.10, Answer.NO),  # beyond chance, and certainly too small
        (0.10, 0.01, 0.30, 0.10, Answer.YES),
        (0.00, -0.05, 0.0999, 0.10, Answer.NO),
        (-0.30, -0.50, -0.10, 0.10, Answer.NO),
        (0.00, -0.30, 0.30, 0.10, Answer.OPEN),
        (0.01, 0.001, 0.30, 0.0, Answer.YES),
    ],
)
def test_answer_follows_from_interval_and_size(value, low, high, size, answer):
    assert judge(value, low, high, size).answer is answer


def test_nothing_is_claimed_without_an_interval_or_a_size():
    assert judge(0.5, math.nan, 0.7, 0.1).reason == NO_INTERVAL
    assert judge(0.5, 0.3, 0.7, math.nan).reason == NO_SIZE
    assert judge(0.5, math.nan, 0.7, 0.1).answer is judge(0.5, 0.3, 0.7, math.nan).answer is Answer.OPEN


def test_claims_that_must_all_hold_fall_with_the_first_that_does_not():
    yes, no, unclear = judge(0.2, 0.1, 0.3, 0.1), judge(0.0, -0.1, 0.05, 0.1), judge(0.2, -0.1, 0.5, 0.1)
    assert both(yes, yes).is_yes
    assert both(yes, unclear).answer is Answer.OPEN
    assert both(unclear, yes, no).is_no


def test_judgement_of_an_estimate_and_of_its_opposite():
    row = Estimate(TEST, "iou", value=-0.2, low=-0.3, high=-0.1, size=0.1)
    assert judgement_of(row).is_no
    assert opposite_of(row).is_yes
    assert judgement_of(None).reason == opposite_of(None).reason == "not computed"


def test_an_estimate_without_an_interval_gives_its_own_reason():
    row = Estimate(TEST, "iou", value=0.2, size=0.1, reason="fewer than 6 patients")
    assert judgement_of(row).reason == "fewer than 6 patients"
    assert judgement_of(row).answer is Answer.OPEN


def test_an_estimate_without_a_size_gives_its_own_reason():
    row = Estimate(TEST, "iou", value=0.2, low=0.1, high=0.3, reason="one seed")
    assert (judgement_of(row).answer, judgement_of(row).reason) == (Answer.OPEN, "one seed")
