import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.stats.krippendorff import ALL_ALIKE, NO_PAIR, krippendorff_alpha

_ = math.nan
# four readers and twelve units: Krippendorff 2011, example C
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T


def alpha(ratings, clusters=None, draws=50):
    ratings = np.asarray(ratings, float)
    clusters = np.arange(len(ratings)) if clusters is None else clusters
    return krippendorff_alpha(ratings, np.asarray(clusters), draws, np.random.default_rng(0))


def by_pairs(ratings):
    """The definition, one pair of ratings at a time."""
    units = [unit[~np.isnan(unit)] for unit in ratings]
    units = [unit for unit in units if len(unit) >= 2]
    every = np.concatenate(units)
    n = len(every)
    observed = sum((a - b) ** 2 / (len(unit) - 1) for unit in units for a in unit for b in unit) / n
    expected = sum((a - b) ** 2 for a in every for b in every) / (n * (n - 1))
    return 1 - observed / expected


def test_published_example():
    assert alpha(PUBLISHED).value == pytest.approx(0.849, abs=5e-4)


def test_alpha_worked_by_hand():
    """Two units, ratings 0, 10 and 10, 10: observed (2·100)/4 = 50; expected 2·3·100/(4·3) = 50."""
    assert alpha([[0, 10], [10, 10]]).value == pytest.approx(0)


cells = st.one_of(st.integers(0, 100).map(float), st.just(math.nan))


@given(arrays(float, st.tuples(st.integers(2, 7), st.integers(2, 4)), elements=cells))
def test_alpha_is_the_definition(ratings):
    paired = ratings[(~np.isnan(ratings)).sum(1) >= 2]
    estimate = alpha(ratings)
    if not len(paired):
        assert estimate.reason == NO_PAIR
    elif np.nanmin(paired) == np.nanmax(paired):
        assert estimate.reason == ALL_ALIKE
    else:
        assert estimate.value == pytest.approx(by_pairs(ratings), abs=1e-9)


def test_agreement_is_1_and_the_scale_does_not_matter():
    ratings = np.random.default_rng(1).random((20, 1)) * 100
    assert alpha(np.hstack([ratings, ratings])).value == pytest.approx(1)
    noisy = np.hstack([ratings, ratings + np.random.default_rng(2).normal(0, 10, (20, 1))])
    assert alpha(noisy).value == pytest.approx(alpha(1e4 + noisy / 7).value)


def test_interval_draws_patients_and_not_units():
    """Ten patients whose ten units are copies know no more than ten units."""
    generator = np.random.default_rng(3)
    ratings = generator.normal(50, 20, (10, 1)) + generator.normal(0, 10, (10, 2))
    copies, patients = np.repeat(ratings, 10, 0), np.repeat(np.arange(10), 10)
    alone, together, as_units = alpha(ratings, draws=2000), alpha(copies, patients, 2000), alpha(copies, draws=2000)
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.15)
    assert as_units.high - as_units.low < 0.6 * (together.high - together.low)
    assert together.low < together.value < together.high


def test_nothing_in_common_and_no_difference_are_undefined():
    assert alpha([[1, _], [_, 2]]).reason == NO_PAIR
    assert math.isnan(alpha([[1, _], [_, 2]]).value)
    assert alpha([[5, 5], [5, 5]]).reason == ALL_ALIKE


def test_ratings_without_their_patients_are_refused():
    with pytest.raises(ValueError, match="one row per unit"):
        krippendorff_alpha(np.ones((3, 2)), np.arange(2), 10, np.random.default_rng(0))
