"""The published data set through a study, and the specs that are shipped for it."""

import shutil

import pandas as pd
import pytest
from tests.chexlocalize_material import write_tree

from heatcheck.core.findings import LOCALIZED
from heatcheck.core.records import HUMAN
from heatcheck.models import MODELS
from heatcheck.running.open_source import open_source
from heatcheck.running.run import run_study
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.scoring.reader_rows import NOT_OUTLINED

TRAININGS = sorted(name for name in shipped_specs() if name.startswith("chexpert-"))


@pytest.fixture(scope="module")
def published(tmp_path_factory, golden):
    """Test and validation data side by side, and CheXpert's training data beside both."""
    root = write_tree(tmp_path_factory.mktemp("published"), golden)
    write_tree(root, golden, "val")
    shutil.copytree(root / "CheXpert/val", root / "CheXpert-v1.0/train")
    text = (root / "CheXpert/val_labels.csv").read_text()
    (root / "CheXpert-v1.0/train.csv").write_text(text.replace("/valid/", "/train/"))
    return root


def test_a_study_on_the_published_tree_scores_methods_and_second_readers(published, tmp_path, write_spec):
    source = {"name": "chexlocalize", "root": str(published), "split": "test", "views": "frontal"}
    spec = write_spec(source=source, methods=["random"], gallery=0, bootstrap_draws=100)
    outcome = run_study(spec, tmp_path / "run")
    assert outcome.n_failed == 0
    scores = pd.read_parquet(tmp_path / "run/scores.parquet")
    assert set(scores["finding"]) <= set(LOCALIZED)
    human = scores[(scores["method"] == HUMAN) & (scores["metric"] == "iou")]
    assert (human["case"] == "patient90004_study1_view1_frontal").any()  # which the second readers did not outline
    missing = human[human["case"] == "patient90004_study1_view1_frontal"]
    assert set(missing["reason"]) == {NOT_OUTLINED}
    assert missing["value"].isna().all()
    assert human["value"].notna().any()


def test_the_shipped_study_finds_the_data_in_the_current_folder(published, monkeypatch):
    monkeypatch.chdir(published)
    spec = read_spec("localization-chexlocalize")
    scored, validation = (open_source(spec.body[part], spec.folder, spec.name) for part in ("source", "validation"))
    assert (scored.findings, len(scored.index()), len(validation.index())) == (LOCALIZED, 24, 24)
    trained = {read_spec(name).body["model"] for name in TRAININGS}
    assert {model["name"] for model in spec.body["models"]} == trained
    ensembles = {model["ensemble"] for model in spec.body["models"] if "ensemble" in model}
    assert ensembles == {f"training/{name}" for name in trained} | {"training/densenet121/best_single.json"}


@pytest.mark.parametrize("name", TRAININGS)
def test_a_shipped_training_finds_the_data_in_the_current_folder(published, monkeypatch, name):
    monkeypatch.chdir(published)
    spec = read_spec(name)
    assert spec.body["model"] in MODELS
    for part in ("training", "validation", "test"):
        source = open_source(spec.body[part], spec.folder, spec.name)
        assert len(source.findings) == 14
        assert len(source.index()) == 24
        assert source.load(source.index()[0]).truth == {}
