"""Two models, of which one knows nothing, with thresholds tuned on validation data; and what interrupts them."""

import gc
import json
import os
import signal
import subprocess
import sys
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from heatcheck import read_run, run_study
from heatcheck.core.errors import InputError
from heatcheck.core.records import Prediction, Score
from heatcheck.core.vocabulary import condition
from heatcheck.explaining import study_models as explainers
from heatcheck.metrics.thresholds import THRESHOLDS
from heatcheck.models import ModelSettings, load_classifier
from heatcheck.models.load import save_classifier
from heatcheck.running.compare import compare_runs
from heatcheck.runs import store
from heatcheck.runs.store import RunFolder
from heatcheck.runs.tables import write_table
from heatcheck.scoring.presets import RECOMMENDED
from heatcheck.stats.tuning import CUTOFFS
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.tuning import (
    NOTHING_TO_TUNE,
    TuningSettings,
    tuned_for,
    validation_estimates,
    validation_predictions,
)

FINDINGS = ["Airspace Opacity", "Atelectasis"]
VALIDATION = {"name": "phantom_chest", "patients": 10, "first": 900, "size": 80, "readers": 0}
GOOD, IGNORANT = "phantom_chest_densenet", "ignorant"


def settings_of(model):
    return LocalizationSettings(tuple(FINDINGS), ("grad_cam",), (), (), model, draws=0, seed=0)


def forget(folder):
    """A network that was never trained, in the form of the shipped one."""
    classifier = load_classifier(ModelSettings(name=GOOD))
    generator = torch.Generator().manual_seed(1)
    for weights in classifier.module.parameters():
        weights.data = torch.randn(weights.shape, generator=generator) * 0.05
    save_classifier(classifier, folder / "ignorant.safetensors")


@pytest.fixture(scope="module")
def spec(tmp_path_factory, small_spec):
    folder = tmp_path_factory.mktemp("several")
    forget(folder)
    models = [{"name": "densenet_compact", "weights": "ignorant.safetensors", "label": IGNORANT}, GOOD]
    values = {key: value for key, value in small_spec.items() if key != "model"}
    path = folder / "several.yaml"
    path.write_text(
        yaml.safe_dump(
            {**values, "models": models, "validation": VALIDATION, "findings": FINDINGS, "gallery": 2, "batch_size": 4}
        )
    )
    return path


@pytest.fixture(scope="module")
def networks():
    """How many networks were in memory already, each time one was loaded."""
    return []


@pytest.fixture(scope="module")
def finished(spec, networks):
    """A run that nobody interrupted."""
    loaded, load = [], explainers.open_model

    def counted(*args, **kwargs):
        gc.collect()
        networks.append(sum(one() is not None for one in loaded))
        classifier = load(*args, **kwargs)
        loaded.append(weakref.ref(classifier.module))
        return classifier

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explainers, "open_model", counted)
        run_study(spec, spec.parent / "run")
    return spec.parent / "run"


def test_every_table_speaks_of_both_models_and_of_the_readers_once(finished):
    run = read_run(finished)
    assert set(run.scores["model"]) == {GOOD, IGNORANT, ""}
    assert set(run.scores.query("method == 'human'")["model"]) == {""}
    keys = ["case", "finding", "method", "model", "metric", "condition"]
    assert not run.scores.duplicated(keys).any()
    n_cases = len(run.cases)
    assert run.cases["case"].is_unique
    assert run.manifest["n_cases"] == n_cases
    assert run.predictions.groupby("model").size().to_dict() == {GOOD: n_cases * 2, IGNORANT: n_cases * 2}
    assert set(run.timings["model"]) == {GOOD, IGNORANT}
    assert not run.shapes.duplicated(["case", "finding"]).any()
    means = run.estimates.query("statistic == 'mean' and metric == 'iou' and condition == '{}'")
    assert means.groupby("model").size().to_dict() == {GOOD: 12, IGNORANT: 12}  # 2 findings and both, 3 methods, human


