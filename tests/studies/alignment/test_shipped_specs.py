"""The shipped alignment specs say what the paper did, and can be carried out."""

import shutil

import pytest
from tests.chexlocalize_material import write_tree

from heatcheck.core.findings import LOCALIZED
from heatcheck.methods import METHODS, build_method
from heatcheck.methods.differentiable import differentiable
from heatcheck.models import MODELS
from heatcheck.running.open_source import open_source
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.studies.alignment.bases import planned_bases
from heatcheck.studies.alignment.spec import AlignmentBody, open_sources

ALIGNMENTS = [name for name in shipped_specs() if read_spec(name).envelope.study == "alignment"]


def body_of(name):
    return read_spec(name).checked_body(AlignmentBody)


def settings_of(part):
    return {key: value for key, value in part.items() if key != "name"}


@pytest.mark.parametrize("name", ALIGNMENTS)
def test_a_shipped_spec_is_valid_and_its_methods_can_be_trained_through(name):
    body = body_of(name)
    for model in body.models:
        MODELS[model.name].require_size(body.size or MODELS[model.name].size)
    for part in body.methods:
        differentiable(build_method(part["name"], settings_of(part)))
    assert all(part["name"] in METHODS for part in body.judged)


def test_the_paper_study_is_the_papers():
    body = body_of("alignment-chexlocalize")
    assert {MODELS[model.name].family for model in body.models} == {"DenseNet", "ViT", "Swin"}
    assert set(body.findings) == set(LOCALIZED) - {"Support Devices"}
    assert (body.finetune["split"], body.evaluation["split"]) == ("test", "val")
    assert [part["name"] for part in body.methods] == ["gradient", "integrated_gradients", "smooth_grad", "lrp"]
    built = {part["name"]: build_method(part["name"], settings_of(part)) for part in body.methods}
    riemann, smooth, lrp = (built[name] for name in ("integrated_gradients", "smooth_grad", "lrp"))
    assert (riemann.steps, riemann.rule, riemann.baseline) == (20, "right", "zero")
    assert (smooth.samples, smooth.noise, smooth.noise_is) == (20, 0.1, "relative")  # as released
    assert (lrp.epsilon, lrp.convolutions) == (1e-6, "zplus")  # as released
    assert body.map_order == "resize_first"
    fit = body.fit
    assert (fit.epochs, fit.batch_size, fit.learning_rate, fit.weight_decay, fit.clip) == (25, 16, 1e-4, 0.01, 0.5)
    assert (fit.optimizer, fit.schedule, body.alpha, body.seeds) == ("adamw", "constant", 1.0, 3)
    assert body.pixels.mean == body.pixels.std == (0.5,)
    base = body.base.fit
    assert (base.batch_size, base.learning_rate, base.warm_up_steps, base.rotate) == (128, 1e-4, 2000, 15)
    assert (base.optimizer, body.base.uncertainty) == ("adamw", "zeros")
    assert [part.channels for part in body.initialisations] == [1, 3, 3, 3]
    assert [bool(part.start) for part in body.initialisations] == [False, False, True, True]
    assert [part.optional for part in body.initialisations] == [False, False, True, True]
    text = shipped_specs()["alignment-chexlocalize"].read_text()
    assert [part.name for part in body.initialisations if part.fine_tune] == ["random_3_channels", "radimagenet"]
    bases = 2 * len(body.models)
    networks = body.seeds * (1 + 2 * len(body.methods))
    told = (f"{2 * bases} bases", f"{bases} bases", f"{networks}\n# networks", f"{bases * networks * 9:,} in all")
    assert all(words in text for words in told)


def test_what_a_spec_does_not_say_of_a_fit_is_the_papers():
    part = {"training": {}, "validation": {}, "fit": {"epochs": 4}}
    body = {
        "finetune": {},
        "evaluation": {},
        "models": ["densenet_compact"],
        "methods": ["gradient"],
        "fit": {"epochs": 5},
    }
    found = AlignmentBody.model_validate({**body, "base": part, "initialisations": [{"name": "random"}]})
    assert (found.fit.epochs, found.fit.batch_size, found.fit.learning_rate, found.fit.clip) == (5, 16, 1e-4, 0.5)
    base = found.base.fit
    assert (base.epochs, base.batch_size, base.learning_rate) == (4, 128, 1e-4)


