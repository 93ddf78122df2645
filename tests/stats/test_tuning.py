"""Curves over thresholds and cutoffs, worked by hand."""

import numpy as np
import pytest

from heatcheck.stats.tuning import FullSlice, cutoff_curve, first_best, mean_curve

NAN = np.nan


def test_means_leave_out_what_is_undefined() -> None:
    curve = mean_curve(np.array([[0.2, NAN, NAN], [0.4, 0.6, NAN]]))
    assert np.allclose(curve, [0.3, 0.6, NAN], equal_nan=True)


def test_a_cutoff_empties_regions_that_score_0_only_where_there_is_a_truth() -> None:
    cases = FullSlice(np.array([0.5, 0.0, 0.3]), np.array([0.9, 0.2, 0.2]), np.array([True, False, True]))
    curve = cutoff_curve(cases, (0.0, 0.2, 0.3, 0.95), "from the cutoff")
    # all kept · all kept · the second is no mistake any more, the third misses · both truths are missed
    assert np.allclose(curve, [0.8 / 3, 0.8 / 3, 0.25, 0.0])
    strict = cutoff_curve(cases, (0.2,), "above the cutoff")
    assert np.allclose(strict, [0.25])


def test_the_first_maximum_wins() -> None:
    assert first_best((0.2, 0.3, 0.4), np.array([0.1, 0.5, 0.5])) == 0.3
    assert first_best((0.2, 0.3, 0.4), np.array([NAN, 0.1, 0.5])) == 0.4
    assert np.isnan(first_best((0.2,), np.array([NAN])))


@pytest.mark.parametrize("keeps", ["from the cutoff", "above the cutoff"])
def test_without_cases_there_is_no_curve(keeps: str) -> None:
    empty = FullSlice(np.empty(0), np.empty(0), np.empty(0, bool))
    assert np.isnan(cutoff_curve(empty, (0.0, 0.5), keeps)).all()
