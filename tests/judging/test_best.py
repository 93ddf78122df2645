"""A method is best only where it is clearly better than every other; else a set of methods may be best."""

import math

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import TEST
from heatcheck.judging.best import BestSet, best_set


def difference(value: float, low: float, high: float, size: float = 0.05) -> Estimate:
    return Estimate(TEST, "iou", value=value, low=low, high=high, size=size)


def test_a_method_leaves_the_set_only_where_another_lies_above_it_beyond_chance():
    pairs = {
        ("a", "b"): difference(0.02, -0.03, 0.07),
        ("a", "c"): difference(0.01, 0.001, 0.02),  # too small to matter, and no chance
        ("c", "b"): difference(0.01, -0.03, 0.04),
    }
    assert best_set("abc", pairs) == BestSet(("a", "b"))


def test_pairs_count_in_either_order():
    assert best_set("ab", {("a", "b"): difference(0.2, 0.1, 0.3)}) == BestSet(("a",), "a")
    assert best_set("ab", {("b", "a"): difference(-0.2, -0.3, -0.1)}) == BestSet(("a",), "a")


def test_alone_in_the_set_is_not_best_where_a_difference_may_be_too_small_to_matter():
    pairs = {
        ("a", "b"): difference(0.2, 0.1, 0.3),
        ("a", "c"): difference(0.03, 0.01, 0.06),
        ("b", "c"): difference(-0.17, -0.3, -0.1),
    }
    assert best_set("abc", pairs) == BestSet(("a",))


def test_the_first_two_may_both_beat_all_others_and_neither_is_best():
    pairs = {("a", "b"): difference(0.01, -0.1, 0.1)} | {
        (top, low): difference(0.3, 0.2, 0.4) for top in "ab" for low in "cd"
    }
    assert best_set("abcd", pairs) == BestSet(("a", "b"))


def test_what_has_no_interval_removes_nobody_and_lets_nobody_be_best():
    pairs = {("a", "b"): difference(0.2, 0.1, 0.3), ("a", "c"): difference(0.4, math.nan, math.nan)}
    assert best_set("abc", pairs) == BestSet(("a", "c"), "", incomparable=("c",))
    assert best_set("ab", {}) == BestSet(("a", "b"), "", incomparable=("a", "b"))


def test_one_method_is_compared_with_none_and_not_called_best():
    assert best_set(["a"], {}) == BestSet(("a",))
