"""The words of judgements."""

import math
from dataclasses import replace

import pytest

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import TEST
from heatcheck.report.verdict import CLEARLY, answer, smallest_visible, would_decide


def row(value: float, low: float, high: float, size: float = 0.1, needed: int = 0) -> Estimate:
    return Estimate(TEST, "iou", value=value, low=low, high=high, size=size, n_needed=needed)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (row(0.2, 0.05, 0.3), "yes"),
        (row(0.05, 0.02, 0.08), "no"),  # beyond chance, but too small to matter
        (row(-0.2, -0.3, -0.1), "no"),
        (row(0.05, 0.02, 0.2), "not shown"),
        (row(0.2, math.nan, math.nan), "not shown"),
        (None, "not shown"),
    ],
)
def test_answer(given: Estimate | None, words: str):
    assert answer(given) == words


def test_patients_that_would_decide_are_rounded_up_to_two_digits():
    assert would_decide(row(0.05, -0.1, 0.2, needed=1234)) == "about 1,300 patients would decide it"
    assert would_decide(row(0.05, -0.1, 0.2, needed=61)) == "about 61 patients would decide it"
    assert would_decide(row(0.05, -0.1, 0.2)) == ""
    assert would_decide(row(0.2, 0.1, 0.3, needed=61)) == ""  # decided


def test_smallest_visible_difference_is_the_usual_reach():
    rows = [row(0.0, -0.1, 0.1), row(0.5, 0.2, 0.6), row(0.1, -0.1, 0.4), row(0.1, -math.inf, 0.4)]
    assert smallest_visible(rows) == pytest.approx(0.2)
    assert smallest_visible([replace(each, size=0.4) for each in rows]) == 0.4  # nothing smaller is called a difference
    assert math.isnan(smallest_visible([row(0.1, math.nan, math.nan)]))


def test_clearly_is_explained_by_the_glossary():
    assert "corrected for all comparisons" in CLEARLY