def test_validation_data_choose_the_model_that_knows_something(finished):
    run = read_run(finished)
    assert [(m["name"], m["primary"]) for m in run.manifest["models"]] == [(IGNORANT, False), (GOOD, True)]
    assert run.manifest["model"]["name"] == GOOD
    assert run.manifest["validation"]["n_cases"] == len(pd.read_parquet(finished / "validation" / "cases.parquet"))
    chosen = run.estimates.query("statistic == 'selected' and metric == 'iou'").set_index("condition")
    assert chosen.loc[condition(stage="architecture"), "model"] == GOOD
    assert chosen.loc[condition(stage="pair"), ["model", "method"]].tolist() == [GOOD, "grad_cam"]
    scores = pd.read_parquet(finished / "validation" / "scores.parquet")
    own = scores.query("metric == 'iou' and condition == '{}' and model == @GOOD and method == 'grad_cam'")
    assert chosen["value"].iloc[0] == pytest.approx(own.groupby("finding")["value"].mean().mean())
    assert run.manifest["validation"]["n_failed"] == 0
    assert run.manifest["preset"] == "recommended"
    assert run.manifest["truth_kind"] == "masks"
    assert {"name", "used", "why"} <= run.manifest["switches"][0].keys()


def test_a_model_is_described_by_its_network_and_where_its_weights_come_from(finished):
    described = {model["name"]: model["description"] for model in read_run(finished).manifest["models"]}
    assert described[IGNORANT] == "Compact DenseNet, weights ignorant.safetensors"
    assert described[GOOD].startswith("Compact DenseNet trained on the chest phantom")


def test_a_threshold_is_the_first_best_of_its_curve_on_validation_data(finished):
    estimates = read_run(finished).estimates
    scores = pd.read_parquet(finished / "validation" / "scores.parquet")
    names = ["model", "method", "finding"]
    tuned = estimates.query("statistic == 'tuned_threshold'").set_index(names)["value"]
    at = condition(threshold=0.4)
    expected = scores.query("metric == 'iou' and condition == @at").groupby(names)["value"].mean()
    curves = estimates.query("statistic == 'threshold_curve'")
    assert len(curves) == 7 * len(tuned) == 7 * 12
    for key, rows in curves.groupby(names):
        assert [json.loads(one)["threshold"] for one in rows["condition"]] == list(THRESHOLDS)
        assert tuned[key] == THRESHOLDS[int(np.argmax(rows["value"].to_numpy()))]
        assert rows.set_index("condition").loc[at, "value"] == pytest.approx(expected[key])


def test_a_cutoff_empties_the_regions_below_it(finished):
    estimates = read_run(finished).estimates
    scores = pd.read_parquet(finished / "validation" / "scores.parquet")
    answers = validation_predictions(finished, settings_of(GOOD)).set_index(["case", "finding"])["probability"]
    chosen = "model == @GOOD and method == 'grad_cam' and finding == 'Atelectasis'"
    full = scores.query(f"metric == 'iou_full' and condition == '{{}}' and {chosen}").set_index("case")["value"]
    present = set(scores.query(f"metric == 'iou' and condition == '{{}}' and {chosen}")["case"])
    curve = estimates.query(f"statistic == 'cutoff_curve' and {chosen}")
    assert [json.loads(at)["cutoff"] for at in curve["condition"]] == list(CUTOFFS)
    for at, value in zip(CUTOFFS, curve["value"], strict=True):
        expected = [
            score if answers[case, "Atelectasis"] >= at else (0.0 if case in present else np.nan)
            for case, score in full.items()
        ]
        assert value == pytest.approx(np.nanmean(expected))