def test_the_papers_first_table_is_two_findings_and_grad_cam():
    body = body_of("alignment-table1")
    assert [model.name for model in body.models] == ["densenet121"]
    assert body.findings == ("Atelectasis", "Enlarged Cardiomediastinum")
    assert body.methods == ({"name": "grad_cam", "placement": "plain"},)
    assert (body.size, body.map_order, body.alpha, body.seeds) == ((320, 320), "resize_first", 1.0, 3)
    assert body.pixels.mean == body.pixels.std == (0.5,)
    assert (body.finetune["split"], body.evaluation["split"]) == ("test", "val")
    fit = body.fit
    assert (fit.epochs, fit.batch_size, fit.learning_rate, fit.weight_decay, fit.clip) == (25, 16, 1e-4, 0.01, 0.5)
    assert (fit.optimizer, fit.schedule) == ("adamw", "constant")
    assert [(part.channels, part.start, part.fine_tune) for part in body.initialisations] == [(3, "", True)]
    base = body.base.fit
    assert (base.epochs, base.batch_size, base.learning_rate, base.weight_decay) == (3, 16, 1e-4, 0)
    assert (base.optimizer, base.schedule, base.clip) == ("adam", "constant", None)
    assert body.base.training["findings"] == body.base.validation["findings"] == "all"
    assert "18 networks" in shipped_specs()["alignment-table1"].read_text()


@pytest.fixture(scope="module")
def published(tmp_path_factory, golden):
    """Test and validation data side by side, and CheXpert's training data beside both."""
    root = write_tree(tmp_path_factory.mktemp("published"), golden)
    write_tree(root, golden, "val")
    shutil.copytree(root / "CheXpert/val", root / "CheXpert-v1.0/train")
    text = (root / "CheXpert/val_labels.csv").read_text()
    (root / "CheXpert-v1.0/train.csv").write_text(text.replace("/valid/", "/train/"))
    return root


@pytest.mark.parametrize("name", ["alignment-chexlocalize", "alignment-table1"])
def test_a_shipped_study_finds_the_data_in_the_current_folder(published, monkeypatch, name):
    monkeypatch.chdir(published)
    spec = read_spec(name)
    body = spec.checked_body(AlignmentBody)
    for part in (body.finetune, body.evaluation):
        source = open_source(part, spec.folder, spec.name)
        assert len(source.index()) == 24
        assert set(body.findings) < set(source.findings)
    ends = [part["patients"] for part in (body.base.training, body.base.validation)]
    assert [ends[0][0], ends[0][1], ends[1][1]] == [0, ends[1][0], 1]  # together everybody, and nobody twice
    few = {**body.base.training, "patients": [0, 0.9]}  # of 24 films two in a hundred are none
    source = open_source(few, spec.folder, spec.name)
    assert len(source.findings) == 14
    assert set(body.findings) < set(source.findings)
    assert 0 < len(source.index()) < 24


def test_the_paper_study_starts_without_the_weights_that_cannot_be_downloaded(published, monkeypatch):
    monkeypatch.chdir(published)
    spec = read_spec("alignment-chexlocalize")
    body = spec.checked_body(AlignmentBody)
    few = body.base.model_copy(
        update={"training": {**body.base.training, "patients": [0, 0.5]},
                "validation": {**body.base.validation, "patients": [0.5, 1]}}
    )  # fmt: skip
    body = body.model_copy(update={"base": few})
    sources = open_sources(body, spec)
    bases = planned_bases(body, spec, RunOptions(), body.base.outputs(sources["training"]))
    assert [base.key for base in bases] == [
        f"{model.name}/random_{channels}" for model in body.models for channels in ("1_channel", "3_channels")
    ]
