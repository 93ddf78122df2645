"""The regression tables, cell by cell as the paper's scripts wrote them."""

import json

import pandas as pd
import pytest

from heatcheck.studies.localization.chexlocalize.regressions import (
    ShapeTables,
    feature_regressions,
    probability_regressions,
)


def wide(path):
    return pd.read_csv(path, index_col="img_id")


@pytest.fixture(scope="module")
def shapes(golden):
    folder = golden / "expected"
    names = ("num_instances", "area_ratio", "elongation", "rec_area_ratio")
    instances, size, elongation, filled = (wide(folder / f"{name}.csv") for name in names)
    return ShapeTables(instances, size, elongation, 1 - filled)


@pytest.fixture(scope="module")
def probabilities(golden):
    images = json.loads((golden / "data" / "manifest.json").read_text())["images"]
    table = pd.DataFrame.from_dict(images, orient="index")
    return table.drop(columns=["dims", "map"])[::-1]  # rows are matched by image, never by place


@pytest.mark.parametrize("score", ["iou", "hitmiss"])
@pytest.mark.parametrize("of", ["pred", "diff"])
def test_slopes_on_geometry_are_the_papers(golden, shapes, score, of):
    folder = golden / "expected"
    scores = wide(folder / "tp" / f"{score}_results_per_cxr.csv")
    if of == "diff":
        scores = wide(folder / "tp" / f"{score}_humanbenchmark_results_per_cxr.csv") - scores
    name = f"pred_{score}" if of == "pred" else f"{score}_diff"
    expected = (folder / f"regression_features_{name}.csv").read_text()
    assert feature_regressions(scores, shapes).to_csv(index=False) == expected


@pytest.mark.parametrize(
    ("scores", "table"),
    [
        ("full/iou", "regression_modelprob_iou"),
        ("tp/hitmiss", "regression_modelprob_hitmiss"),
        ("full_otsu/iou", "full_otsu/regression_modelprob_iou"),
    ],
)
def test_slopes_and_correlations_on_probability_are_the_papers(golden, probabilities, scores, table):
    folder = golden / "expected"
    expected = (folder / f"{table}.csv").read_text()
    found = probability_regressions(wide(folder / f"{scores}_results_per_cxr.csv"), probabilities)
    assert found.to_csv(index=False) == expected


def test_what_cannot_be_fitted_is_written_as_nan(shapes, probabilities):
    scores = pd.DataFrame(0.5, shapes.size.index[:3], shapes.size.columns)
    assert set(probability_regressions(scores, probabilities)["Linear regression coefficients"]) == {"nan, (nan, nan)"}
    assert set(feature_regressions(scores, shapes)["Linear regression coefficients"]) == {"nan, (nan, nan)"}
