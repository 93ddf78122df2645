import math
from dataclasses import replace

import numpy as np
import pytest

from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings
from heatcheck.sources.phantoms.simulated_readers import READERS, ReaderHabits, read_case

CAREFUL = ReaderHabits("careful", displacement=0, scaling=0, bias=0, misses=0)


def iou(first, second):
    return (first & second).sum() / (first | second).sum()


@pytest.fixture(scope="module")
def truths():
    source = PhantomChest(PhantomChestSettings(patients=120, size=64, second_view=0))
    return {key.case: source.truth(key) for key in source.index()}


@pytest.fixture(scope="module")
def readings(truths):
    return {
        habits.name: {case: read_case(truth, habits, 20, case) for case, truth in truths.items()} for habits in READERS
    }


def test_reader_marks_only_findings_that_are_present(truths, readings):
    for by_case in readings.values():
        for case, reading in by_case.items():
            assert set(reading.masks) <= set(truths[case])
            assert set(reading.points) == set(reading.masks)
            assert all(mask.any() and mask.shape == (64, truths[case][f].shape[1]) for f, mask in reading.masks.items())
            assert all(len(points) == 1 for points in reading.points.values())


@pytest.mark.parametrize("habits", READERS, ids=lambda habits: habits.name)
def test_readers_contours_agree_with_the_truth_well_but_not_perfectly(habits, truths, readings):
    overlaps = [
        iou(mask, truths[case][finding])
        for case, reading in readings[habits.name].items()
        for finding, mask in reading.masks.items()
    ]
    assert 0.45 < np.mean(overlaps) < 0.85
    assert np.mean(np.array(overlaps) == 1) < 0.02


def test_readers_agree_with_each_other_less_than_with_the_truth_and_never_copy(readings, truths):
    first, second = readings.values()
    pairs = [
        (mask, second[case].masks[finding], truths[case][finding])
        for case, reading in first.items()
        for finding, mask in reading.masks.items()
        if finding in second[case].masks
    ]
    between = np.mean([iou(one, other) for one, other, _ in pairs])
    assert 0.3 < between < np.mean([iou(one, truth) for one, _, truth in pairs])
    assert np.mean([np.array_equal(one, other) for one, other, _ in pairs]) < 0.02


@pytest.mark.parametrize("habits", READERS, ids=lambda habits: habits.name)
def test_reader_misses_about_as_often_as_set(habits, truths, readings):
    marked = sum(len(reading.masks) for reading in readings[habits.name].values())
    present = sum(map(len, truths.values()))
    spread = 4 * np.sqrt(habits.misses * (1 - habits.misses) / present)
    assert 1 - marked / present == pytest.approx(habits.misses, abs=spread)
    assert marked < present


@pytest.mark.parametrize("habits", READERS, ids=lambda habits: habits.name)
def test_readers_points_lie_mostly_inside_the_finding(habits, truths, readings):
    inside = []
    for case, reading in readings[habits.name].items():
        for finding, (point,) in reading.points.items():
            row, column = (math.floor(axis) for axis in point.position)
            mask = np.pad(truths[case][finding], 20)
            inside.append(mask[row + 20, column + 20])
    assert 0.85 < np.mean(inside) < 1


def test_reader_with_a_steady_hand_draws_the_truth():
    mask = np.zeros((40, 50), bool)
    mask[10:20, 5:30] = True
    mask[30:36, 40:48] = True
    reading = read_case({"a": mask}, CAREFUL, 1, "case")
    np.testing.assert_array_equal(reading.masks["a"], mask)
    row, column = reading.points["a"][0].position
    assert row in (14.5, 15.5)  # the centre of a pixel of one of the two middle rows
    assert mask[int(row), int(column)]
    assert 9 < column < 26


def test_generous_reader_draws_larger_and_a_cautious_one_smaller():
    mask = np.zeros((60, 60), bool)
    mask[20:40, 20:40] = True
    areas = [
        read_case({"a": mask}, replace(CAREFUL, bias=bias), 1, "case").masks["a"].sum() for bias in (-0.2, 0.0, 0.2)
    ]
    assert areas[0] < areas[1] == 400 < areas[2]
    assert areas[2] == pytest.approx(400 * np.exp(0.4), rel=0.1)


def test_each_instance_is_moved_separately():
    mask = np.zeros((80, 80), bool)
    mask[10:20, 10:20] = True
    mask[60:70, 60:70] = True
    drawn = read_case({"a": mask}, replace(CAREFUL, scaling=0.3), 3, "case").masks["a"]
    areas = drawn[:40].sum(), drawn[40:].sum()
    assert areas[0] != areas[1]
    assert min(areas) > 0


def test_missed_finding_is_left_out_and_does_not_affect_the_others():
    mask = np.zeros((40, 40), bool)
    mask[10:30, 10:30] = True
    habits = replace(READERS[0], misses=0.5)
    cases = [read_case({"a": mask, "b": mask}, habits, 1, str(case)) for case in range(30)]
    assert {len(reading.masks) for reading in cases} == {0, 1, 2}
    alone = [read_case({"b": mask}, habits, 1, str(case)) for case in range(30)]
    for both, single in zip(cases, alone, strict=True):
        assert ("b" in both.masks) == ("b" in single.masks)
        assert both.points.get("b") == single.points.get("b")


def test_reading_depends_on_seed_case_and_reader():
    mask = np.zeros((40, 40), bool)
    mask[10:30, 10:30] = True
    steady = replace(READERS[0], misses=0)
    settings = [(steady, 1, "x"), (steady, 2, "x"), (steady, 1, "y"), (replace(steady, name="other"), 1, "x")]
    points = [read_case({"a": mask}, *one).points["a"] for one in settings]
    assert len(set(points)) == 4
    assert read_case({"a": mask}, *settings[0]).points["a"] == points[0]


def test_truth_without_pixels_is_not_marked():
    assert read_case({"a": np.zeros((20, 20), bool)}, CAREFUL, 1, "case").masks == {}
