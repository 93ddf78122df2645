"""Sizes are shares of what is possible."""

import math

import pytest
from pydantic import ValidationError

from heatcheck.core.errors import RunFolderError
from heatcheck.judging.sizes import Sizes, has_room, stored_sizes


def test_distance_from_a_floor_is_judged_by_the_room_above_it():
    assert Sizes().above_floor(0.2, 0.7) == pytest.approx(0.05)
    assert Sizes(maps=0.5).above_floor(0.2, 1.0) == pytest.approx(0.4)


def test_where_readers_do_not_beat_the_floor_the_best_score_counts():
    assert Sizes().above_floor(0.8, 0.7) == pytest.approx(0.02)


def test_readers_hardly_above_the_floor_do_not_make_every_difference_matter():
    assert Sizes().above_floor(0.6, 0.601) == pytest.approx(0.04)
    assert Sizes().above_floor(0.6, 0.7) == pytest.approx(0.01)


def test_a_floor_with_the_best_score_leaves_the_direction():
    assert Sizes().above_floor(1.0, 0.7) == 0
    assert Sizes().above_floor(1.0, 1.0) == 0


def test_without_a_floor_or_separation_there_is_no_size():
    assert math.isnan(Sizes().above_floor(math.nan, 0.7))
    assert math.isnan(Sizes().of_separation(0.0))


def test_one_changed_size_leaves_the_others():
    sizes = Sizes.model_validate({"methods": {"iou": 0.1}})
    assert [sizes.between_methods(metric) for metric in ("iou", "hit", "recovered", "mass")] == [0.1, 0.1, 0.1, 0.1]
    assert Sizes().between_methods("iou") == 0.05


def test_reliance_is_judged_by_the_separation_of_the_model():
    assert Sizes().of_separation(2.0) == 0.5


@pytest.mark.parametrize(
    "wrong", [{"maps": 0}, {"reliance": 1.5}, {"map": 0.1}, {"methods": {"iou": 0}}, {"methods": {"iuo": 0.1}}]
)
def test_a_size_that_cannot_be_meant_is_refused(wrong):
    with pytest.raises(ValidationError):
        Sizes(**wrong)


@pytest.mark.parametrize("wrong", [{"maps": "x"}, {"maps": 2}, {"methods": {"iou": None}}])
def test_broken_sizes_of_a_run_are_one_clear_line(wrong):
    with pytest.raises(RunFolderError, match=r"run.json cannot be used: sizes\..*; remove the folder"):
        stored_sizes(wrong, "run.json")
    assert stored_sizes({}, "run.json") == Sizes()


def test_only_a_floor_below_the_best_score_leaves_room():
    assert [has_room(floor, 0.79) for floor in (0.5, 0.79, 0.82, math.nan)] == [True, False, False, False]
