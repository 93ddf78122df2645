import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.metrics.pointing import hit, hit_margin
from heatcheck.metrics.undefined import NO_PEAK, NO_TRUTH


def only(shape, *positions):
    mask = np.zeros(shape, dtype=bool)
    for position in positions:
        mask[position] = True
    return mask


def test_peak_inside_is_a_hit_and_outside_a_miss():
    truth = only((4, 4), (1, 1), (1, 2))
    assert hit(only((4, 4), (1, 2)), truth).value == 1
    assert hit(only((4, 4), (2, 2)), truth).value == 0


def test_tied_peaks_share_the_hit():
    truth = only((4, 4), (1, 1), (1, 2))
    assert hit(only((4, 4), (1, 2), (0, 0), (3, 3), (3, 2)), truth).value == 1 / 4


def test_flat_map_scores_the_size_of_the_truth():
    assert hit(np.ones((4, 4), dtype=bool), only((4, 4), (1, 1), (1, 2))).value == 2 / 16


@pytest.mark.parametrize("score", [hit, hit_margin])
def test_no_truth_and_no_peak_are_undefined_with_a_reason(score):
    one, none = only((4, 4), (0, 0)), only((4, 4))
    assert math.isnan(score(one, none).value)
    assert score(one, none).reason == NO_TRUTH
    assert score(none, one).reason == NO_PEAK


def test_margin_is_a_distance_in_shares_of_the_longer_side():
    truth = only((50, 100), (20, 20))
    for away, expected in [((20, 23), 1), ((17, 20), 1), ((22, 22), 1), ((20, 24), 0), ((22, 23), 0)]:
        assert hit_margin(only((50, 100), away), truth, 0.03).value == expected


def test_default_margin_is_fifteen_pixels_on_five_hundred():
    truth = only((300, 500), (100, 100))
    assert hit_margin(only((300, 500), (100, 115)), truth).value == 1
    assert hit_margin(only((300, 500), (100, 116)), truth).value == 0


def test_margin_that_falls_short_by_a_rounding_error_still_reaches():
    assert 0.29 * 100 < 29
    for shape in ((100, 100), (100, 2, 2)):
        first, away = (0,) * len(shape), (29,) + (0,) * (len(shape) - 1)
        assert hit_margin(only(shape, away), only(shape, first), 0.29).value == 1


def test_margin_in_a_volume_is_a_ball():
    truth = only((20, 20, 20), (10, 10, 10))
    assert hit_margin(only((20, 20, 20), (11, 12, 12)), truth, 0.15).value == 1
    assert hit_margin(only((20, 20, 20), (12, 12, 12)), truth, 0.15).value == 0


@pytest.mark.parametrize("shape", [(9, 7), (4, 6, 5)])
@given(data=st.data(), margin=st.floats(0, 1))
@settings(deadline=None, max_examples=40)
def test_margin_equals_measuring_every_pair_of_pixels(shape, data, margin):
    peaks, truth = (data.draw(arrays(bool, shape).filter(np.any)) for _ in range(2))
    reach = round(margin * max(shape), 6)
    near = [min(math.dist(peak, other) for other in np.argwhere(truth)) <= reach for peak in np.argwhere(peaks)]
    assert hit_margin(peaks, truth, margin).value == pytest.approx(np.mean(near))


@settings(deadline=None)
@given(arrays(bool, (5, 6)).filter(np.any), arrays(bool, (5, 6)).filter(np.any))
def test_margin_of_zero_is_the_plain_hit(peaks, truth):
    assert hit_margin(peaks, truth, 0.0) == hit(peaks, truth)
