"""Scores from counted pixels are the scores of the masks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.metrics import METRICS
from heatcheck.metrics.counting import overlap

COUNTED = sorted(name for name, metric in METRICS.items() if metric.of_overlap)
masks = arrays(bool, (3, 4), elements=st.booleans())


def test_what_is_counted() -> None:
    shared = overlap(np.array([[1, 1, 0]], bool), np.array([[0, 1, 1]], bool))
    assert (shared.inside, shared.region, shared.truth, shared.grid, shared.either) == (1, 2, 2, 3, 3)


@given(masks, masks)
def test_every_score_of_a_region_follows_from_the_counts(region, truth) -> None:
    for name in COUNTED:
        metric = METRICS[name]
        assert metric.of_overlap(overlap(region, truth)).value == pytest.approx(
            metric.measure(region, truth).value, nan_ok=True
        )


@given(masks)
def test_no_truth_is_an_empty_truth(region) -> None:
    assert overlap(region, None) == overlap(region, np.zeros(region.shape, bool))


def test_overlap_dice_rates_and_counts_are_among_them() -> None:
    assert {"iou", "iou_full", "dice", "precision", "recall", "specificity", "true_negative_pixels"} <= set(COUNTED)