def test_the_papers_regions_have_cutoffs_of_their_own(finished):
    run = read_run(finished)
    theirs, at_cutoff = condition(preset="chexlocalize"), condition(preset="chexlocalize", cutoff="tuned")
    names, full = ["model", "method", "finding"], "metric == 'iou_full' and method != 'human'"
    chosen = run.estimates.query("statistic == 'tuned_cutoff'").set_index([*names, "condition"])["value"]
    tables = [pd.read_parquet(finished / "validation" / "scores.parquet").query(full), run.scores.query(full)]
    tuned_on, scored = (
        table[table["condition"] == theirs].set_index([*names, "case"])["value"].sort_index() for table in tables
    )
    used = tables[1][tables[1]["condition"] == at_cutoff].set_index([*names, "case"])["value"].sort_index()
    for model in (GOOD, IGNORANT):
        answers = validation_predictions(finished, settings_of(model)).set_index(["case", "finding"])["probability"]
        said = run.predictions.query("model == @model").set_index(["case", "finding"])["probability"]
        for finding in FINDINGS:
            values = tuned_on[model, "grad_cam", finding]
            probabilities = np.array([answers[case, finding] for case in values.index])
            outlined = outlined_in(finished / "validation", finding, values.index)
            below = np.where(outlined, 0.0, np.nan)
            curve = [np.nanmean(np.where(probabilities > cutoff, values, below)).round(3) for cutoff in CUTOFFS]
            cutoff = chosen[model, "grad_cam", finding, theirs]
            assert cutoff == CUTOFFS[int(np.argmax(curve))]
            for case, value in scored[model, "grad_cam", finding].items():
                missed = outlined_in(finished, finding, [case])[0]
                expected = value if said[case, finding] >= cutoff else (0.0 if missed else None)
                assert used.get((model, "grad_cam", finding, case)) == expected


def test_cutoffs_of_the_papers_regions_are_tuned_on_these_by_the_papers_rule(tmp_path):
    """By hand: ours are best from 0.6 on, the paper's above 0.5, and those with the chosen smoothing without a cutoff.

    Of "own" the spec names the box of colours: the paper's regions of its maps do not follow the smoothing of ours.
    """
    theirs, smoothed = condition(preset="chexlocalize"), condition(preset="chexlocalize", smooth=0.1)
    ours = {condition(): (0.5, 0.5, 0.9), condition(smooth=0.1): (0.5, 0.5, 0.9)}
    values = {**ours, theirs: (0.0, 0.5, 0.9), smoothed: (1.0, 1.0, 0.9)}
    scores = [
        Score(f"c{n}", f"p{n}", "f", method, "m", "iou_full", value, under)
        for method in ("cam", "own")
        for under, row in values.items()
        for n, value in enumerate(row)
        if (method, under) != ("own", smoothed)
    ]
    overlaps = [("c2", "p2", "f", method, "m", "iou") for method in ("cam", "own")]
    scores += [Score(*key, value, at) for key in overlaps for at, value in zip(ours, (0.1, 0.9), strict=True)]
    write_table(tmp_path / "scores.parquet", Score, scores)
    answers = [Prediction(f"c{n}", f"p{n}", "f", "m", float(n == 2), 0.0, p) for n, p in enumerate((0.2, 0.5, 0.7))]
    write_table(tmp_path / "predictions.parquet", Prediction, answers)
    smooths = {"cam": (0.1,), "own": (0.1,)}
    settings = TuningSettings(("f",), ("cam", "own"), (), ("m",), RECOMMENDED, ("m",), smooths)
    tuned = tuned_for(validation_estimates(tmp_path, settings), "m")
    assert tuned.cutoffs == {("cam", "f"): 0.6, ("own", "f"): 0.6}
    assert tuned.reference_cutoffs == {("cam", "f"): 0.0, ("own", "f"): 0.5}


def outlined_in(folder, finding, cases):
    """Whether each case has an outline of the finding: only then has its map an overlap with it."""
    scores = pd.read_parquet(folder / "scores.parquet").query("metric == 'iou' and condition == '{}'")
    return np.isin(list(cases), scores.query("finding == @finding and method == 'grad_cam'")["case"].unique())


