"""The modality study from spec to report, on small pictures and with networks whose reason is known."""

import html
import json
import shutil

import numpy as np
import pytest
from tests.studies.modality.brightness_material import CASES, CONTRACT, write_modality, write_pictures

from heatcheck import read_run, run_study
from heatcheck.core.errors import ModelError
from heatcheck.core.vocabulary import condition
from heatcheck.metrics.modality.shares import NO_CLEAR_PAIR, UNINFORMATIVE
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.modality import plan as modality_plan
from heatcheck.studies.modality import stage as modality_stage

TRUSTED = RunOptions(trust_code=True, workers=1)
PRIMARY = {"fold": 1, "importance": "lesion", "weights": "positive"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The study of a network that reads T1C, run once."""
    folder = tmp_path_factory.mktemp("modality")
    outcome = run_study(write_modality(folder), folder / "run", TRUSTED)
    assert (outcome.n_cases, outcome.n_failed) == (CASES, 0)
    return folder


def values(table, **facts):
    """The values of the rows whose condition has exactly these facts, by method."""
    rows = table[table["condition"] == condition(**facts)]
    return rows.groupby("method")["value"].mean().to_dict()


def worths(finished, metric, measure="balanced", filled="zero"):
    """The modalities' worth and the ends of its interval."""
    rows = read_run(finished / "run").estimates.query("statistic == 'shapley' and metric == @metric")
    found = {}
    for row in rows.itertuples():
        at = json.loads(row.condition)
        if (at["measure"], at["filled"], at["fold"]) == (measure, filled, 1):
            found[at["modality"]] = (row.value, row.low, row.high)
    return found


@pytest.mark.parametrize("metric", ["phi_modality", "phi_lesion"])
@pytest.mark.parametrize("filled", ["zero", "tissue"])
@pytest.mark.parametrize("measure", ["balanced", "accuracy"])
def test_the_modality_that_the_network_reads_is_worth_everything(finished, metric, filled, measure):
    found = worths(finished, metric, measure, filled)
    assert found["T1C"][0] == pytest.approx(0.5)  # from guessing to knowing
    assert all(found[name][0] == 0 for name in ("T1", "T2", "FLAIR"))


def test_the_worth_of_all_subsets_is_printed_with_nothing_and_everything(finished):
    rows = read_run(finished / "run").estimates.query("statistic == 'value' and metric == 'balanced_accuracy'")
    at = {json.loads(text)["shown"]: value for text, value in zip(rows["condition"], rows["value"], strict=True)}
    assert len(at) == 16
    assert at[""] == 0.5
    assert at["T1+T1C+T2+FLAIR"] == 1.0


def test_maps_of_the_modality_that_is_read_have_their_due(finished):
    scores = read_run(finished / "run").scores
    msfi = values(scores[scores["metric"] == "msfi"], **PRIMARY)
    tau = values(scores[scores["metric"] == "mi_correlation_published"], fold=1)
    high = scores[(scores["finding"] == "HGG") & (scores["metric"] == "msfi")]
    assert values(high, **PRIMARY)["input_x_gradient"] == 1  # only bright voxels count, and only the lesion is bright
    assert (
        values(scores[(scores["metric"] == "mi_correlation_published") & (scores["finding"] == "HGG")], fold=1)[
            "gradient"
        ]
        == 1
    )
    assert msfi["uniform"] == pytest.approx(16 / 14**2)
    assert set(tau) >= {"gradient", "occlusion", "intensity", "edges"}
    # only the lesion is bright, in T1C and FLAIR: a map that never sees the network has all that can be had
    assert values(high, **PRIMARY)["intensity"] == pytest.approx(1, abs=1e-6)
    clear = scores[(scores["metric"] == "mi_correlation") & (scores["method"] == "gradient")]
    assert set(clear["reason"]) == {NO_CLEAR_PAIR}  # 12 cases


def test_one_map_for_all_says_nothing_of_modalities(finished):
    scores = read_run(finished / "run").scores
    rows = scores[(scores["metric"] == "mi_correlation") & (scores["method"] == "grad_cam")]
    assert set(rows["reason"]) == {UNINFORMATIVE}
    assert rows["value"].isna().all()


def test_what_the_network_read_makes_it_go_wrong_when_taken_away(finished):
    scores = read_run(finished / "run").scores
    gone = scores[(scores["metric"] == "delta_aupc") & (scores["finding"] == "HGG")]
    found = values(gone, fold=1)
    assert found["input_x_gradient"] > 0.3
    assert found["random"] < found["input_x_gradient"] - 0.2


def test_every_case_and_class_is_in_the_predictions(finished):
    predictions = read_run(finished / "run").predictions
    assert len(predictions) == 2 * CASES
    named = predictions.loc[predictions.groupby("case")["probability"].idxmax()]
    assert (named["label"] == 1).all()


def test_the_report_and_the_gallery_are_there(finished):
    run = finished / "run"
    assert (run / "preview.png").exists()
    assert "T1C" in (run / "report.html").read_text()
    items = json.loads((run / "gallery" / "index.json").read_text())["items"]
    assert len(items) == 2
    for item in items:
        assert set(item["images"]) == {"T1", "T1C", "T2", "FLAIR"}
        assert {one["method"] for one in item["maps"]} >= {"gradient", "grad_cam"}
        for file in (*item["images"].values(), *(name for one in item["maps"] for name in one["files"].values())):
            assert (run / "gallery" / file).is_file()


def test_the_folder_keeps_no_prepared_images(finished):
    assert not (finished / "run" / "images").exists()
    assert not list((finished / "run").rglob("*.ckpt"))


def test_a_run_that_was_killed_ends_with_the_same_tables(finished, tmp_path, monkeypatch):
    other = tmp_path / "again"
    shutil.copytree(finished, other, ignore=shutil.ignore_patterns("run"))
    work, calls = modality_stage.ModalMapsStage.work, []

    def stopped(self, shard):
        calls.append(shard)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return work(self, shard)

    with monkeypatch.context() as patch:
        patch.setattr(modality_stage.ModalMapsStage, "work", stopped)
        with pytest.raises(KeyboardInterrupt):
            run_study(other / "study.yaml", other / "run", TRUSTED)
    run_study(other / "study.yaml", other / "run", TRUSTED)
    first, second = read_run(finished / "run"), read_run(other / "run")
    for name in ("scores", "predictions", "cases"):
        assert getattr(first, name).equals(getattr(second, name)), name
    one, other = (run.estimates.query("statistic != 'seconds'") for run in (first, second))
    assert one.equals(other)


def test_modality_whose_name_reads_like_an_order_comes_first_alone(tmp_path):
    spec = write_modality(
        tmp_path, methods=["gradient"], removal=None, gallery=1, source=write_pictures(tmp_path, "more", 30)
    )
    spec.write_text(spec.read_text().replace("- T1C\n", "- 'DWI b = 1000'\n").replace("- FLAIR\n", "- 'T1 > \"T2\"'\n"))
    told = html.unescape(run_study(spec, tmp_path / "run", TRUSTED).report.read_text())
    assert "This network relies most on DWI b = 1000, which contributes 50 percentage points" in told
    assert "“DWI b = 1000” > " in told
    assert '“T1 > "T2"”' in told


def test_mean_and_std_that_no_pixel_reaches_are_refused_before_anything_is_written(tmp_path):
    model = {"name": "python:readers:t1c", "label": "t1c", "contract": {**CONTRACT, "mean": [127.5], "std": [64.0]}}
    with pytest.raises(ModelError, match=r"model t1c: .* from 0 to 3 here, and has mean \[127.5\] and std \[64\]"):
        run_study(write_modality(tmp_path, model=model), tmp_path / "run", TRUSTED)
    assert not (tmp_path / "run").exists()


def test_what_a_first_look_shows_is_a_caution_of_the_run(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(modality_plan, "first_look", lambda *look: looks.append(look) or ("Odd.",))
    plan = modality_plan.plan_modality(read_spec(str(write_modality(tmp_path))), TRUSTED, tmp_path / "run")
    assert plan.facts["cautions"] == ["Odd."]
    assert [(name, classifier.name) for _, _, name, classifier in looks] == [("t1c", "t1c")]


def test_a_network_that_reads_another_modality_has_another_order(tmp_path):
    run_study(write_modality(tmp_path, "flair", methods=["gradient"], removal=None), tmp_path / "run", TRUSTED)
    found = worths(tmp_path, "phi_modality")
    assert max(found, key=lambda name: found[name][0]) == "FLAIR"
    assert "delta_aupc" not in set(read_run(tmp_path / "run").scores["metric"])


def test_a_case_that_cannot_be_used_is_recorded_and_the_others_are_scored(tmp_path):
    path = write_modality(tmp_path, methods=["gradient"], removal=None)
    mask = tmp_path / "cases-masks" / "tumour" / "03.npy"
    np.save(mask, np.zeros_like(np.load(mask)))
    picture = tmp_path / "cases" / "05.npy"
    broken = np.load(picture)
    broken[2, 5, 5] = np.nan
    np.save(picture, broken)
    outcome = run_study(path, tmp_path / "run", TRUSTED)
    cases = read_run(tmp_path / "run").cases.set_index("case")
    assert (outcome.n_cases, outcome.n_failed) == (CASES, 2)
    assert "the mask of T1 of 03 is empty" in cases.loc["03", "reason"]
    assert "05" in cases.loc["05", "reason"]
    assert set(read_run(tmp_path / "run").scores["case"]) == {f"{n:02d}" for n in range(CASES)} - {"03", "05"}


def test_plain_networks_are_trained_and_asked_beside_those_of_the_folds(tmp_path):
    """Networks that read T1C or FLAIR; both are trained in turn, and both have their importances."""
    fit = {"epochs": 1, "batch_size": 2, "hide": 0.5}
    changes = {"model": "vgg_bn_compact", "size": [16, 16], "folds": 2, "fit": fit, "methods": ["gradient"]}
    spec = write_modality(tmp_path, **changes, plain=True, removal=None, fills=["zero"], gallery=0, bootstrap_draws=100)
    outcome = run_study(spec, tmp_path / "run", TRUSTED)
    run = read_run(tmp_path / "run")
    assert {path.stem for path in (tmp_path / "run" / "networks").iterdir()} == {
        "fold-1",
        "fold-2",
        "plain-1",
        "plain-2",
    }
    found = {
        statistic: run.estimates.query("statistic == @statistic and metric == 'phi_modality'").set_index("condition")
        for statistic in ("shapley", "shapley_plain", "shapley_less_plain")
    }
    both = found["shapley_plain"]
    assert len(both) == 12  # four modalities in two folds, and in both together
    for text, row in both.iterrows():
        difference = found["shapley"].loc[text, "value"] - row["value"]
        assert found["shapley_less_plain"].loc[text, "value"] == pytest.approx(difference, abs=1e-9)
    assert "If no modality is hidden in training" in outcome.report.read_text()
