"""Calibration after scaling, and localization with it."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from tests.studies.localization.paper_material import known_folder, row_of, rule_of, table_of, write_folder

from heatcheck.core.records import Prediction, Score, TruthShape
from heatcheck.studies.localization.chexlocalize.estimates import paper_estimates


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = known_folder(tmp_path_factory.mktemp("known-run"))
    return table_of(paper_estimates(folder, rule_of(["f", "g"], ["good", "flat"])))


def test_a_model_that_is_three_times_too_sure_is_found_out_and_mended(known):
    for finding in ("f", "g"):
        row = row_of(known, "temperature", "ece", finding, "", fitted_on="folds")
        assert row["value"] == pytest.approx(3, rel=0.4)
        assert "5 folds" in row["reason"]
    after = row_of(known, "calibration", "ece", method="", temperature="scaled")
    assert after["value"] < 0.06
    assert after["n_cases"] == 450
    curve = known[(known["statistic"] == "reliability") & (known["finding"] == "f")]
    assert curve["n_cases"].sum() == 225
    assert {tuple(json.loads(at)) for at in curve["condition"]} == {("bin", "predicted", "temperature")}


def test_scaling_never_changes_what_is_called_positive_at_one_half(known):
    means = known[(known["statistic"] == "mean") & known["condition"].str.contains('"cutoff":0.5')]
    before, after = (part.reset_index(drop=True) for _, part in means.groupby("condition"))
    assert before.drop(columns="condition").equals(after.drop(columns="condition"))
    lower = [row_of(known, "mean", "iou_full", cutoff=0.3, **facts) for facts in ({}, {"temperature": "scaled"})]
    assert lower[0]["value"] != lower[1]["value"]
    assert lower[0]["low"] < lower[0]["value"] < lower[0]["high"]


def test_a_cutoff_by_hand(tmp_path):
    # surely positive and right; called negative but there; called negative and absent; called positive but absent
    cases = [("a", 0.9, 1.0, 0.6), ("b", 0.1, 1.0, 0.4), ("c", 0.2, 0.0, 0.0), ("d", 0.8, 0.0, 0.0)]
    scores = [Score(case, case, "f", "good", "model", "iou_full", iou) for case, _, _, iou in cases]
    scores += [Score(case, case, "f", "good", "model", "iou", iou) for case, _, label, iou in cases if label]
    said = [Prediction(case, case, "f", "model", label, math.nan, p) for case, p, label, _ in cases]
    shapes = [TruthShape(case, case, "f", 2, 1, 0.1, 2.0, 0.1) for case in "ab"]
    table = table_of(paper_estimates(write_folder(tmp_path, scores, said, shapes), rule_of(["f"], ["good"])))
    row = row_of(table, "mean", "iou_full", "f", cutoff=0.5)
    assert row["value"] == pytest.approx(0.6 / 3)
    assert (row["n_cases"], row["n_undefined"]) == (3, 1)
    assert row_of(table, "slope", "iou", "f", feature="probability")["reason"] == "fewer than 10 patients"


def test_validation_predictions_are_what_temperatures_are_fitted_to(tmp_path):
    folder = known_folder(tmp_path, patients=40)
    logits = np.array([2.0, 2, 2, 2, -2, -2, -2, -2])
    labels = np.array([1.0, 1, 1, 0, 0, 0, 0, 1])
    chances = 1 / (1 + np.exp(-logits))
    columns = {"case": list("abcdefgh"), "patient": list("abcdefgh"), "finding": "f", "model": "model"}
    validation = pd.DataFrame({**columns, "label": labels, "logit": logits, "probability": chances})
    table = table_of(paper_estimates(folder, rule_of(["f", "g"], ["good", "flat"]), validation))
    at = {"fitted_on": "validation"}
    assert row_of(table, "temperature", "ece", "f", "", **at)["value"] == pytest.approx(2 / math.log(3))
    missing = row_of(table, "temperature", "ece", "g", "", **at)
    assert math.isnan(missing["value"])
    assert row_of(table, "calibration", "ece", "g", "", temperature="scaled")["reason"] == missing["reason"] != ""
    assert row_of(table, "calibration", "ece", method="", temperature="scaled")["reason"].startswith(
        "1 of 2 findings were scaled"
    )
