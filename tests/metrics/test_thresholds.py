"""Every threshold from one look at the map, pixel for pixel what each would cut out by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatcheck.metrics.overlap import iou
from heatcheck.metrics.thresholds import THRESHOLDS, threshold_counts
from heatcheck.regions.fixed import fixed_region


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(5, 7), (300, 211), (4, 5, 6)]), st.floats(0, 1))
def test_counts_are_those_of_each_region_by_itself(seed, shape, share):
    generator = np.random.default_rng(seed)
    values = generator.random(shape, np.float32)
    on_grid = generator.random(shape) < 0.3  # values that lie on a threshold are not above it
    values[on_grid] = np.asarray(THRESHOLDS, np.float32)[generator.integers(0, 7, on_grid.sum())]
    truth = generator.random(shape) < share
    counts = threshold_counts(values, truth)
    for number, threshold in enumerate(THRESHOLDS):
        region = fixed_region(values, threshold)
        assert counts.region[number] == region.sum()
        assert counts.inside[number] == (region & truth).sum()
        np.testing.assert_equal(counts.ious[number], iou(region, truth).value)
    assert counts.truth == truth.sum()


def test_an_empty_region_scores_0_and_no_truth_nan():
    flat = np.zeros((4, 4), np.float32)
    assert threshold_counts(flat, np.eye(4, dtype=bool)).ious.tolist() == [0.0] * 7
    assert np.isnan(threshold_counts(flat, np.zeros((4, 4), bool)).ious).all()


def test_a_map_on_another_grid_or_of_doubles_is_refused():
    with pytest.raises(ValueError, match="share one grid"):
        threshold_counts(np.zeros((4, 4), np.float32), np.zeros((4, 5), bool))
    with pytest.raises(ValueError, match="float32"):
        threshold_counts(np.zeros((4, 4)), np.zeros((4, 4), bool))
