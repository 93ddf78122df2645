import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.metrics.boxes import box_iou
from heatcheck.metrics.overlap import iou
from heatcheck.metrics.registry import METRIC_FACTS, Needs
from heatcheck.metrics.trigger_boxes import Planted, box_floors, box_scores, random_boxes
from heatcheck.metrics.undefined import NO_CHANGE


def box(*lines):
    return tuple(slice(*line) for line in lines)


def planted_in(mask, changed=None):
    lines = (np.flatnonzero(mask.any(axis=tuple({*range(mask.ndim)} - {axis}))) for axis in range(mask.ndim))
    around = tuple(slice(int(line[0]), int(line[-1]) + 1) for line in lines)
    return Planted(around, mask, mask if changed is None else changed)


def values_of(scores):
    return {name: measured.value for name, measured in scores.items()}


def every_place(sides, shape):
    starts = itertools.product(*(range(length - side + 1) for side, length in zip(sides, shape, strict=True)))
    return [tuple(slice(first, first + side) for first, side in zip(start, sides, strict=True)) for start in starts]


@st.composite
def images_with_triggers(draw):
    """A mask with something planted, what it changed, and a box, in two or three dimensions."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=2, max_size=3)))
    mask = draw(arrays(bool, shape).filter(np.any))
    changed = mask & draw(arrays(bool, shape))
    lines = []
    for length in shape:
        first = draw(st.integers(0, length - 1))
        lines.append((first, draw(st.integers(first + 1, length))))
    return planted_in(mask, changed), box(*lines)


def disc():
    """A plus sign of five pixels in a box of nine, planted into 6×8 pixels; one pixel had that grey already."""
    mask = np.zeros((6, 8), bool)
    mask[2, 3:6] = mask[1:4, 4] = True
    changed = mask.copy()
    changed[2, 3] = False
    return planted_in(mask, changed)


def test_scores_worked_by_hand():
    planted = disc()
    assert planted.box == box((1, 4), (3, 6))
    assert values_of(box_scores(box((2, 5), (4, 8)), planted)) == {
        "trigger_iou": 4 / (12 + 9 - 4),
        "trigger_mask_iou": 3 / (12 + 5 - 3),
        "overlap_difference": 1 / 48,
        "uncovered": 1 / 4,
        "box_area": 12 / 48,
    }


def test_the_triggers_own_box_is_perfect_but_for_pixels_that_do_not_fill_it():
    planted = disc()
    scores = values_of(box_scores(planted.box, planted))
    assert scores == {
        "trigger_iou": 1,
        "trigger_mask_iou": 5 / 9,
        "overlap_difference": 0,
        "uncovered": 0,
        "box_area": 9 / 48,
    }


def test_nothing_detected_scores_zero_and_leaves_all_uncovered_and_so_does_chance():
    planted = disc()
    scores = values_of(box_scores(None, planted))
    assert scores == {
        "trigger_iou": 0,
        "trigger_mask_iou": 0,
        "overlap_difference": 4 / 48,
        "uncovered": 1,
        "box_area": 0,
    }
    floors = values_of(box_floors(None, planted))
    assert floors == {f"{name}_floor": value for name, value in scores.items() if name != "box_area"}


def test_the_whole_image_covers_everything_and_so_does_chance():
    planted = disc()
    everything = box((0, 6), (0, 8))
    scores = values_of(box_scores(everything, planted))
    assert (scores["overlap_difference"], scores["uncovered"], scores["box_area"]) == (0, 0, 1)
    assert values_of(box_floors(everything, planted)) == {
        f"{name}_floor": value for name, value in scores.items() if name != "box_area"
    }


def test_a_trigger_that_changed_nothing_leaves_no_share_to_cover():
    planted = planted_in(disc().mask, np.zeros((6, 8), bool))
    for detected in (planted.box, None):
        scores, floors = box_scores(detected, planted), box_floors(detected, planted)
        assert math.isnan(scores["uncovered"].value)
        assert scores["uncovered"].reason == floors["uncovered_floor"].reason == NO_CHANGE
        assert scores["overlap_difference"].value == floors["overlap_difference_floor"].value == 0


def test_floor_worked_by_hand():
    """One planted pixel in the corner of 1×3: a box of two pixels covers it at one of its two places."""
    mask = np.array([[True, False, False]])
    floors = values_of(box_floors(box((0, 1), (1, 3)), planted_in(mask)))
    assert floors["trigger_iou_floor"] == floors["trigger_mask_iou_floor"] == (1 / 2 + 0) / 2
    assert floors["uncovered_floor"] == 1 / 2
    assert floors["overlap_difference_floor"] == pytest.approx(1 / 6)


@settings(deadline=None)
@given(images_with_triggers())
def test_scores_are_those_of_masks(drawn):
    planted, detected = drawn
    as_mask, around = np.zeros(planted.shape, bool), np.zeros(planted.shape, bool)
    as_mask[detected], around[planted.box] = True, True
    scores = box_scores(detected, planted)
    assert scores["trigger_iou"] == iou(as_mask, around) == box_iou(as_mask, around)
    assert scores["trigger_mask_iou"] == iou(as_mask, planted.mask)
    left = planted.changed & ~as_mask
    assert scores["overlap_difference"].value == left.mean()
    assert scores["box_area"].value == as_mask.mean()
    if planted.changed.any():
        assert scores["uncovered"].value == left.sum() / planted.changed.sum()


@settings(deadline=None)
@given(images_with_triggers())
def test_floors_are_the_means_over_every_place(drawn):
    planted, detected = drawn
    places = every_place([line.stop - line.start for line in detected], planted.shape)
    scores = [values_of(box_scores(position, planted)) for position in places]
    for name, measured in box_floors(detected, planted).items():
        expected = np.mean([each[name.removesuffix("_floor")] for each in scores])
        np.testing.assert_allclose(measured.value, expected, rtol=1e-12, atol=1e-15)


def test_random_boxes_reach_every_place_that_fits_equally_often():
    drawn = random_boxes((2, 3), (4, 5), np.random.default_rng(0), 9000)
    places = every_place((2, 3), (4, 5))
    counts = np.array([drawn.count(position) for position in places])
    assert len(places) == 9
    assert counts.sum() == 9000
    assert np.abs(counts - 1000).max() < 4 * math.sqrt(1000)
    again = random_boxes((2, 3), (4, 5), np.random.default_rng(0), 9000)
    assert drawn == again


def test_mean_over_random_boxes_nears_the_floor():
    planted = disc()
    detected = box((2, 5), (4, 8))
    floor = box_floors(detected, planted)["trigger_iou_floor"].value
    drawn = random_boxes((3, 4), planted.shape, np.random.default_rng(1), 2000)
    values = [box_scores(position, planted)["trigger_iou"].value for position in drawn]
    assert abs(np.mean(values) - floor) < 4 * np.std(values) / math.sqrt(2000)


@pytest.mark.parametrize("wrong", [box((0, 7), (0, 2)), box((0, 0), (0, 2)), box((0, 2)), box((-1, 2), (0, 2))])
def test_a_box_beside_the_image_is_refused(wrong):
    for work in (box_scores, box_floors):
        with pytest.raises(ValueError, match=r"lie inside the image of shape \(6, 8\)"):
            work(wrong, disc())
    with pytest.raises(ValueError, match="lie inside the image"):
        Planted(wrong, disc().mask, disc().mask)


def test_masks_of_other_kinds_and_boxes_that_do_not_fit_are_refused():
    planted = disc()
    with pytest.raises(ValueError, match="share one grid"):
        Planted(planted.box, planted.mask, planted.changed[:, 1:])
    with pytest.raises(ValueError, match="changed pixels must be a mask of booleans, got uint8"):
        Planted(planted.box, planted.mask, planted.changed.astype(np.uint8))
    with pytest.raises(ValueError, match="a box must fit into the image"):
        random_boxes((7, 2), (6, 8), np.random.default_rng(0), 1)


def test_every_score_and_floor_is_explained():
    planted = disc()
    scores = {**box_scores(planted.box, planted), **box_floors(planted.box, planted)}
    on_baseline = {"trigger_iou_on_baseline"}  # the same overlap in another network's map
    assert {name for name, facts in METRIC_FACTS.items() if facts.needs is Needs.BOX} == set(scores) | on_baseline
    for name in scores:
        assert METRIC_FACTS[name].higher_is_better == (METRIC_FACTS[name.removesuffix("_floor")].higher_is_better)
