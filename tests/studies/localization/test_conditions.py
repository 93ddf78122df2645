"""The benchmark's own numbers, from the scores that its scripts wrote."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from heatcheck.core.records import HUMAN, CaseRecord, Estimate, Score
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization.conditions import conditional_estimates
from heatcheck.studies.localization.estimates import read_values
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import PLACEMENT

AT = condition(preset="chexlocalize")
FINDINGS = (
    "Airspace Opacity", "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum",
    "Lung Lesion", "Pleural Effusion", "Pneumothorax", "Support Devices",
)  # fmt: skip
RULE = LocalizationSettings(FINDINGS, ("cam",), (), ("iou", "hit"), "model", draws=100, seed=0)


def scores_of(table, metric, method, model):
    return [
        Score(row["img_id"], row["img_id"].split("_")[0], finding, method, model, metric, row[finding], AT)
        for _, row in table.iterrows()
        for finding in FINDINGS
        if not math.isnan(row[finding])
    ]


@pytest.fixture(scope="module")
def estimates(golden, tmp_path_factory):
    """The benchmark's scores as a run holds them, and the estimates that come of them."""
    folder, tp = tmp_path_factory.mktemp("run"), golden / "expected" / "tp"
    scores = []
    for metric, name in (("iou", "iou"), ("hit", "hitmiss")):
        table = pd.read_csv(tp / f"{name}_results_per_cxr.csv")
        scores += scores_of(table, metric, "cam", "model")
        scores += scores_of(pd.read_csv(tp / f"{name}_humanbenchmark_results_per_cxr.csv"), metric, HUMAN, "")
    other = [Score("x", "x", FINDINGS[0], "cam", "another model", "iou", 1.0, AT)]
    write_table(folder / "scores.parquet", Score, scores + other)
    cases = [CaseRecord(case, "p", "ok", annotated=1) for case in table["img_id"]]
    write_table(folder / "cases.parquet", CaseRecord, [*cases, CaseRecord("nobody spoke of it", "p", "ok")])
    rows = conditional_estimates(folder, RULE, tuned=False)
    return pd.DataFrame(rows, columns=list(Estimate.__dataclass_fields__)), folder


@pytest.mark.parametrize(("metric", "name"), [("iou", "iou"), ("hit", "hitmiss")])
@pytest.mark.parametrize(("method", "suffix"), [("cam", ""), (HUMAN, "_humanbenchmark")])
def test_means_and_intervals_are_those_of_the_benchmark(estimates, golden, metric, name, method, suffix):
    written = pd.read_csv(golden / "expected" / "tp" / f"{name}{suffix}_summary_results.csv").set_index("name")
    rows = estimates[0].query("statistic == 'mean' and metric == @metric and method == @method").set_index("finding")
    for finding in FINDINGS:
        for column, ours in (("lower", "low"), ("mean", "value"), ("upper", "high")):
            assert rows.loc[finding, ours] == written.loc[finding, column]
    assert rows.loc["All findings", "low"] < rows.loc["All findings", "value"] < rows.loc["All findings", "high"]
    assert (rows["condition"] == AT).all()


@pytest.mark.parametrize(("metric", "name"), [("iou", "miou"), ("hit", "hitrate")])
def test_the_decrease_from_the_readers_is_that_of_the_benchmark(estimates, golden, metric, name):
    written = pd.read_csv(golden / "expected" / f"{name}_pct_decrease.csv", index_col=0)
    written = written.rename(index={"Average": "All findings"})
    rows = estimates[0].query("statistic == 'percent_decrease' and metric == @metric").set_index("finding")
    assert set(rows["other_method"]) == {HUMAN}
    for finding in (*FINDINGS, "All findings"):
        for column, ours in (("pct_diff", "value"), ("pct_diff_lower", "low"), ("pct_diff_upper", "high")):
            assert rows.loc[finding, ours] == pytest.approx(written.loc[finding, column], abs=1e-9)


def test_one_models_values_are_read_with_the_readers_and_no_others(estimates):
    values = read_values(estimates[1], "iou", RULE, AT, AT)
    assert values.columns == ("cam", HUMAN)
    assert "x" not in values.by_finding[FINDINGS[0]].index


def test_what_the_place_of_a_map_changes_is_a_paired_difference(tmp_path):
    """By hand: of 12 patients with one case each, six hit only where the cells look."""
    plainly = condition(placement="plain")
    scores = [
        Score(f"c{n}", f"p{n}", FINDINGS[0], "cam", "model", "hit", value, under)
        for n in range(12)
        for value, under in ((1.0, condition()), (float(n % 2), plainly))
    ]
    scores += [Score("c0", "p0", FINDINGS[0], "fine", "model", "hit", 1.0)]
    write_table(tmp_path / "scores.parquet", Score, scores)
    write_table(tmp_path / "cases.parquet", CaseRecord, [CaseRecord("c0", "p0", "ok", annotated=1)])
    rows = conditional_estimates(tmp_path, replace(RULE, methods=("cam", "fine")), tuned=False)
    moved = [row for row in rows if row.statistic == PLACEMENT]
    assert {(row.method, row.finding) for row in moved} == {("cam", FINDINGS[0]), ("cam", "All findings")}
    assert {row.condition for row in moved} == {plainly}
    for row in moved:
        assert row.value == 0.5
        assert 0 < row.low < 0.5 < row.high <= 1
        assert row.n_patients == 12
