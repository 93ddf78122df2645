"""The published data set through a study, and the specs that are shipped for it."""

import shutil

import pandas as pd
import pytest
from tests.chexlocalize_material import write_tree

from heatcheck.core.findings import LOCALIZED
from heatcheck.core.records import HUMAN
from heatcheck.fitting.spec import TrainingBody
from heatcheck.methods import METHODS
from heatcheck.models import MODELS
from heatcheck.running.open_source import open_source
from heatcheck.running.run import run_study
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.scoring.reader_rows import NOT_OUTLINED
from heatcheck.studies.localization.spec import LocalizationBody

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


def test_the_shipped_study_has_the_papers_methods_and_smoothing():
    """All three architectures as ensembles; boxes of 100, 50 and 80 px where the paper smoothed."""
    body = read_spec("localization-chexlocalize").checked_body(LocalizationBody)
    methods = {method["name"]: method for method in body.methods}
    names = ("grad_cam", "grad_cam_plus_plus", "integrated_gradients", "eigen_cam", "deep_lift", "lrp", "occlusion")
    assert tuple(name for name in methods if not METHODS[name].is_floor) == names
    assert {name: each for name, each in body.colours.items() if each} == {
        "integrated_gradients": 100, "deep_lift": 50, "lrp": 80
    }  # fmt: skip
    assert set(body.region_rules({})) >= set(body.colours)
    assert (methods["occlusion"]["window"], methods["occlusion"]["stride"]) == (40, 40)
    assert [model.key for model in body.every_model if model.ensemble.suffix != ".json"] == [
        "densenet121", "resnet152", "inception_v4"
    ]  # fmt: skip
    assert body.findings == "all"
    assert body.views == "each"


@pytest.mark.parametrize("name", TRAININGS)
def test_a_shipped_training_follows_the_papers_protocol(name):
    """Four strategies, three runs, ten checkpoints each: 120, of which ten per finding form the ensemble."""
    body = read_spec(name).checked_body(TrainingBody)
    assert set(body.uncertainty) == {"ignore", "zeros", "ones", "three_class"}
    assert len(body.uncertainty) * body.runs * body.checkpoints.keep == 120
    five = {"Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion"}
    assert set(body.checkpoints.by) == five
    assert (body.ensemble, body.views, body.blank, tuple(body.size)) == (10, "max", "zero", (320, 320))
    rate = {"densenet121": 1e-4, "resnet152": 1e-5, "inception_v4": 1e-5}[body.model]
    fit = body.fit
    assert (fit.epochs, fit.batch_size, fit.optimizer, fit.schedule) == (3, 16, "adam", "constant")
    assert (fit.learning_rate, fit.weight_decay, fit.clip) == (rate, 0, None)
    assert (body.pixels.mean, body.pixels.sample) == (None, None)  # measured on all training images


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
