"""What two columns of scores differ by, over findings that count the same: by hand, and against a plain bootstrap."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PERCENT_DECREASE
from heatcheck.estimating.score_values import Values
from heatcheck.models import Preprocessing
from heatcheck.running.facts import ModelRecord
from heatcheck.studies.localization.comparisons import measurement, simultaneous_rows
from heatcheck.studies.localization.models import ensembles_and_singles
from heatcheck.studies.localization.settings import LocalizationSettings

SETTINGS = LocalizationSettings(("f", "g"), ("cam", "other"), (), ("iou",), "model", draws=500, seed=0)


def values(**findings):
    """Tables by finding, each of (case, patient, human, cam)."""
    tables = {
        name: pd.DataFrame(
            {HUMAN: [row[2] for row in rows], "cam": [row[3] for row in rows], "patient": [row[1] for row in rows]},
            index=pd.Index([row[0] for row in rows], dtype=object),
        )
        for name, rows in findings.items()
    }
    return Values("iou", ("cam", HUMAN), tables)


BY_HAND = values(
    f=[("c1", "a", 1.0, 0.0), ("c2", "a", 1.0, 1.0), ("c3", "b", 1.0, 0.5)], g=[("c3", "b", 0.5, 0.25)]
)  # means: readers 1 and 0.5, cam 0.5 and 0.25


def of(statistic, found=BY_HAND, columns=(HUMAN, "cam"), findings=("f", "g")):
    template = Estimate(statistic, "iou", "All findings", "cam", "model", other_method=HUMAN)
    return measurement(found, SETTINGS, template, columns, findings)


def test_means_differences_and_decreases_over_findings_by_hand():
    assert of(MEAN, columns=["cam"]).estimate(SETTINGS).value == pytest.approx(0.375)
    assert of(DIFFERENCE).estimate(SETTINGS).value == pytest.approx(-0.375)
    assert of(PERCENT_DECREASE).estimate(SETTINGS).value == pytest.approx(50)


def test_a_decrease_from_nothing_is_undefined_with_its_reason():
    row = of(PERCENT_DECREASE, values(f=[("c1", "a", 0.0, 0.3), ("c2", "b", 0.0, 0.5)]), findings=("f",)).estimate(
        SETTINGS
    )
    assert math.isnan(row.value)
    assert row.reason


def test_only_cases_that_both_have_are_compared():
    row = of(DIFFERENCE, values(f=[("c1", "a", 0.5, 0.4), ("c2", "b", math.nan, 0.9)]), findings=("f",))
    estimate = row.estimate(SETTINGS)
    assert estimate.value == pytest.approx(-0.1)
    assert (estimate.n_cases, estimate.n_undefined) == (1, 1)


def test_columns_without_a_common_case_have_no_measurement():
    assert of(DIFFERENCE, values(f=[("c1", "a", 0.5, math.nan), ("c2", "b", math.nan, 0.9)]), findings=("f",)) is None


def test_interval_of_a_decrease_agrees_with_a_plain_bootstrap_of_many_patients():
    generator = np.random.default_rng(0)
    human = generator.beta(4, 2, 400)
    cam = np.clip(human * generator.beta(3, 3, 400), 0, 1)
    rows = [(f"c{n:03d}", f"p{n:03d}", human[n], cam[n]) for n in range(400)]
    estimate = of(PERCENT_DECREASE, values(f=rows), findings=("f",)).estimate(SETTINGS)
    drawn = generator.integers(0, 400, (4000, 400))
    low, high = np.quantile(100 * (1 - cam[drawn].mean(1) / human[drawn].mean(1)), [0.025, 0.975])
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.6)


def test_measurements_of_other_patients_can_be_simultaneous_rows():
    generator = np.random.default_rng(1)
    first, second = (
        values(f=[(f"{name}{n}", f"{name}{n}", 0.3 * generator.random(), generator.random()) for n in range(12)])
        for name in "pq"
    )
    rows = simultaneous_rows(
        [of(DIFFERENCE, each, findings=("f",)) for each in (first, second)], SETTINGS, "both", [0.1, 0.1]
    )
    assert [row.n_patients for row in rows] == [12, 12]
    assert all(row.low < row.value < row.high and row.family == "both" for row in rows)


def test_a_decrease_that_one_patient_decides_has_no_interval():
    rows = [(f"c{n}", f"p{n}", 0.5, 0.5 if n else 0.1) for n in range(6)]
    estimate = of(PERCENT_DECREASE, values(f=rows), findings=("f",)).estimate(SETTINGS)
    assert math.isnan(estimate.low)
    assert estimate.reason == "one patient alone decides it"


@pytest.mark.parametrize(("statistic", "columns"), [(MEAN, ("cam",)), (DIFFERENCE, (HUMAN, "cam"))])
def test_where_one_patient_of_many_scores_the_others_limit_the_interval(statistic, columns):
    rows = [(f"c{n}", f"p{n}", 0.0, 0.0 if n else 0.02) for n in range(40)]
    estimate = of(statistic, values(f=rows), columns, findings=("f",)).estimate(SETTINGS)
    # no score is above 1: the mean is below the upper limit of 1 case of 40, not below 1
    exact = binomtest(1, 40).proportion_ci(0.95, "exact").high
    assert estimate.high == pytest.approx(exact, rel=0.03)
    assert estimate.low <= estimate.value


def test_where_all_patients_but_one_have_all_of_it_the_others_limit_the_interval():
    rows = [(f"c{n}", f"p{n}", 0.0, 1.0 if n else 0.98) for n in range(40)]
    estimate = of(MEAN, values(f=rows), ("cam",), findings=("f",)).estimate(SETTINGS)
    exact = binomtest(1, 40).proportion_ci(0.95, "exact").high
    assert estimate.low == pytest.approx(1 - exact, rel=0.03)
    assert estimate.high >= estimate.value


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_mean_of_scores_that_are_all_at_one_end_has_the_interval_of_a_rate(score):
    rows = [(f"c{n}", f"p{n}", 0.0, score) for n in range(40)]
    estimate = of(MEAN, values(f=rows), ("cam",), findings=("f",)).estimate(SETTINGS)
    exact = binomtest(0, 40).proportion_ci(0.95, "exact").high
    assert (estimate.low, estimate.high) == pytest.approx((0, exact) if score == 0 else (1 - exact, 1))


def test_an_ensemble_is_compared_with_its_own_single_where_another_architecture_is_primary():
    contract = Preprocessing(outputs=("f",), size=(8, 8), channels=1, mean=(0.0,), std=(1.0,))
    models = [
        ModelRecord(name, name, "", architecture, "", contract, kind)
        for name, architecture, kind in (
            ("dense", "densenet121", "ensemble"),
            ("res", "resnet152", "ensemble"),
            ("dense, best single", "densenet121", "per_finding"),
        )
    ]
    assert list(ensembles_and_singles(models, "res")) == [("dense", "dense, best single")]
    assert list(ensembles_and_singles(models, "dense")) == []  # with the primary model all are compared already
