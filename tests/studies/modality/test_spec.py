"""What a modality spec may say, and what is refused before any work."""

import hashlib
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from tests.studies.modality.brightness_material import write_pictures
from tests.studies.modality.material import CLASSES, weighed

from heatcheck.core.errors import HeatcheckError, SpecError
from heatcheck.models import MODELS, NetworkClassifier, save_classifier
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.modality.plan import plan_modality
from heatcheck.studies.modality.spec import modalities_of

PHANTOM = {"name": "phantom_brain", "cases": 12, "size": 24}

VOLUMES = {"name": "phantom_brain", "cases": 12, "size": 24, "slices": 6}


def spec_of(tmp_path, **body):
    """A spec on disk; the model is trained in folds where nothing else is said."""
    usual = {
        "study": "modality",
        "source": PHANTOM,
        "model": "vgg_bn_compact",
        "folds": 2,
        "size": [24, 24],
        "methods": ["gradient"],
        "fit": {"epochs": 1, "batch_size": 2},
    }
    values = {name: value for name, value in (usual | body).items() if value is not None}
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(values))
    return read_spec(str(path))


def planned(tmp_path, **body):
    """The plan, or whatever refuses it."""
    return plan_modality(spec_of(tmp_path, **body), RunOptions(), tmp_path / "run")


def test_what_is_not_said_is_the_recommended_way(tmp_path):
    plan = planned(tmp_path)
    body = plan.body
    assert (body.measure, body.weights, body.fills, body.masks, body.dilate) == (
        "balanced",
        "positive",
        ("zero",),
        "own",
        0,
    )
    assert plan.contract.scaling == "nonzero"
    assert plan.contract.outputs == CLASSES
    assert body.fit.balanced
    assert [len(fold.test) for fold in plan.folds] == [6, 6]
    assert len(plan.coalitions.members) == 16


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"folds": None, "size": None, "fit": None}, "comes without weights; name `weights`, or `folds: 5`"),
        ({"folds": None}, "`fit`, `size`, `pixels` and `start` are for networks trained here; name `folds`"),
        ({"start": "nowhere.pth"}, "nowhere.pth: no such weights file"),
        ({"plain": True}, "`plain: true` trains networks without `fit.hide` beside those of the folds; name"),
        ({"plain": "phantom_brain_vgg"}, "networks are trained here; set `plain: true`, or leave `folds` out"),
        ({"importance": "known"}, "`importance: known` needs `known`"),
        ({"fills": []}, "name at least one of `fills`"),
        ({"fills": ["zero", "zero"]}, "each once"),
        ({"known": [{"modality": "T1c", "source": PHANTOM}]}, "'T1c' is not a modality; known: FLAIR, T1, T1C, T2"),
        ({"methods": ["location_prior"]}, "knows where lesions usually are"),
        ({"folds": "folds.csv"}, "no such file of folds"),
        ({"folds": 7}, "fold"),
        ({"ratings": "ratings.csv"}, "ratings.csv does not exist"),
        ({"fit": {"epochs": 1, "batch_size": 64}}, "do not fill a batch of 64"),
        ({"model": "vgg_bn_compakt"}, "did you mean 'vgg_bn_compact'"),
        ({"source": {"name": "phantom_chest", "patients": 4}}, "does not name its channels"),
        ({"removal": {"steps": 0}}, "removal.steps"),
        ({"dilate": -1}, "dilate"),
        (
            {"folds": 1},
            "study.yaml: 'folds': name two folds or more, a file with the columns case and fold, or a folder",
        ),
        ({"folds": True}, "name two folds or more"),
        ({"folds": 2.5}, "name two folds or more"),
        ({"permutations": 3}, "'permutations': must be at least 4"),
        ({"pixels": {"channels": 1}}, "`pixels` must have 4 channels, one per modality (T1, T1C, T2, FLAIR), got 1"),
        ({"pixels": {"mean": [0.0] * 3, "std": [1.0] * 3}}, "(T1, T1C, T2, FLAIR), got 3"),
        ({"known": [{"modality": "T1C", "source": VOLUMES}]}, "must have images with 2 axes, got 3"),
        (
            {
                "source": VOLUMES,
                "model": "vgg3d_compact",
                "size": [16, 16, 16],
                "fit": {"epochs": 1, "batch_size": 2, "rotate": 10},
            },
            "`fit.rotate` rotates 2D images, and the network takes volumes",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(tmp_path, body, told):
    with pytest.raises(HeatcheckError, match=re.escape(told)) as error:
        planned(tmp_path, **body)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "got"),
    [
        (["FLAIR", "T2", "T1C", "T1"], "FLAIR, T2, T1C, T1"),
        ([], "none"),
    ],
)
def test_cases_of_known_importance_have_the_studys_modalities_in_their_order(tmp_path, names, got):
    source = write_pictures(tmp_path) | {"modalities": names}
    with pytest.raises(SpecError, match=rf"`known` T1C must .* in the same order \(T1, T1C, T2, FLAIR\), got {got}"):
        planned(tmp_path, known=[{"modality": "T1C", "source": source}])
    assert not (tmp_path / "run").exists()


