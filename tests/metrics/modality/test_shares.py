import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau

from heatcheck.metrics.modality.msfi import sums_of
from heatcheck.metrics.modality.shares import (
    NO_CLEAR_PAIR,
    NO_MAP_HERE,
    SAME_IMPORTANCE,
    SAME_SUMS,
    UNKNOWN_IMPORTANCE,
    chance_of_order,
    clear_correlation,
    inside_share,
    lesion_share,
    median_iou,
    mi_correlation,
    modality_sum,
    uniform_sums,
)
from heatcheck.metrics.undefined import NO_RELEVANCE, NO_TRUTH


def test_correlation_worked_by_hand():
    """Of six pairs, five go together and one against; without ties that is 4 / 6."""
    assert mi_correlation(np.array([1.0, 4, 2, 3]), np.array([10.0, 40, 30, 20])).value == pytest.approx(4 / 6)
    assert mi_correlation(np.array([1.0, 2, 3]), np.array([3.0, 2, 1])).value == -1


few_levels = st.integers(2, 6).flatmap(
    lambda n: st.tuples(*[arrays(float, n, elements=st.integers(0, 3).map(float))] * 2)
)


@given(few_levels)
def test_correlation_is_scipys_tau_b_ties_and_all(both):
    score = mi_correlation(*both)
    if np.ptp(both[0]) == 0 or np.ptp(both[1]) == 0:
        assert math.isnan(score.value)
        assert score.reason
    else:
        assert score.value == pytest.approx(kendalltau(*both, variant="b").statistic, abs=1e-12)


def test_constant_or_unknown_importance_and_constant_sums_are_undefined_each_for_its_reason():
    ranked = np.array([1.0, 2.0])
    assert mi_correlation(np.ones(2), ranked).reason == SAME_IMPORTANCE
    assert mi_correlation(np.array([1, np.nan]), ranked).reason == UNKNOWN_IMPORTANCE
    assert mi_correlation(ranked, np.ones(2)).reason == SAME_SUMS
    assert mi_correlation(ranked, np.zeros(2)).reason == NO_RELEVANCE


def test_shares_worked_by_hand():
    sums, inside = np.array([8.0, 0, 2]), np.array([2.0, 0, 2])
    assert lesion_share(sums, inside).value == 0.4
    assert [share.value for share in modality_sum(sums)] == [0.8, 0, 0.2]
    shares = inside_share(sums, inside)
    assert [shares[0].value, shares[2].value] == [0.25, 1]
    assert math.isnan(shares[1].value)
    assert shares[1].reason == NO_MAP_HERE


def test_shares_of_an_empty_map_are_undefined():
    empty = np.zeros(2)
    for score in (lesion_share(empty, empty), *modality_sum(empty)):
        assert math.isnan(score.value)
        assert score.reason == NO_RELEVANCE


def test_median_overlap_worked_by_hand():
    """Positive values 1, 2, 3, 4, 5: the median is 3, so 3, 4 and 5 count; the lesion holds 5 and a 0."""
    values = np.array([[[1, 2], [3, -9]], [[4, 5], [0, 0]]], np.float32)
    masks = np.array([[[0, 0], [0, 0]], [[0, 1], [1, 0]]], bool)
    assert median_iou(values, masks).value == pytest.approx(1 / 4)


def test_median_overlap_of_one_channel_is_that_of_its_copies():
    generator = np.random.default_rng(4)
    values, masks = generator.random((1, 5, 6)).astype(np.float32), generator.random((3, 5, 6)) > 0.6
    copied = np.repeat(values, 3, 0)
    assert median_iou(values, masks) == median_iou(copied, masks)
    region = copied >= np.median(copied)
    assert median_iou(values, masks).value == (region & masks).sum() / (region | masks).sum()


def test_map_that_equals_the_mask_overlaps_it_wholly():
    masks = np.zeros((2, 8, 8), bool)
    masks[:, 2:4, 2:4] = True
    for value in (1, 0.1):
        assert median_iou(np.where(masks, np.float32(value), 0), masks).value == 1


