import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from sklearn.metrics import confusion_matrix

from heatcheck.metrics.pixels import (
    false_negative_pixels,
    false_positive_pixels,
    precision,
    recall,
    specificity,
    true_negative_pixels,
    true_positive_pixels,
)
from heatcheck.metrics.undefined import NO_REGION, NO_TRUTH, NOTHING_OUTSIDE

masks = arrays(bool, (2, 3, 2))
EMPTY, FULL = np.zeros((2, 3), dtype=bool), np.ones((2, 3), dtype=bool)
REGION = np.array([[True, True, False], [True, False, False]])
TRUTH = np.array([[True, False, False], [True, True, False]])


@settings(deadline=None)
@given(masks, masks)
def test_counts_are_the_confusion_matrix_of_the_pixels(region, truth):
    (tn, fp), (fn, tp) = confusion_matrix(truth.ravel(), region.ravel(), labels=[False, True])
    assert true_positive_pixels(region, truth).value == tp
    assert false_positive_pixels(region, truth).value == fp
    assert false_negative_pixels(region, truth).value == fn
    assert true_negative_pixels(region, truth).value == tn


def test_rates_worked_by_hand():
    assert precision(REGION, TRUTH[:, ::1]).value == 2 / 3
    assert recall(REGION, TRUTH).value == 2 / 3
    assert specificity(REGION, TRUTH).value == 2 / 3
    assert recall(REGION, FULL).value == 3 / 6
    assert precision(FULL, TRUTH).value == 3 / 6
    assert specificity(FULL, TRUTH).value == 0


@settings(deadline=None)
@given(masks, masks)
def test_rates_follow_from_the_counts(region, truth):
    tp, fp = true_positive_pixels(region, truth).value, false_positive_pixels(region, truth).value
    fn, tn = false_negative_pixels(region, truth).value, true_negative_pixels(region, truth).value
    for rate, part, rest in [(precision, tp, fp), (recall, tp, fn), (specificity, tn, fp)]:
        score = rate(region, truth)
        assert score.value == pytest.approx(part / (part + rest)) if part + rest else math.isnan(score.value)


def test_rates_without_anything_to_divide_by_are_undefined_with_their_own_reason():
    assert precision(EMPTY, TRUTH).reason == NO_REGION
    assert recall(REGION, EMPTY).reason == NO_TRUTH
    assert specificity(REGION, FULL).reason == NOTHING_OUTSIDE


def test_wrong_region_on_a_healthy_image_has_no_precision_at_all():
    assert precision(REGION, EMPTY).value == 0
    assert specificity(REGION, EMPTY).value == 0.5