def test_the_scored_cases_are_also_scored_with_what_was_tuned(finished):
    run = read_run(finished)
    plain = run.scores.query("metric == 'iou' and condition == '{}' and method != 'human'")
    tuned = run.scores[(run.scores["metric"] == "iou") & (run.scores["condition"] == condition(threshold="tuned"))]
    keys = ["case", "finding", "method", "model"]
    defined = plain.dropna(subset="value")
    assert set(map(tuple, tuned[keys].to_numpy())) == set(map(tuple, defined[keys].to_numpy()))
    at = condition(cutoff="tuned")
    full = run.scores[(run.scores["metric"] == "iou_full") & (run.scores["condition"] == at)]
    assert len(full) > 0
    assert full["value"].notna().all()
    for metric, fact in (("iou", condition(threshold="tuned")), ("iou_full", at)):
        rows = run.estimates[(run.estimates["metric"] == metric) & (run.estimates["condition"] == fact)]
        assert set(rows["statistic"]) == {"mean", "difference"}
        assert set(rows["model"]) == {GOOD, IGNORANT}
        mean = rows.query(
            "statistic == 'mean' and finding == 'Atelectasis' and method == 'grad_cam' and model == @GOOD"
        )
        used = run.scores[(run.scores["metric"] == metric) & (run.scores["condition"] == fact)]
        used = used.query("finding == 'Atelectasis' and method == 'grad_cam' and model == @GOOD")
        assert mean["value"].item() == pytest.approx(used["value"].mean())


def test_the_models_differ_and_the_difference_is_tested_on_common_cases(finished):
    run = read_run(finished)
    rows = run.estimates.query("statistic == 'model_difference'")
    assert set(rows["model"]) == {IGNORANT}
    assert set(rows["condition"]) == {condition(other_model=GOOD)}
    assert set(rows["metric"]) == {"iou", "hit", "auroc"}
    overall = rows.query("finding == 'All findings'").set_index("metric")
    assert (overall["value"] < 0).all()
    aurocs = run.estimates.query("statistic == 'auroc' and finding == 'All findings'").set_index("model")["value"]
    assert overall.loc["auroc", "value"] == pytest.approx(aurocs[IGNORANT] - aurocs[GOOD])
    values = run.scores.query("metric == 'iou' and condition == '{}' and method == 'grad_cam'")
    wide = values.pivot_table(index=["finding", "case"], columns="model", values="value").dropna()
    expected = (wide[IGNORANT] - wide[GOOD]).groupby("finding").mean()
    each = rows.query("metric == 'iou' and finding != 'All findings'").set_index("finding")["value"]
    assert each.to_dict() == pytest.approx(expected.to_dict())
    tested = rows.query("metric != 'auroc'")
    few = tested["n_patients"] < 6
    assert tested["p_value"].between(0, 1).equals(~few)
    assert (tested.loc[few, "reason"].str.startswith("fewer than 6 patients")).all()
    assert (tested["p_adjusted"] >= tested["p_value"])[~few].all()
    assert (tested["family"] != "").all()
    assert set(tested["method"]) == {"grad_cam"}  # floors do not look at the model


def test_both_sets_of_rules_are_there_and_the_benchmarks_leaves_empty_regions_out(finished):
    run = read_run(finished)
    at = condition(preset="chexlocalize")
    rows = run.estimates[run.estimates["condition"] == at]
    assert set(rows["statistic"]) == {"mean", "percent_decrease", "tuned_cutoff"}
    assert "human" in set(rows["method"])
    scores = run.scores[run.scores["condition"] == at]
    assert set(scores["metric"]) == {"iou", "hit", "iou_full"}
    assert scores["value"].notna().all()
    assert set(scores.query("metric == 'hit'")["value"]) <= {0.0, 0.5, 1.0}  # two readers share a half


def test_one_network_is_in_memory_at_a_time(networks, finished):
    # both are tried, then both explain each split, of which the first was still there from before
    assert networks == [0] * 5


KILLED = """
import os, signal, sys
from heatcheck import run_study
from heatcheck.runs import store
write = store.write_table
def deadly(path, record, rows):
    write(path, record, rows)
    if str(path).endswith("run/parts/00004.predictions.parquet"):
        os.kill(os.getpid(), signal.SIGKILL)
store.write_table = deadly
run_study(sys.argv[1], sys.argv[2])
"""