def test_a_case_in_two_folds_is_named(tmp_path):
    lines = [f"phantom{number:06d},{number % 2 + 1}" for number in range(12)]
    (tmp_path / "folds.csv").write_text("\n".join(["case,fold", *lines, "phantom000003,1"]))
    with pytest.raises(HeatcheckError, match="case phantom000003 is in two folds, 2 and 1"):
        planned(tmp_path, folds="folds.csv")


def given(tmp_path, **contract):
    """A spec body with weights for a network of 24 pixels."""
    values = {"outputs": CLASSES, "size": (24, 24), "channels": 4, "activation": "softmax", "scaling": "nonzero"}
    wanted = weighed([0.0] * 4).preprocessing.model_validate(values | contract)
    module = MODELS["vgg_bn_compact"].build(wanted.channels, wanted.answers, wanted.size)
    save_classifier(NetworkClassifier("vgg_bn_compact", module, wanted), tmp_path / "net.safetensors")
    model = {"name": "vgg_bn_compact", "weights": "net.safetensors"}
    return {"model": model, "folds": None, "size": None, "fit": None}


def test_weights_to_start_from_are_those_of_the_same_architecture_and_belong_to_the_run(tmp_path):
    given(tmp_path)
    plan, plain = planned(tmp_path, start="net.safetensors"), planned(tmp_path)
    assert plan.start == tmp_path / "net.safetensors"
    assert plan.identity["weights_hash"] == hashlib.sha256(plan.start.read_bytes()).hexdigest()
    assert plain.identity["weights_hash"] == ""
    assert plan.facts["model"]["description"].endswith(
        "trained for this study in 2 folds, starting from net.safetensors"
    )
    with pytest.raises(HeatcheckError, match=r"net.safetensors: only .* start from a file of the same architecture"):
        planned(tmp_path, start="net.safetensors", model="densenet_compact", size=[32, 32])


def test_a_plain_network_belongs_to_the_run_and_must_take_the_same_images(tmp_path):
    body = given(tmp_path)
    plan, other = planned(tmp_path, **body), planned(tmp_path, **body, plain=body["model"])
    assert other.identity["weights_hash"] == [plan.identity["weights_hash"]] * 2
    assert plan.facts.get("plain", "") == ""
    assert other.facts["plain"].endswith(", weights net.safetensors")
    with pytest.raises(SpecError, match=r"study.yaml: `plain` must take the same images as the model"):
        planned(tmp_path, **body, plain="phantom_brain_vgg")


def test_other_validation_cases_are_another_run(tmp_path):
    plan = planned(tmp_path)
    first, *others = plan.data.folds
    swapped = replace(first, training=first.validation, validation=first.training)
    other = replace(plan, data=replace(plan.data, folds=(swapped, *others)))
    assert other.identity["folds_hash"] != plan.identity["folds_hash"]


def test_a_given_network_is_tested_on_all_cases(tmp_path):
    plan = planned(tmp_path, **given(tmp_path))
    assert [fold.test for fold in plan.folds] == [tuple(range(12))]


@pytest.mark.parametrize(
    ("contract", "told"),
    [
        ({"outputs": ("a", "b")}, "the model's outputs are a, b, the classes of the data LGG, HGG"),
        ({"activation": "sigmoid"}, "do not exclude each other"),
        ({"channels": 1}, "the model must have 4 channels, one per modality"),
    ],
)
def test_a_given_network_must_fit_the_data(tmp_path, contract, told):
    with pytest.raises(SpecError, match=told):
        planned(tmp_path, **given(tmp_path, **contract))


def test_a_network_with_weights_is_not_trained(tmp_path):
    with pytest.raises(SpecError, match="leave `folds` out"):
        planned(tmp_path, **given(tmp_path) | {"folds": 2})


@pytest.mark.parametrize("name", ["all", "T1+T2", "T1/T2", "C:\\T1", ""])
def test_a_modality_cannot_have_a_name_that_means_something_else(name):
    source = SimpleNamespace(modalities=("T1", name))
    with pytest.raises(SpecError, match="two or more different names without"):
        modalities_of(SimpleNamespace(known=()), source, "spec.yaml")
