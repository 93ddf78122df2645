import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from heatcheck.metrics.reliance import (
    NO_ANSWER,
    NO_ROOM,
    NO_SPREAD,
    Drops,
    reliance,
    reliance_added,
    reliance_placebo,
    separation,
    shifted_masks,
)
from heatcheck.metrics.undefined import NO_NEGATIVE, NO_POSITIVE, NO_TRUTH

SHAPES = st.one_of(st.tuples(*[st.integers(1, 12)] * 2), st.tuples(*[st.integers(1, 6)] * 3))
MASKS = arrays.arrays(bool, SHAPES, elements=st.booleans()) | SHAPES.flatmap(
    lambda shape: st.tuples(*[st.integers(0, size - 1) for size in shape]).map(lambda position: spot(shape, position))
)


def spot(shape, position):
    mask = np.zeros(shape, bool)
    mask[position] = True
    return mask


def drawn(mask, count=4, seed=1):
    return shifted_masks(mask, count, np.random.default_rng(seed))


def translations(mask):
    """Every region that is the mask moved without leaving the grid, and every one that comes back on the other side."""
    space = tuple(range(mask.ndim))
    inside, wrapped = set(), set()
    highs = [index.max() for index in np.nonzero(mask)]
    for move in np.ndindex(*mask.shape):
        moved = np.roll(mask, move, space)
        if (moved & mask).any():
            continue
        wrapped.add(moved.tobytes())
    lows = [index.min() for index in np.nonzero(mask)]
    for move in np.ndindex(*(2 * size for size in mask.shape)):
        steps = [index - size for index, size in zip(move, mask.shape, strict=True)]
        fits = all(
            low + step >= 0 and high + step < size
            for low, high, step, size in zip(lows, highs, steps, mask.shape, strict=True)
        )
        moved = np.roll(mask, steps, space)
        if fits and not (moved & mask).any():
            inside.add(moved.tobytes())
    return inside, wrapped


@given(MASKS, st.integers(1, 5))
def test_shifted_regions_are_moved_copies_clear_of_the_mask_and_all_different(mask, count):
    regions = drawn(mask, count)
    if not mask.any():
        assert regions == []
        return
    inside, wrapped = translations(mask)
    allowed = inside or wrapped
    assert len(regions) == min(count, len(allowed))
    assert len({region.tobytes() for region in regions}) == len(regions)
    for region in regions:
        assert region.dtype == np.bool_
        assert region.sum() == mask.sum()
        assert not (region & mask).any()
        assert region.tobytes() in allowed


def test_regions_stay_on_the_grid_where_they_can():
    mask = np.zeros((6, 9), bool)
    mask[1:3, 0:4] = True
    regions = drawn(mask, 1000)
    assert len({region.tobytes() for region in regions}) == len(regions) == 5 * 6 - 3 * 4
    for region in regions:
        rows, columns = np.nonzero(region)
        assert np.ptp(rows) == 1
        assert np.ptp(columns) == 3


def test_a_mask_that_cannot_stay_on_the_grid_wraps_around():
    mask = np.zeros((4, 8), bool)
    mask[:, 2:6] = True
    (region,) = drawn(mask)
    np.testing.assert_array_equal(region, ~mask)


def test_a_stripe_moved_along_itself_is_one_region_and_not_many():
    mask = np.zeros((5, 6), bool)
    mask[0] = mask[-1] = True
    assert {tuple(np.flatnonzero(region[:, 0])) for region in drawn(mask, 10)} == {(1, 2), (2, 3)}


def test_a_mask_over_half_of_the_grid_leaves_no_room():
    mask = np.ones((4, 6), bool)
    mask[0, :5] = False
    assert drawn(mask) == []