def require_same_numbers(one, other):
    names = ["scores", "predictions", "cases", "shapes", "estimates"]
    for name in [*names, "validation/scores", "validation/predictions", "validation/estimates"]:
        tables = [pd.read_parquet(path / f"{name}.parquet") for path in (one, other)]
        pd.testing.assert_frame_equal(*tables, check_exact=True)
    assert read_run(one).manifest["models"] == read_run(other).manifest["models"]


@pytest.mark.slow
def test_a_run_killed_under_its_second_model_ends_with_the_same_numbers(spec, finished, tmp_path):
    out = tmp_path / "run"
    arguments = [sys.executable, "-c", KILLED, str(spec), str(out)]
    done = subprocess.run(arguments, check=False, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    run_study(spec, out)
    require_same_numbers(finished, out)


@pytest.mark.slow
def test_a_run_stopped_on_its_validation_data_ends_with_the_same_numbers(spec, finished, tmp_path, monkeypatch):
    out, write = tmp_path / "run", store.write_table
    for last in ("validation/parts/00004.parquet", "validation/estimates.parquet"):

        def deadly(path, record, rows, last=last):
            write(path, record, rows)
            if str(path).endswith(last):
                raise KeyboardInterrupt

        monkeypatch.setattr(store, "write_table", deadly)
        with pytest.raises(KeyboardInterrupt):
            run_study(spec, out)
    monkeypatch.undo()
    run_study(spec, out)
    require_same_numbers(finished, out)


def test_a_finished_run_of_several_models_is_not_done_again(spec, finished, monkeypatch):
    monkeypatch.setattr(RunFolder, "write_shard", lambda *_: pytest.fail("a finished shard was written again"))
    run_study(spec, finished)


def test_a_run_of_several_models_is_compared_by_its_primary_one(finished):
    compared = compare_runs(finished, finished)
    assert all(row.difference == 0 for row in compared.rows)
    ours = next(
        row for row in compared.rows if (row.metric, row.method, row.finding) == ("iou", "grad_cam", FINDINGS[1])
    )
    means = read_run(finished).estimates.query("statistic == 'mean' and metric == 'iou' and condition == '{}'")
    own = means.query("model == @GOOD and method == 'grad_cam' and finding == @FINDINGS[1]")
    assert ours.first == pytest.approx(own["value"].item())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": None}, "name one `model`, or several under `models`"),
        ({"models": [GOOD]}, "name one `model`, or several under `models`"),
        ({"model": None, "models": [GOOD, GOOD]}, f"two models are called '{GOOD}'; give one of them a `label`"),
        ({"model": None, "models": [{"name": GOOD, "lable": "x"}]}, "did you mean 'label'"),
        ({"model": {"name": GOOD, "weights": "a", "ensemble": "b"}}, "name either `ensemble` or `weights`"),
        ({"validation": {"name": "phantom_chst"}}, "did you mean 'phantom_chest'"),
        ({"validation": VALIDATION, "probability_cutoff": 0.5}, "tuned on the validation data"),
        ({"validation": {**VALIDATION, "first": 405}}, r"share 4 patients \(phantom000405, .*never|must not be tuned"),
        ({"preset": "chexlocalise"}, "recommended"),
    ],
)
def test_what_cannot_be_studied_is_said_before_work(changes, message, write_spec, tmp_path):
    with pytest.raises(InputError, match=message):
        run_study(write_spec(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_benchmarks_preset_tunes_on_scored_patients_with_a_warning(write_spec, tmp_path):
    changes = {"findings": ["Lung Lesion", "Cardiomegaly"], "methods": ["grad_cam"], "gallery": 0}
    spec = write_spec(preset="chexlocalize", validation={**VALIDATION, "first": 405}, **changes)
    run_study(spec, tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert any("tuned on 4 patients who are also scored" in note for note in run.manifest["notes"])
    assert run.manifest["preset"] == "chexlocalize"
    curve = run.estimates.query("statistic == 'cutoff_curve' and finding == 'Lung Lesion'")
    assert json.loads(curve["condition"].iloc[0])["cutoff"] == 0.1
    for _, row in run.estimates.query("statistic == 'cutoff_curve'").iterrows():
        assert round(row["value"], 3) == row["value"] or row["reason"] == NOTHING_TO_TUNE
