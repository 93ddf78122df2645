"""Two runs of the modality study side by side."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
from tests.studies.modality.brightness_material import write_modality

from heatcheck import read_run, run_study
from heatcheck.core.vocabulary import condition
from heatcheck.running.compare import compare_runs
from heatcheck.running.study import RunOptions

TRUSTED = RunOptions(trust_code=True, workers=1)
SMALL = {"methods": ["input_x_gradient", "random"], "removal": {"steps": 2, "random": 2}, "bootstrap_draws": 100}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same pictures, read by T1C and by FLAIR; MSFI weighs in two ways, and maps of chance have other seeds."""
    folder = tmp_path_factory.mktemp("compared")
    run_study(write_modality(folder / "one", fills=["zero"], **SMALL), folder / "one" / "run", TRUSTED)
    other = {"seed": 5, "weights": "min_max", "fills": ["zero"], "measure": "accuracy"} | SMALL
    run_study(write_modality(folder / "two", "flair", **other), folder / "two" / "run", TRUSTED)
    return folder / "one" / "run", folder / "two" / "run"


def by_name(comparison):
    return {(row.metric, row.method): row for row in comparison.rows}


def values(run, metric, method, **facts):
    """A metric's values by case."""
    rows = read_run(run).scores.query("metric == @metric and method == @method")
    return rows[rows["condition"] == condition(fold=1, **facts)].set_index("case")["value"]


def test_the_worth_of_each_modality_is_compared_under_the_measures_of_both_runs(runs):
    rows = by_name(compare_runs(*runs, draws=100))
    for measure in ("balanced", "accuracy"):
        for metric in ("phi_modality", "phi_lesion"):
            found = {name: rows[f"{metric} ({measure}, zero)", name] for name in ("T1", "T1C", "T2", "FLAIR")}
            apart = {name: row.difference for name, row in found.items()}
            assert apart == pytest.approx({"T1": 0, "T1C": -0.5, "T2": 0, "FLAIR": 0.5})
            assert (found["T1C"].first, found["T1C"].second, found["T1C"].n_cases) == (0.5, 0, 12)
    assert (rows["balanced_accuracy", ""].first, rows["accuracy", ""].difference) == (1, 0)


@pytest.mark.parametrize("weights", ["positive", "min_max"])
def test_msfi_is_compared_under_the_weights_of_both_runs(runs, weights):
    row = by_name(compare_runs(*runs, draws=100))[f"msfi (lesion, {weights})", "random"]
    one, other = (values(run, "msfi", "random", importance="lesion", weights=weights) for run in runs)
    assert row.n_cases == 12
    assert row.difference == pytest.approx((other - one).mean())
    assert row.low < row.difference < row.high


@pytest.mark.parametrize("metric", ["lesion_share", "median_iou", "delta_aupc"])
def test_every_metric_of_the_ranking_is_compared_case_by_case(runs, metric):
    rows = by_name(compare_runs(*runs, draws=100))
    one, other = (values(run, metric, "random") for run in runs)
    assert rows[metric, "random"].difference == pytest.approx((other - one).mean())
    assert not any(name == "mi_correlation" for name, _ in rows)  # 12 cases show no clear order of importances
    assert ("lesion_share", "uniform") in rows


def copied(run, folder, **facts):
    """A copy of a run that describes itself otherwise."""
    shutil.copytree(run, folder)
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(manifest | facts))
    return folder


def test_cases_are_paired_whatever_fold_they_were_tested_in(runs, tmp_path):
    other = copied(runs[0], tmp_path / "folds", folds=2)
    for path in (other / "scores.parquet", other / "shapley" / "scores.parquet"):
        table = pq.read_table(path)
        frame = table.to_pandas()
        moved = frame["case"].isin([f"{number:02d}" for number in range(4)])
        under = frame["condition"].astype(str)
        frame["condition"] = under.mask(moved, under.str.replace('"fold":1', '"fold":2'))
        assert frame["condition"].str.contains('"fold":2').any()
        pq.write_table(type(table).from_pandas(frame, table.schema, preserve_index=False), path)
    rows = compare_runs(runs[0], other, draws=100).rows
    assert {row.n_cases for row in rows if row.metric in ("msfi", "phi_modality")} == {12}
    assert all(row.difference == 0 for row in rows)


def test_a_worth_that_differs_from_case_to_case_has_an_interval_by_patients(runs, tmp_path):
    other = copied(runs[0], tmp_path / "worse")
    path = other / "shapley" / "scores.parquet"
    table = pq.read_table(path)
    frame = table.to_pandas()
    wrong = frame["case"].isin(["01", "03"]) & (frame["metric"] == "right")
    frame["value"] = frame["value"].mask(wrong, 0.0)
    pq.write_table(type(table).from_pandas(frame, table.schema, preserve_index=False), path)
    row = by_name(compare_runs(runs[0], other, draws=500))["phi_modality", "T1C"]
    assert row.difference == pytest.approx(-2 / 6 / 2)  # two of six cases of one class of two
    assert row.low < row.difference < row.high < 0.2


def test_what_cannot_be_compared_is_said(runs, tmp_path):
    other = copied(runs[0], tmp_path / "turned", modalities=["FLAIR", "T2", "T1C", "T1"])
    comparison = compare_runs(runs[0], other, draws=100)
    assert comparison.sentences[-1] == (
        "The runs have other modalities (T1, T1C, T2, FLAIR; FLAIR, T2, T1C, T1), whose importance cannot be compared."
    )
    assert "phi_modality" not in {row.metric for row in comparison.rows}
    filled = copied(runs[0], tmp_path / "filled", fills=["tissue"])
    said = compare_runs(runs[0], filled, draws=100).sentences
    assert "The importance of modalities when filled by tissue is in one run only, and not compared." in said
    path = other / "scores.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    comparison = compare_runs(runs[0], other, draws=100)
    assert comparison.rows == ()
    assert comparison.sentences[-1].startswith("No score can be compared")
