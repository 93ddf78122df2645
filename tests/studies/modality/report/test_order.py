"""The order of modalities by importance, with its ties."""

import math

import pytest

from heatcheck.core.records import ONE_VALUE, Estimate
from heatcheck.studies.modality.report.order import first_among, order_in_words
from heatcheck.studies.modality.vocabulary import SHAPLEY


def order(names, phi):
    return order_in_words(dict(zip(names, phi, strict=True)))


def estimate(value, low=math.nan, high=math.nan, reason="", patients=10):
    return Estimate(SHAPLEY, "phi_modality", value=value, low=low, high=high, n_patients=patients, reason=reason)


def test_order_says_which_are_tied():
    phi = [estimate(0.1, 0.0, 0.2), estimate(0.6, 0.5, 0.7), estimate(0.15, 0.05, 0.25), estimate(0.3, 0.26, 0.4)]
    assert order(("T1", "T1C", "T2", "FLAIR"), phi) == "T1C > FLAIR > T2 = T1"


@pytest.mark.parametrize(
    ("intervals", "words", "first"),
    [
        ([(0.5, 0.6), (0.28, 0.35), (-0.1, 0.55)], "A > B; C is tied with A, B", ("A", "C")),
        ([(0.4, 0.8), (0.2, 0.5), (0.1, 0.3)], "A = B; C is below A and tied with B", ("A", "B")),
        ([(0.4, 0.8), (0.2, 0.5), (0.1, 0.3), (-0.1, 0.15)], "A = B > D; C is below A and tied with B, D", ("A", "B")),
        ([(0.4, 0.8), (0.2, 0.5), (0.1, 0.3), (-0.1, 0.05)],
         "A = B > D; C is below A and above D and tied with B", ("A", "B")),
        ([(0.5, 0.8), (0.5, 0.6), (0.1, 0.55), (0.05, 0.52)], "A = B = C = D", ("A", "B", "C", "D")),
        ([(0.1, 0.99), (0.6, 0.7), (0.3, 0.65), (0.2, 0.29)],
         "A = B = C; D is below B, C and tied with A", ("A", "B", "C")),
        ([(0.0, 0.99), (0.52, 0.6), (0.3, 0.5), (-0.3, 0.9)],
         "A = B = D; C is below B and tied with A, D", ("A", "B", "D")),
        ([(0.5, 0.6), (0.28, 0.35), (-0.1, 0.55), (-0.2, 0.52)],
         "A > B; C is tied with A, B; D is tied with A, B, C", ("A", "C", "D")),
    ],
)  # fmt: skip
def test_every_overlap_is_named_not_only_that_of_neighbours(intervals, words, first):
    phi = [estimate(0.5 - 0.01 * index, *ends) for index, ends in enumerate(intervals)]  # in the order of the letters
    assert order("ABCD"[: len(phi)], phi) == words
    assert first_among(dict(zip("ABCD", phi, strict=False))) == first


def test_name_that_reads_like_an_order_stands_in_quotation_marks():
    phi = [estimate(0.6, 0.5, 0.7), estimate(0.3, 0.2, 0.4), estimate(0.25, 0.15, 0.35)]
    assert order(("DWI b = 1000", "T1", "T2 > T1"), phi) == "“DWI b = 1000” > T1 = “T2 > T1”"


def test_modality_without_an_interval_is_tied_with_every_other():
    assert order(("a", "b", "c"), [estimate(0.0), estimate(1e-17), estimate(0.5)]) == "c = b = a"
    assert order(("a", "b"), [estimate(0.5, 0.4, 0.6), estimate(0.1)]) == "a = b"


def test_a_value_on_which_many_patients_agree_is_certain():
    nothing, few = (estimate(0.0, reason=ONE_VALUE, patients=n) for n in (10, 9))
    clear = estimate(0.3, 0.1, 0.5)
    assert order(("a", "b", "c"), [nothing, clear, nothing]) == "b > a = c"
    assert order(("a", "b", "c"), [few, clear, few]) == "b = a = c"
