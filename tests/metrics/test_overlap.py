import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.metrics.overlap import dice, iou, iou_full
from heatcheck.metrics.undefined import NO_TRUTH, NOTHING_MARKED

masks = arrays(bool, (3, 4))
EMPTY = np.zeros((3, 4), dtype=bool)
LEFT = np.arange(4).reshape(1, 4).repeat(3, axis=0) < 2  # 6 pixels
TOP = np.arange(3).reshape(3, 1).repeat(4, axis=1) < 1  # 4 pixels, 2 of them also in LEFT


def test_overlap_worked_by_hand():
    assert iou(LEFT, TOP).value == 2 / 8
    assert iou_full(LEFT, TOP).value == 2 / 8
    assert dice(LEFT, TOP).value == 4 / 10


def test_empty_region_on_a_positive_case_scores_zero():
    assert iou(EMPTY, TOP).value == 0
    assert iou_full(EMPTY, TOP).value == 0
    assert dice(EMPTY, TOP).value == 0


def test_region_on_a_case_without_truth_scores_zero_on_the_full_slice_only():
    assert iou_full(LEFT, EMPTY).value == 0
    for score in (iou(LEFT, EMPTY), dice(LEFT, EMPTY)):
        assert math.isnan(score.value)
        assert score.reason == NO_TRUTH


def test_nothing_marked_by_either_is_undefined():
    assert math.isnan(iou_full(EMPTY, EMPTY).value)
    assert iou_full(EMPTY, EMPTY).reason == NOTHING_MARKED
    assert iou(EMPTY, EMPTY).reason == NO_TRUTH


@settings(deadline=None)
@given(masks, masks.filter(np.any))
def test_overlap_equals_counting_pixels_as_sets(region, truth):
    first, second = (set(zip(*np.nonzero(mask), strict=True)) for mask in (region, truth))
    expected = len(first & second) / len(first | second)
    assert iou(region, truth).value == iou_full(region, truth).value == expected
    assert dice(region, truth).value == pytest.approx(2 * expected / (1 + expected))


@settings(deadline=None)
@given(st.integers(1, 12))
def test_region_equal_to_the_truth_scores_one(size):
    truth = (np.arange(12) < size).reshape(3, 4)
    assert iou(truth, truth).value == iou_full(truth, truth).value == dice(truth, truth).value == 1
