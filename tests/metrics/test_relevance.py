import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.metrics.relevance import _kth_largest, mass, rank
from heatcheck.metrics.undefined import NO_RELEVANCE, NO_TRUTH

truths = arrays(bool, (3, 4)).filter(np.any)
tied_maps = arrays(np.float32, (3, 4), elements=st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0])).filter(
    lambda m: m.max() > 0
)
maps = arrays(np.float32, (3, 4), elements=st.floats(-8, 8, width=32, allow_subnormal=False)).filter(
    lambda m: m.max() > 1e-3
)

RELEVANCE = np.array([[4.0, 1.0, -9.0], [0.0, 3.0, 2.0]], dtype=np.float32)
TRUTH = np.array([[True, False, True], [False, False, True]])


def test_scores_worked_by_hand():
    assert mass(RELEVANCE, TRUTH).value == 6 / 10
    assert rank(RELEVANCE, TRUTH).value == 2 / 3  # the top three are 4, 3, 2: two of them in the truth


def test_ties_for_the_last_place_share_it():
    relevance = np.array([[5.0, 2.0, 2.0, 2.0, 0.0]])
    truth = np.array([[True, True, False, False, False]])
    assert rank(relevance, truth).value == pytest.approx((1 + 1 / 3) / 2)


def test_zeros_that_are_needed_to_fill_the_places_tie_with_each_other():
    relevance = np.array([[5.0, -1.0, 0.0, -7.0]])
    truth = np.array([[True, True, False, False]])
    assert rank(relevance, truth).value == pytest.approx((1 + 1 / 3) / 2)


@settings(deadline=None)
@given(tied_maps, truths)
def test_rank_is_the_mean_over_all_ways_to_break_ties(relevance, truth):
    positive, inside, size = np.maximum(relevance, 0).ravel(), truth.ravel(), int(truth.sum())
    last = np.sort(positive)[-size]
    certain, tied = np.flatnonzero(positive > last), np.flatnonzero(positive == last)
    ways = itertools.combinations(tied, size - len(certain))
    shares = [inside[[*certain, *way]].mean() for way in itertools.islice(ways, 1000)]
    assert rank(relevance, truth).value == pytest.approx(np.mean(shares))


@settings(deadline=None)
@given(maps, truths)
def test_mass_is_the_sum_inside_over_the_sum(relevance, truth):
    inside = sum(max(0.0, float(v)) for v in relevance[truth])
    everything = sum(max(0.0, float(v)) for v in relevance.ravel())
    assert mass(relevance, truth).value == pytest.approx(inside / everything)


@settings(deadline=None)
@given(maps, truths, st.sampled_from([0.25, 8.0]))
def test_scaling_a_map_changes_neither_score(relevance, truth, factor):
    assert mass(relevance * factor, truth).value == pytest.approx(mass(relevance, truth).value)
    assert rank(relevance * factor, truth) == rank(relevance, truth)


@settings(deadline=None)
@given(maps, truths)
def test_mass_inside_and_outside_add_up_to_one(relevance, truth):
    if truth.all():
        assert mass(relevance, truth).value == 1
    else:
        assert mass(relevance, truth).value + mass(relevance, ~truth).value == pytest.approx(1)


@settings(deadline=None)
@given(truths)
def test_truth_as_its_own_map_scores_one(truth):
    assert mass(truth.astype(np.float32), truth).value == 1
    assert rank(truth.astype(np.float32), truth).value == 1


@settings(deadline=None)
@given(truths)
def test_flat_map_scores_the_share_of_the_image_that_is_truth(truth):
    flat = np.full(truth.shape, 0.3, dtype=np.float32)
    assert mass(flat, truth).value == pytest.approx(truth.mean())
    assert rank(flat, truth).value == pytest.approx(truth.mean())


@pytest.mark.parametrize("score", [mass, rank])
def test_no_truth_and_no_positive_relevance_are_undefined(score):
    none = np.zeros((2, 3), dtype=bool)
    assert score(RELEVANCE, none).reason == NO_TRUTH
    for without_relevance in (np.zeros((2, 3)), np.full((2, 3), -1.0)):
        assert math.isnan(score(without_relevance, TRUTH).value)
        assert score(without_relevance, TRUTH).reason == NO_RELEVANCE


@pytest.mark.parametrize("score", [mass, rank])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_map_with_a_value_that_is_no_number_is_refused(score, bad):
    relevance = RELEVANCE.copy()
    relevance[1, 1] = bad
    with pytest.raises(ValueError, match="finite numbers only"):
        score(relevance, TRUTH)


def test_small_values_beside_a_large_one_are_not_lost_in_the_sum():
    relevance = np.ones((1, 1000), dtype=np.float32)
    relevance[0, 0] = 2**24  # where float32 can no longer count by ones
    truth = np.zeros(relevance.shape, dtype=bool)
    truth[0, :500] = True
    assert mass(relevance, truth).value == (2**24 + 499) / (2**24 + 999)


@pytest.mark.parametrize("kind", ["smooth", "plateaus", "one value", "many magnitudes", "negative zeros"])
def test_the_last_place_is_found_as_by_sorting(kind: str) -> None:
    generator = np.random.default_rng(5)
    for _ in range(100):
        size = int(generator.integers(1, 300))
        values = {
            "smooth": generator.random(size),
            "plateaus": generator.integers(0, 4, size) / 3,
            "one value": np.full(size, 0.25),
            "many magnitudes": generator.random(size) * 10.0 ** generator.integers(-44, 38, size),
            "negative zeros": np.where(generator.random(size) < 0.5, -0.0, 0.5),
        }[kind].astype(np.float32)
        k = int(generator.integers(1, size + 1))
        assert _kth_largest(values, k) == np.sort(values)[::-1][k - 1]


@given(
    arrays(bool, (3, 4), elements=st.booleans()),
    arrays(bool, (3, 4), elements=st.booleans()),
)
def test_a_region_scores_like_the_map_of_one_height_it_is(region, truth):
    for score in (mass, rank):
        from_sizes, from_map = score(region, truth), score(region.astype(np.float32), truth)
        assert from_sizes.reason == from_map.reason
        assert from_sizes.value == pytest.approx(from_map.value, nan_ok=True)
