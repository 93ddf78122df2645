"""Estimates that are filled with the numbers of a result: nothing of it is lost, nothing of the estimate is changed."""

import math
from dataclasses import asdict, fields, replace

import numpy as np
import pytest

from heatcheck.core.records import Estimate
from heatcheck.estimating.estimates import corrected, coverage, fill, joined
from heatcheck.stats.corrections import holm
from heatcheck.stats.regression import Fit
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import MeanEstimate
from heatcheck.stats.resampling.nested import NestedEstimate

EMPTY = Estimate(
    "mean", "iou", "Edema", "lime", "net", p_adjusted=0.5, family="all", other_method="random", condition='{"seed":1}',
    n_cases=7, n_patients=6, n_undefined=5, reason="before",
)  # fmt: skip
RESULTS = [
    Interval(0.4, 0.3, 0.6, "one patient"),
    MeanEstimate(0.4, 0.3, 0.6, 20, 10, 2, "one patient"),
    NestedEstimate(0.4, 0.3, 0.6, 20, 10, 3, 2, "one patient", "a note"),
    Fit(0.4, 0.3, 0.6, 0.01, 20, 10, 2, "one patient"),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_an_estimate_gets_every_number_of_its_result_and_keeps_the_rest(result):
    has = {field.name for field in fields(result)} - {"n_seeds", "note", "error", "freedom", "p_at_zero"}
    assert has >= {"value", "low", "high", "reason"}
    row = asdict(fill(EMPTY, result))
    assert {name: row[name] for name in has} == {name: getattr(result, name) for name in has}
    kept = {name: value for name, value in asdict(EMPTY).items() if name not in has and name != "p_value"}
    assert {name: row[name] for name in kept} == kept


@pytest.mark.parametrize("reason", ["", "another"])
def test_a_given_reason_replaces_that_of_the_result(reason):
    assert fill(EMPTY, RESULTS[1], reason) == replace(fill(EMPTY, RESULTS[1]), reason=reason)


def test_a_new_estimate_has_no_value_and_no_interval():
    estimate = Estimate("mean", "iou")
    assert all(math.isnan(number) for number in (estimate.value, estimate.low, estimate.high, estimate.p_value))
    assert (estimate.finding, estimate.method, estimate.model) == ("", "", "")


def test_only_reasons_that_say_something_are_joined():
    assert joined("one patient", "", "over 2 of 3 findings") == "one patient; over 2 of 3 findings"
    assert joined("", "") == ""


def test_coverage_is_stated_only_where_something_is_missing():
    assert coverage(2, 3) == "over 2 of 3 findings"
    assert coverage(0, 5, "seeds") == "over 0 of 5 seeds"
    assert coverage(3, 3) == ""
    assert coverage(4, 3) == ""  # more were scored than were requested


def test_p_values_are_corrected_for_one_another_and_keep_their_order():
    p_values = [0.04, 0.01, math.nan, 0.02]
    rows = corrected([replace(EMPTY, p_value=p) for p in p_values], "four tests")
    np.testing.assert_array_equal([row.p_value for row in rows], p_values)
    np.testing.assert_array_equal([row.p_adjusted for row in rows], holm(np.array(p_values)))
    assert rows[1].p_adjusted == pytest.approx(0.03)
    assert {row.family for row in rows} == {"four tests"}


def test_no_tests_need_no_correction():
    assert corrected([], "none") == []