def test_rounding_at_the_median_does_not_change_the_overlap():
    """Nine voxels of one value, half of them a last bit lower: the median lies between them or at one of the two."""
    masks = np.zeros((1, 4, 4), bool)
    masks[0, :3, :3] = True
    values = masks * np.float32(0.7)
    rounded = values.copy()
    rounded[0, 0, :3] = rounded[0, 1, 0] = np.nextafter(np.float32(0.7), np.float32(0))
    assert median_iou(rounded, masks).value == median_iou(values, masks).value == 1


def test_empty_map_has_no_overlap_and_without_lesion_there_is_nothing_to_overlap():
    masks = np.ones((2, 3, 3), bool)
    assert median_iou(np.zeros((2, 3, 3), np.float32), masks).value == 0
    assert median_iou(np.ones((2, 3, 3), np.float32), ~masks).reason == NO_TRUTH
    with pytest.raises(ValueError, match="share one grid"):
        median_iou(np.ones((2, 3, 4), np.float32), masks)


def test_uniform_map_is_the_head_in_every_modality():
    head = np.zeros((4, 4), bool)
    head[1:4, 1:4] = True
    masks = np.zeros((2, 4, 4), bool)
    masks[0, :2, :2] = True
    masks[1, 2, 2:] = True
    floor, drawn = uniform_sums(head, masks), sums_of(np.stack([head, head]).astype(np.float32), masks)
    np.testing.assert_array_equal(floor.sums, drawn.sums)
    np.testing.assert_array_equal(floor.inside, drawn.inside)
    np.testing.assert_array_equal(floor.inside, [1, 2])
    each = uniform_sums(np.stack([head, np.zeros_like(head)]), masks)
    np.testing.assert_array_equal(each.sums, [9, 0])


CLEAR = np.array([1.0, 1, 1, 0, 0, 0])  # the first of four modalities above the others, which are tied


@pytest.mark.parametrize(
    ("heat", "expected"),
    [
        ((0.4, 0.3, 0.2, 0.1), 1.0),
        ((0.4, 0.1, 0.2, 0.3), 1.0),  # the order of the tied ones does not matter
        ((0.3, 0.4, 0.2, 0.1), 1 / 3),
        ((0.1, 0.2, 0.3, 0.4), -1.0),
        ((0.3, 0.3, 0.2, 0.2), 2 / 3),  # the same heat is neither
    ],
)
def test_pairs_without_a_clear_order_do_not_count(heat, expected):
    assert clear_correlation(CLEAR, np.array(heat)).value == pytest.approx(expected)


def test_a_clear_order_of_all_pairs_is_kendalls_tau():
    generator = np.random.default_rng(4)
    for _ in range(20):
        importance, heat = generator.random((2, 5))
        signs = np.sign(importance[:, None] - importance)[np.triu_indices(5, 1)]
        expected = kendalltau(importance, heat).statistic
        assert clear_correlation(signs, heat).value == pytest.approx(expected)
        assert mi_correlation(importance, heat).value == pytest.approx(expected)


def test_without_a_clear_pair_there_is_no_correlation():
    measured = clear_correlation(np.zeros(6), np.array([0.4, 0.3, 0.2, 0.1]))
    assert np.isnan(measured.value)
    assert measured.reason == NO_CLEAR_PAIR


@pytest.mark.parametrize(
    ("signs", "above", "every"),
    [
        ((1, 1, 1, 1, 1, 1), 9 / 24, 1 / 24),  # 1 + 3 + 5 of 24 orders have four pairs of six or more in order
        (CLEAR, 1 / 2, 1 / 4),  # the first is among the two hottest, or the hottest
        ((0, 0, 0, 0, 0, 1), 1 / 2, 1 / 2),
    ],
)
def test_chance_of_an_order_is_counted_over_all_orders(signs, above, every):
    found = chance_of_order(np.array(signs, float), 4, np.random.default_rng(0))
    assert (found.above_zero, found.all_pairs, found.orders) == (pytest.approx(above), pytest.approx(every), 24)


def test_chance_of_an_order_of_many_modalities_is_drawn():
    signs = np.zeros(45)
    signs[0] = 1  # one clear pair of ten modalities
    assert chance_of_order(signs, 10, np.random.default_rng(0)).above_zero == pytest.approx(0.5, abs=0.02)
