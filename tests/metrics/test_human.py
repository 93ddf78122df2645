import math

import numpy as np
import pytest

from heatcheck.core.records import Point
from heatcheck.metrics.human import points_inside
from heatcheck.metrics.undefined import NO_POINT, NO_TRUTH

TRUTH = np.zeros((4, 5), dtype=bool)
TRUTH[0, 0] = TRUTH[2, 3] = True


def points(*positions):
    return tuple(Point(position) for position in positions)


def test_share_of_the_points_inside_is_the_score():
    assert points_inside(points((2, 3), (2, 2), (1, 3), (0, 0)), TRUTH).value == 2 / 4


def test_coordinates_round_down_to_their_pixel():
    assert points_inside(points((2.99, 3.99)), TRUTH).value == 1
    assert points_inside(points((1.99, 3.5)), TRUTH).value == 0


@pytest.mark.parametrize("outside", [(-0.2, 0.0), (0.0, -0.2), (4.0, 0.0), (0.0, 5.0), (-2.0, -2.0)])
def test_point_beside_the_image_is_not_inside(outside):
    assert points_inside(points(outside), TRUTH).value == 0


def test_points_in_a_volume_have_three_coordinates():
    volume = np.stack([TRUTH, ~TRUTH])
    assert points_inside(points((1.5, 2.0, 3.0), (0.5, 2.0, 3.0)), volume).value == 0.5


def test_reader_who_marked_nothing_is_undefined_not_wrong():
    share = points_inside((), TRUTH)
    assert math.isnan(share.value)
    assert share.reason == NO_POINT


def test_case_without_truth_is_undefined():
    assert points_inside(points((0, 0)), np.zeros((4, 5), dtype=bool)).reason == NO_TRUTH


@pytest.mark.parametrize("bad", [(1.0,), (1.0, 1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0)])
def test_point_that_has_no_place_in_the_image_is_refused(bad):
    with pytest.raises(ValueError, match="2 finite coordinates"):
        points_inside(points(bad), TRUTH)
