import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.metrics import METRIC_FACTS
from heatcheck.metrics.modality.msfi import NO_WEIGHTS, NONE_IMPORTANT, msfi, sums_of, weights_of

PUBLISHED_FEATURE = np.array([0.01, 0.22, -0.02, 0.17])  # T1, T1C, T2, FLAIR in fold 1


def two_by_two_by_two():
    """Two modalities of 2×2 voxels each, with a lesion of one voxel in the first and two in the second."""
    values = np.array([[[4, 1], [-3, 3]], [[0, 5], [2, 3]]], np.float32)
    masks = np.array([[[1, 0], [0, 0]], [[1, 1], [0, 0]]], bool)
    return values, masks


def test_score_worked_by_hand():
    """Inside: 4 of 8 and 5 of 10; with weights 1 and 3 (0.5 + 3·0.5) / 4."""
    sums, inside = sums_of(*two_by_two_by_two())
    np.testing.assert_array_equal(sums, [8, 10])
    np.testing.assert_array_equal(inside, [4, 5])
    assert msfi(sums, inside, np.array([1.0, 3.0])).value == 0.5
    values, masks = two_by_two_by_two()
    values[0, 0, 0] = 0  # now 0 of 4 in the first, which weighs a quarter
    assert msfi(*sums_of(values, masks), np.array([1.0, 3.0])).value == pytest.approx(3 * 0.5 / 4)


def test_published_importance_of_fold_1_gives_the_published_weights():
    np.testing.assert_allclose(weights_of(PUBLISHED_FEATURE, "min_max"), [0.12, 1.00, 0.00, 0.79], atol=0.0051)


def test_recommended_weights_are_the_importances_without_the_negative_ones():
    np.testing.assert_array_equal(weights_of(PUBLISHED_FEATURE, "positive"), [0.01, 0.22, 0, 0.17])


def test_modality_with_an_empty_map_counts_as_a_miss():
    assert msfi(np.array([0.0, 2.0]), np.array([0.0, 2.0]), np.array([1.0, 1.0])).value == 0.5
    assert msfi(np.zeros(2), np.zeros(2), np.array([1.0, 1.0])).value == 0


@pytest.mark.parametrize("rule", ["min_max", "positive"])
@pytest.mark.parametrize("importance", [[0.2, 0.2], [0.0, 0.0], [0.1, math.nan]])
def test_importance_that_is_constant_or_unknown_leaves_the_score_undefined(importance, rule):
    score = msfi(np.ones(2), np.ones(2), weights_of(np.array(importance), rule))
    assert math.isnan(score.value)
    assert score.reason == NO_WEIGHTS


def test_importance_that_is_never_positive_leaves_the_recommended_score_undefined():
    score = msfi(np.ones(2), np.ones(2), weights_of(np.array([-0.1, 0.0]), "positive"))
    assert math.isnan(score.value)
    assert score.reason == NONE_IMPORTANT
    assert msfi(np.ones(2), np.ones(2), weights_of(np.array([-0.1, 0.0]), "min_max")).value == 1


def test_one_channel_stands_for_all_modalities():
    values, masks = two_by_two_by_two()
    alone, copied = sums_of(values[:1], masks), sums_of(np.repeat(values[:1], 2, 0), masks)
    np.testing.assert_array_equal(alone.sums, copied.sums)
    np.testing.assert_array_equal(alone.inside, copied.inside)
    np.testing.assert_array_equal(alone.inside, [4, 5])


maps = arrays(np.float32, (3, 4, 5), elements=st.floats(-8, 8, width=16))
lesions = arrays(bool, (3, 4, 5))
importances = arrays(float, 3, elements=st.floats(0, 1, width=16)).filter(lambda w: np.ptp(w) > 0)


@given(maps, lesions, importances)
def test_score_lies_between_the_least_and_the_largest_share(values, masks, importance):
    sums, inside = sums_of(values, masks)
    shares = np.divide(inside, sums, out=np.zeros(3), where=sums > 0)
    score = msfi(sums, inside, weights_of(importance, "positive")).value
    assert shares.min() - 1e-9 <= score <= shares.max() + 1e-9
    assert 0 <= score <= 1 + 1e-9


@given(maps, lesions, importances, st.integers(1, 9), st.integers(0, 2))
def test_scale_of_one_modality_and_negative_values_do_not_matter(values, masks, importance, scale, modality):
    before = msfi(*sums_of(values, masks), weights_of(importance, "min_max")).value
    changed = np.maximum(values, 0)
    changed[modality] *= scale
    assert msfi(*sums_of(changed, masks), weights_of(importance, "min_max")).value == pytest.approx(before, abs=1e-6)


@given(maps, importances)
def test_map_inside_the_lesion_scores_1_and_outside_0(values, importance):
    weights = weights_of(importance, "positive")
    values = np.abs(values) + 1
    assert msfi(*sums_of(values, np.ones(values.shape, bool)), weights).value == pytest.approx(1)
    assert msfi(*sums_of(values, np.zeros(values.shape, bool)), weights).value == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_map_that_is_not_finite_is_refused(bad):
    values, masks = two_by_two_by_two()
    values[0, 1, 1] = bad
    with pytest.raises(ValueError, match="finite"):
        sums_of(values, masks)


def test_other_grids_other_numbers_of_channels_and_masks_of_numbers_are_refused():
    values, masks = two_by_two_by_two()
    with pytest.raises(ValueError, match=r"share one grid.*\(2, 2, 1\) and \(2, 2, 2\)"):
        sums_of(values[..., :1], masks)
    with pytest.raises(ValueError, match="one channel or one per modality"):
        sums_of(values, np.concatenate([masks, masks]))
    with pytest.raises(ValueError, match="masks of booleans, got uint8"):
        sums_of(values, masks.astype(np.uint8))
    with pytest.raises(ValueError, match="not be negative"):
        msfi(np.ones(2), np.ones(2), np.array([1.0, -1.0]))


def test_map_of_a_whole_head_is_scored_in_half_a_second():
    """4×240×240×155; processor time, because others may use the machine."""
    shape = (4, 240, 240, 155)
    values = np.zeros(shape, np.float32)
    values[:, 60:180, 50:190, 30:120] = np.random.default_rng(0).random((4, 120, 140, 90), np.float32)
    masks = np.zeros(shape, bool)
    masks[:, 100:140, 100:150, 60:90] = True
    weights = weights_of(PUBLISHED_FEATURE, "positive")
    before = time.process_time()
    score = msfi(*sums_of(values, masks), weights)
    assert time.process_time() - before < 0.5
    assert 0 < score.value < 1


def test_score_is_explained():
    assert METRIC_FACTS["msfi"].higher_is_better
