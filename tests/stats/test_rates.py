"""Rates against scipy's binomial interval, published rules worked by hand, and where nothing or everything is hit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest
from scipy.stats import t as student

from heatcheck.stats.rates import rate_difference_interval, rate_interval
from heatcheck.stats.resampling.bca import NO_PATIENT, ONE_PATIENT


def test_where_all_or_none_are_hits_every_patient_counts_as_one_case():
    counts = np.array([1.0, 4, 2, 3, 1, 2])
    exact = binomtest(6, 6).proportion_ci(0.95, "exact")
    all_hits, no_hits = rate_interval(counts, counts), rate_interval(0 * counts, counts)
    assert (all_hits.value, all_hits.low, all_hits.high) == (1, pytest.approx(exact.low), 1)
    assert (no_hits.value, no_hits.low, no_hits.high) == (0, 0, pytest.approx(1 - exact.low))
    assert not all_hits.reason


def test_one_case_per_patient_is_nearly_clopper_and_pearson():
    """The variance has n − 1 in its denominator, so that 40 patients count as 39."""
    hits = np.repeat([1.0, 0], [12, 28])
    interval = rate_interval(hits, np.ones(40))
    size, count = 39, 0.3 * 39
    exact = beta.ppf(0.025, count, size - count + 1), beta.ppf(0.975, count + 1, size - count)
    assert (interval.low, interval.high) == pytest.approx(exact)
    scipys = binomtest(12, 40).proportion_ci(0.95, "exact")
    assert (interval.low, interval.high) == pytest.approx((scipys.low, scipys.high), abs=0.004)


def test_clustered_hits_by_hand():
    """Five patients with 2, 0, 1, 2, 0 hits of two cases each: residuals 1, −1, 0, 1, −1 tenths, 5 of 10 hits."""
    interval = rate_interval(np.array([2.0, 0, 1, 2, 0]), np.full(5, 2.0))
    variance = 4 * 0.1**2 * 5 / 4
    size = 0.25 / variance * (student.ppf(0.975, 9) / student.ppf(0.975, 4)) ** 2
    assert interval.low == pytest.approx(beta.ppf(0.025, size / 2, size / 2 + 1))
    assert interval.high == pytest.approx(1 - interval.low)


def test_patients_who_agree_exactly_do_not_count_as_more_than_their_cases():
    interval = rate_interval(np.ones(8), np.full(8, 2.0))
    size = 16 * (student.ppf(0.975, 15) / student.ppf(0.975, 7)) ** 2
    assert interval.low == pytest.approx(beta.ppf(0.025, size / 2, size / 2 + 1))


def test_patients_without_cases_take_no_part():
    assert rate_interval(np.array([1.0, 0, 1]), np.array([2.0, 0, 1])) == rate_interval(
        np.array([1.0, 1]), np.array([2.0, 1])
    )


def test_one_patient_has_a_rate_without_an_interval():
    for interval in (rate_interval(np.ones(1), np.full(1, 2.0)), rate_interval(np.array([1.0, 0]), np.array([2.0, 0]))):
        assert (interval.value, interval.reason) == (0.5, ONE_PATIENT)
        assert math.isnan(interval.low)
    assert rate_interval(np.zeros(0), np.zeros(0)).reason == NO_PATIENT
    assert rate_difference_interval(np.ones(1), np.zeros(1), np.ones(1)).reason == ONE_PATIENT
    assert rate_difference_interval(np.zeros(0), np.zeros(0), np.zeros(0)).reason == NO_PATIENT


HITS = st.lists(st.tuples(st.integers(1, 4), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)


@settings(deadline=None, max_examples=200)
@given(HITS)
def test_two_patients_or_more_always_have_intervals_within_the_possible(rows):
    counts, first, second = np.array(rows).T
    interval = rate_interval(first * counts, counts)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    assert interval.high - interval.low > 0.01
    difference = rate_difference_interval(first * counts, second * counts, counts)
    assert difference.low < difference.value < difference.high
    assert np.isfinite([difference.low, difference.high]).all()


def test_where_no_patient_differs_the_interval_reaches_to_what_could_have_stayed_unseen():
    """With 0 of 12 patients differing, at most 26.5 % of patients differ: scipy's limit for 0 of 12."""
    hits, counts = np.repeat([1.0, 0, 2], 4), np.full(12, 2.0)
    interval = rate_difference_interval(hits, hits, counts)
    unseen = binomtest(0, 12).proportion_ci(0.95, "exact").high
    assert (interval.value, interval.low, interval.high) == (0, pytest.approx(-unseen), pytest.approx(unseen))


def test_a_difference_by_zou_and_donners_formula():
    counts = np.ones(20)
    first, second = np.repeat([1.0, 0], [14, 6]), np.repeat([1.0, 0], [9, 11])
    one, other = rate_interval(first, counts), rate_interval(second, counts)
    correlation = float(np.corrcoef(first, second)[0, 1]) * (1 - 2 / 20)
    down, up = one.value - one.low, other.high - other.value
    interval = rate_difference_interval(first, second, counts)
    assert interval.low == pytest.approx(0.25 - math.sqrt(down**2 + up**2 - 2 * correlation * down * up))
    swapped = rate_difference_interval(second, first, counts)
    assert (swapped.low, swapped.high) == pytest.approx((-interval.high, -interval.low))


def test_values_that_are_no_hits_are_refused():
    with pytest.raises(ValueError, match="between 0 and their count"):
        rate_interval(np.array([3.0, 1]), np.array([2.0, 2]))
    with pytest.raises(ValueError, match="same length"):
        rate_interval(np.ones(3), np.ones(2))
