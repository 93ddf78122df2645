"""All estimates of a run together: which are there, corrected together, for one model."""

import numpy as np
import pandas as pd
import pytest
from tests.studies.localization.paper_material import (
    REFERENCE,
    golden_folder,
    known_folder,
    numbers,
    row_of,
    rule_of,
    shown,
    table_of,
    write_folder,
)

from heatcheck.core.records import Prediction, Score
from heatcheck.core.vocabulary import condition
from heatcheck.studies.localization.chexlocalize.estimates import FAMILY, paper_estimates


@pytest.fixture(scope="module")
def paper(golden, tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden-run")
    findings = golden_folder(folder, golden)
    return table_of(paper_estimates(folder, rule_of(findings, ["map"])))


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = known_folder(tmp_path_factory.mktemp("known-run"))
    return table_of(paper_estimates(folder, rule_of(["f", "g"], ["good", "flat"])))


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


@pytest.mark.parametrize("tuned", [True, False])
def test_the_papers_confidence_is_about_its_own_regions_with_tuned_cutoffs_or_else_whole(tmp_path, tuned):
    said = [0.05, 0.2, 0.4, 0.7, 0.9]
    scores = [Score(f"c{n}", f"p{n}", "f", "m", "model", "hit", n % 2, condition=REFERENCE) for n in range(5)]
    under = (condition(), condition(cutoff="tuned"))  # ours: other regions, in another place
    ours = [
        Score(f"c{n}", f"p{n}", "f", "m", "model", "iou_full", 1 - p, one) for n, p in enumerate(said) for one in under
    ]
    scores += [Score(f"c{n}", f"p{n}", "f", "m", "model", "iou_full", p, REFERENCE) for n, p in enumerate(said)]
    at = condition(preset="chexlocalize", cutoff="tuned")
    if tuned:
        scores += [Score(f"c{n}", f"p{n}", "f", "m", "model", "iou_full", 2 * said[n], condition=at) for n in range(5)]
    predictions = [Prediction(f"c{n}", f"p{n}", "f", "model", 1.0, 0.0, p) for n, p in enumerate(said)]
    table = table_of(paper_estimates(write_folder(tmp_path, scores + ours, predictions), rule_of(["f"], ["m"])))
    row = row_of(table, "slope", "iou_full", "f", "m", feature="probability", preset="chexlocalize")
    assert row["value"] == pytest.approx(2 if tuned else 1)


def test_a_run_without_scores_under_the_papers_rules_has_none_of_its_slopes(known):
    assert not known["condition"].str.contains("chexlocalize").any()


def test_all_recommended_slopes_are_corrected_together(known):
    slopes = known.query("statistic == 'slope'")
    assert len(slopes) == 4 * 2 * 2 * 2 + 3 * 2 * 2  # features, metrics, methods, with and without readers; probability
    assert set(slopes["family"]) == {FAMILY}
    p_values = slopes["p_value"].to_numpy()
    expected = np.minimum(1, np.count_nonzero(~np.isnan(p_values)) * p_values)
    assert slopes["p_adjusted"].to_numpy() == pytest.approx(expected, nan_ok=True)


def test_the_interval_of_a_slope_excludes_0_exactly_where_its_corrected_p_is_small(known):
    slopes = known.query("statistic == 'slope' and p_value == p_value")
    beyond = (slopes["low"] > 0) | (slopes["high"] < 0)
    assert (beyond == (slopes["p_adjusted"] < 0.05)).all()
    assert 0 < beyond.sum() < len(slopes)


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


def test_an_empty_run_has_only_counts_and_reasons(tmp_path):
    table = table_of(paper_estimates(write_folder(tmp_path), rule_of(["f"], ["good"])))
    assert set(table["statistic"]) == {"count", "temperature", "calibration"}
    assert (table[table["value"].isna()]["reason"] != "").all()
    assert REFERENCE not in set(table["condition"])
