import math

import numpy as np
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from heatcheck.metrics.boxes import box_iou
from heatcheck.metrics.overlap import iou
from heatcheck.metrics.undefined import NO_TRUTH


def region(*boxes, shape=(10, 12)):
    mask = np.zeros(shape, bool)
    for box in boxes:
        mask[box] = True
    return mask


def test_box_iou_worked_by_hand():
    truth = region((slice(2, 6), slice(2, 6)))
    cross = region((slice(2, 6), 3), (4, slice(2, 6)))
    assert box_iou(cross, truth).value == 1
    assert iou(cross, truth).value == 7 / 16
    assert box_iou(region((slice(2, 6), slice(4, 8))), truth).value == 8 / 24
    assert box_iou(truth | region((9, 11)), truth).value == 16 / 17


def test_an_empty_region_scores_zero_and_no_truth_is_undefined():
    truth, empty = region((0, 0)), region()
    assert box_iou(empty, truth).value == 0
    assert math.isnan(box_iou(truth, empty).value)
    assert box_iou(truth, empty).reason == NO_TRUTH


def test_boxes_in_volumes_are_compared_too():
    truth = region((slice(0, 2), slice(0, 2), slice(0, 2)), shape=(4, 4, 4))
    diagonal = np.zeros((4, 4, 4), bool)
    diagonal[0, 0, 0] = diagonal[1, 1, 1] = True
    assert box_iou(diagonal, truth).value == 1


@settings(deadline=None)
@given(arrays(bool, (5, 6)), arrays(bool, (5, 6)).filter(np.any))
def test_box_iou_does_not_depend_on_who_comes_first(marked, truth):
    there, back = box_iou(marked, truth), box_iou(truth, marked)
    assert 0 <= there.value <= 1
    assert there.value == back.value or not marked.any()
    assert box_iou(truth, truth).value == 1