def test_the_same_generator_draws_the_same_regions_and_another_one_others():
    mask = np.zeros((32, 32), bool)
    mask[4:9, 20:24] = True
    stacks = [np.stack(drawn(mask, seed=seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(stacks[0], stacks[1])
    assert (stacks[0] != stacks[2]).any()


def test_every_free_place_is_drawn_about_as_often():
    mask = np.zeros((1, 5), bool)
    mask[0, 2] = True
    generator = np.random.default_rng(0)
    counts = sum(np.stack(shifted_masks(mask, 1, generator)).astype(int)[0, 0] for _ in range(4000))
    assert counts[2] == 0
    assert np.abs(counts[[0, 1, 3, 4]] - 1000).max() < 5 * math.sqrt(750)


PLAIN = Drops(0.0, np.full(3, -0.5), np.array([[0.0, -0.5, -0.1], [0.0, -0.2, -0.1], [0.0, 0.0, 0.0]]))
DROPS = Drops(
    3.0,
    np.array([1.0, 2.0, 0.0]),
    np.array([[3.0, 2.0, 1.0], [2.0, 4.0, 3.0], [3.0, 3.0, 3.0]]),
    absent=(PLAIN, Drops(1.0, np.full(3, 1.0), np.full((3, 3), 1.0))),
    added=np.array([2.0, 3.0]),
    swapped=np.array([0.0, 1.0]),
)


def test_reliance_worked_by_hand():
    """The area's drops are 2, 1, 3 (mean 2), the shifted regions' 0, 1, 2; 1, −1, 0; 0, 0, 0 (mean 1/3).

    Without the finding they are 0.5 and 0.1 on one film, and 0 and 0 on the other: 0.2 on average.
    """
    score = reliance(DROPS, spread=4.0)
    assert score.value == pytest.approx((2 - 1 / 3 - 0.2) / 4)
    assert score.reason == ""


def test_the_placebo_is_the_same_comparison_on_films_without_the_finding():
    assert reliance_placebo(DROPS, spread=4.0).value == pytest.approx(0.2 / 4)


def test_what_the_area_adds_to_films_without_the_finding_is_counted_beyond_the_seam():
    assert reliance_added(DROPS, spread=4.0).value == pytest.approx((2.5 - 0.5) / 4)


def test_a_model_that_falls_for_any_change_of_the_image_relies_on_nothing():
    plain = Drops(5.0, np.full(3, 1.0), np.full((4, 3), 1.0))
    assert reliance(replace(plain, absent=(plain,)), 1.0).value == 0.0


def test_a_model_to_which_that_place_matters_on_every_film_relies_on_nothing():
    """It falls by 2 at the area and by 0 elsewhere, whether the finding is there or not."""
    place = Drops(5.0, np.full(3, 3.0), np.full((4, 3), 5.0))
    assert reliance(replace(place, absent=(place, place)), 1.0).value == 0.0
    assert reliance_placebo(replace(place, absent=(place, place)), 1.0).value == 2.0


@given(st.floats(-50, 50), st.floats(0.1, 100))
def test_reliance_does_not_depend_on_the_logits_zero_or_unit(offset, unit):
    def moved(one):
        values = {
            name: getattr(one, name) * unit + offset for name in ("whole", "replaced", "elsewhere", "added", "swapped")
        }
        return Drops(**values, absent=tuple(map(moved, one.absent)))

    for measure in (reliance, reliance_placebo, reliance_added):
        assert measure(moved(DROPS), 4.0 * unit).value == pytest.approx(measure(DROPS, 4.0).value, abs=1e-6)


@pytest.mark.parametrize(
    ("drops", "spread", "reason"),
    [
        (Drops(1.0, np.zeros(0), np.zeros((0, 3))), 1.0, NO_TRUTH),
        (Drops(1.0, np.zeros(3), np.zeros((0, 3))), 1.0, NO_ROOM),
        (Drops(1.0, np.zeros(3), np.zeros((4, 3))), 1.0, NO_NEGATIVE),
        (DROPS, 0.0, NO_SPREAD),
        (DROPS, math.nan, NO_ANSWER),
        (replace(DROPS, whole=math.nan), 1.0, NO_ANSWER),
        (replace(DROPS, replaced=np.array([0.0, math.inf, 0.0])), 1.0, NO_ANSWER),
        (replace(DROPS, absent=(replace(PLAIN, elsewhere=np.array([[0.0, math.nan]])),)), 1.0, NO_ANSWER),
        (replace(DROPS, added=np.array([0.0, math.nan])), 1.0, NO_ANSWER),
    ],
)
@pytest.mark.parametrize("measure", [reliance, reliance_placebo, reliance_added])
def test_reliance_that_does_not_exist_says_why(measure, drops, spread, reason):
    score = measure(drops, spread)
    assert math.isnan(score.value)
    assert score.reason == reason


def test_separation_worked_by_hand():
    """Positives have a mean of 3, negatives of 0; the uncertain image counts in the spread alone."""
    labels, logits = np.array([1.0, 1.0, 0.0, 0.0, -1.0]), np.array([2.0, 4.0, -1.0, 1.0, -1.0])
    assert separation(labels, logits).value == pytest.approx(3.0 / logits.std())


@pytest.mark.parametrize(
    ("labels", "logits", "reason"),
    [
        ([1.0, 1.0, math.nan], [1.0, 2.0, 3.0], NO_NEGATIVE),
        ([0.0, -1.0], [1.0, 2.0], NO_POSITIVE),
        ([0.0, 1.0], [1.0, 1.0], NO_SPREAD),
        ([0.0, 1.0], [1.0, math.nan], NO_ANSWER),
    ],
)
def test_separation_that_does_not_exist_says_why(labels, logits, reason):
    score = separation(np.array(labels), np.array(logits))
    assert math.isnan(score.value)
    assert score.reason == reason
