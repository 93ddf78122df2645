"""Geometry, confidence, calibration and counts of a run, against the paper's tables and a truth that is known."""

import json
import math
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from paper_material import REFERENCE, golden_folder, known_folder, rule_of, write_folder

from heatcheck.core.records import Prediction, Score, TruthShape, condition
from heatcheck.stats.corrections import holm
from heatcheck.studies.paper_estimates import FAMILY, paper_estimates

FEATURES = {"n_instance": "instances", "area_ratio": "size", "elongation": "elongation"}


def table_of(rows):
    return pd.DataFrame([asdict(row) for row in rows])


def row_of(table, statistic, metric, finding="All findings", method="good", other="", **facts):
    chosen = table[
        (table["statistic"] == statistic)
        & (table["metric"] == metric)
        & (table["finding"] == finding)
        & (table["method"] == method)
        & (table["other_method"] == other)
        & (table["condition"] == condition(**facts))
    ]
    assert len(chosen) == 1
    return chosen.iloc[0]


@pytest.fixture(scope="module")
def paper(golden, tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden-run")
    findings = golden_folder(folder, golden)
    return table_of(paper_estimates(folder, rule_of(findings, ["map"])))


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = known_folder(tmp_path_factory.mktemp("known-run"))
    return table_of(paper_estimates(folder, rule_of(["f", "g"], ["good", "flat"])))


def numbers(cell):
    """Of "-0.727, (-1.282, -0.172)*" the three numbers."""
    return [float(part.strip(" ()*")) for part in cell.split(",")]


def shown(row):
    return [round(row[name], 3) for name in ("value", "low", "high")]


@pytest.mark.parametrize(("metric", "name"), [("iou", "iou"), ("hit", "hitmiss")])
@pytest.mark.parametrize("other", ["", "human"])
def test_slopes_on_geometry_under_the_papers_rules_are_the_papers(golden, paper, metric, name, other):
    file = f"regression_features_{name}_diff.csv" if other else f"regression_features_pred_{name}.csv"
    for _, task, feature, cell in pd.read_csv(golden / "expected" / file).itertuples():
        facts = {"feature": FEATURES.get(feature, feature), "preset": "chexlocalize"}
        row = row_of(paper, "slope", metric, method="map", other=other, **facts)
        assert shown(row) == numbers(cell)
        assert task == "Overall"
        assert math.isnan(row["p_adjusted"])


@pytest.mark.parametrize(("metric", "name"), [("iou_full", "iou"), ("hit", "hitmiss")])
def test_confidence_under_the_papers_rules_is_the_papers(golden, paper, metric, name):
    for _, task, n, slope, rank in pd.read_csv(golden / "expected" / f"regression_modelprob_{name}.csv").itertuples():
        finding = "All findings" if task == "Overall" else task
        for statistic, cell in (("slope", slope), ("spearman", rank)):
            facts = {"feature": "probability", "preset": "chexlocalize"}
            row = row_of(paper, statistic, metric, finding, "map", **facts)
            assert shown(row) == numbers(cell)
            assert row["n_cases"] == n


def test_a_run_without_recommended_scores_has_no_recommended_slopes(paper):
    assert paper.query("statistic == 'slope'")["condition"].str.contains("chexlocalize").all()


def test_a_slope_that_is_there_is_found_and_one_that_is_not_is_not(known):
    size = row_of(known, "slope", "iou", feature="size")
    assert size["low"] < 0.3 < size["high"]
    assert size["p_adjusted"] < 0.001
    noise = row_of(known, "slope", "iou", feature="irrectangularity", method="flat")  # both are one number, scaled
    assert math.isnan(noise["p_value"])
    assert "one line" in noise["reason"]
    assert row_of(known, "slope", "iou", feature="size", method="flat")["p_adjusted"] == 1
    assert row_of(known, "slope", "iou", other="human", feature="size")["value"] == pytest.approx(-0.3, abs=0.05)
    assert row_of(known, "slope", "iou_full", feature="probability")["p_adjusted"] < 0.001


def test_hits_have_log_odds_and_their_distance_from_the_readers_has_not(known):
    odds = row_of(known, "slope", "hit", feature="size")["value"]
    line = row_of(known, "slope", "hit", other="human", feature="size")["value"]
    assert odds == pytest.approx(1.2, abs=1.2)
    assert -0.6 < line < 0
    assert row_of(known, "slope", "hit", "f", feature="probability")["n_patients"] > 50


def test_all_recommended_slopes_are_corrected_together(known):
    slopes = known.query("statistic == 'slope'")
    assert len(slopes) == 4 * 2 * 2 * 2 + 3 * 2 * 2  # features, metrics, methods, with and without readers; probability
    assert set(slopes["family"]) == {FAMILY}
    expected = holm(slopes["p_value"].to_numpy())
    assert slopes["p_adjusted"].to_numpy() == pytest.approx(expected, nan_ok=True)


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
    said = [Prediction(case, case, "f", "model", label, math.nan, p) for case, p, label, _ in cases]
    shapes = [TruthShape(case, case, "f", 2, 1, 0.1, 2.0, 0.1) for case in "ab"]
    table = table_of(paper_estimates(write_folder(tmp_path, scores, said, shapes), rule_of(["f"], ["good"])))
    row = row_of(table, "mean", "iou_full", "f", cutoff=0.5)
    assert row["value"] == pytest.approx(0.6 / 3)
    assert (row["n_cases"], row["n_undefined"]) == (3, 1)
    assert row_of(table, "slope", "iou_full", "f", feature="probability")["reason"] == "fewer than 10 patients"


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
    assert row_of(table, "calibration", "ece", method="", temperature="scaled")["reason"] == "over 1 of 2 findings"


def test_each_of_several_models_is_estimated_by_itself(tmp_path):
    one = known_folder(tmp_path, patients=40, models=("first", "second"))
    rule = rule_of(["f", "g"], ["good", "flat"], "second")
    both = table_of(paper_estimates(one, rule))
    alone = table_of(paper_estimates(known_folder(tmp_path, patients=40, models=("second",)), rule))
    pd.testing.assert_frame_equal(both, alone)
    assert set(both["model"]) == {"second"}


def test_estimates_do_not_depend_on_the_order_of_the_rows(tmp_path):
    rule = rule_of(["f", "g"], ["good", "flat"])
    first = table_of(paper_estimates(known_folder(tmp_path, patients=40), rule))
    for name in ("scores", "predictions", "shapes"):
        table = pd.read_parquet(tmp_path / f"{name}.parquet")
        table.sample(frac=1, random_state=1).to_parquet(tmp_path / f"{name}.parquet", index=False)
    pd.testing.assert_frame_equal(first, table_of(paper_estimates(tmp_path, rule)), check_exact=True)


def test_counts_by_hand(tmp_path):
    said = [
        Prediction("a", "p", "f", "model", 1.0, 0.0, 0.5),
        Prediction("b", "p", "f", "model", 1.0, 0.0, 0.5),
        Prediction("c", "q", "f", "model", 0.0, 0.0, 0.5),
        Prediction("a", "p", "g", "model", math.nan, 0.0, 0.5),
        Prediction("d", "r", "g", "model", 0.0, 0.0, 0.5),
    ]
    shapes = [TruthShape("a", "p", "f", 3, 1, 0.1, 2.0, 0.1), TruthShape("b", "p", "f", 1, 1, 0.1, 2.0, 0.1)]
    scores = [
        Score("a", "p", "f", "human", "", metric, value, condition=condition(reader=reader))
        for reader, pixels in (("one", (5.0, 0.0)), ("two", (0.0, 7.0)), ("three", (0.0, 0.0)))
        for metric, value in zip(("true_positive_pixels", "false_positive_pixels"), pixels, strict=True)
    ]
    scores += [Score("a", "p", "f", "human", "", "true_positive_pixels", 2.0)]
    table = table_of(paper_estimates(write_folder(tmp_path, scores, said, shapes), rule_of(["f", "g"], ["good"])))
    counts = table.query("statistic == 'count'").pivot_table("value", "metric", "finding")
    assert counts["f"].to_dict() == {
        "annotated": 2,
        "images": 3,
        "patients": 2,
        "positives": 2,
        "segmentations": 4,
        "segmentations_by_reader": 2,
    }
    assert counts["g"].to_dict() == {**dict.fromkeys(counts.index, 0), "images": 1, "patients": 1}
    assert counts.loc["images", "All findings"] == 4
    assert counts.loc["patients", "All findings"] == 3


def test_an_empty_run_has_only_counts_and_reasons(tmp_path):
    table = table_of(paper_estimates(write_folder(tmp_path), rule_of(["f"], ["good"])))
    assert set(table["statistic"]) == {"count", "temperature", "calibration"}
    assert (table[table["value"].isna()]["reason"] != "").all()
    assert REFERENCE not in set(table["condition"])
