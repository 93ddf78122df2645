"""Scores against the geometry of the truth."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from tests.studies.localization.paper_material import (
    golden_folder,
    known_folder,
    numbers,
    row_of,
    rule_of,
    shown,
    table_of,
)

from heatcheck.studies.localization.chexlocalize.estimates import paper_estimates

FEATURES = {"n_instance": "instances", "area_ratio": "size", "elongation": "elongation"}


@pytest.fixture(scope="module")
def paper(golden, tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden-run")
    findings = golden_folder(folder, golden)
    return table_of(paper_estimates(folder, rule_of(findings, ["map"])))


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = known_folder(tmp_path_factory.mktemp("known-run"))
    return table_of(paper_estimates(folder, rule_of(["f", "g"], ["good", "flat"])))


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


def test_a_slope_that_is_there_is_found_and_one_that_is_not_is_not(known):
    size = row_of(known, "slope", "iou", feature="size")
    assert size["low"] < 0.3 < size["high"]
    assert size["p_adjusted"] < 0.001
    noise = row_of(known, "slope", "iou", feature="irrectangularity", method="flat")  # both are one number, scaled
    assert math.isnan(noise["p_value"])
    assert "one line" in noise["reason"]
    assert row_of(known, "slope", "iou", feature="size", method="flat")["p_adjusted"] == 1
    assert row_of(known, "slope", "iou", other="human", feature="size")["value"] == pytest.approx(-0.3, abs=0.05)
    assert row_of(known, "slope", "iou", feature="probability")["p_adjusted"] < 0.001


def test_hits_have_log_odds_and_their_distance_from_the_readers_has_not(known):
    odds = row_of(known, "slope", "hit", feature="size")["value"]
    line = row_of(known, "slope", "hit", other="human", feature="size")["value"]
    assert odds == pytest.approx(1.2, abs=1.2)
    assert -0.6 < line < 0
    assert row_of(known, "slope", "hit", "f", feature="probability")["n_patients"] > 50


def test_a_feature_that_is_the_same_in_all_cases_is_given_as_the_reason(tmp_path):
    """Of masks that are one part each, neither patients nor scores are to blame."""
    rule = replace(rule_of(["f", "g"], ["good"]), instances="components")
    rows = table_of(paper_estimates(known_folder(tmp_path, patients=30), rule))
    for metric, other in (("iou", ""), ("hit", ""), ("hit", "human")):
        assert row_of(rows, "slope", metric, other=other, feature="instances")["reason"] == "the feature does not vary"
