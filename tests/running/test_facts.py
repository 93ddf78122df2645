"""What run.json says of models, methods, metrics and source, whatever the study."""

from pathlib import Path

import pytest

from heatcheck.methods import build_method
from heatcheck.models import MODELS, ModelSettings, Preprocessing
from heatcheck.running.facts import (
    ModelRecord,
    architecture_label,
    describe_model,
    method_facts,
    metric_facts,
    model_facts,
    models_facts,
    source_facts,
    study_facts,
)

CONTRACT = Preprocessing(outputs=("Edema", "Nodule"), size=(8, 8), channels=1, mean=(0.0,), std=(1.0,))


def record(name, **changes):
    return ModelRecord(
        **{
            "name": name,
            "label": name.title(),
            "description": f"The network {name}",
            "architecture": "vgg_compact",
            "weights_hash": "w",
            "contract": CONTRACT,
        }
        | changes
    )


def test_study_says_what_is_graded_by_what_and_on_which_data():
    methods = {"gradient": build_method("gradient", {}), "random": build_method("random", {})}
    facts = study_facts(("Edema",), methods, ("iou", "hit"), "phantom_chest", ("Few cases.", "", "No readers."))
    assert facts == {
        "findings": ["Edema"],
        "methods": [method_facts(name, method) for name, method in methods.items()],
        "metrics": [metric_facts("iou"), metric_facts("hit")],
        "source": source_facts("phantom_chest"),
        "notes": ["Few cases.", "No readers."],
    }


def test_cautions_are_said_once_and_only_if_there_are_any():
    facts = study_facts((), {}, (), "phantom_chest", (), ("Odd.", "Dark.", "Odd."))
    assert facts["cautions"] == ["Odd.", "Dark."]


def test_model_is_one_network_unless_it_says_otherwise_and_a_study_may_add_to_it():
    common = {"label": "One", "description": "The network one", "architecture": "vgg_compact", "weights_hash": "w"}
    single = {"name": "one", "kind": "single", "members": 1, "primary": True}
    assert model_facts(record("one"), primary=True) == common | single
    several = record("one", kind="ensemble", members=3, details={"channels": 1})
    expected = {"name": "one", "kind": "ensemble", "members": 3, "primary": False, "channels": 1}
    assert model_facts(several, primary=False) == common | expected


def test_the_primary_model_is_marked_among_all_and_described_alone():
    facts = models_facts([record("one"), record("two"), record("three")], "two")
    assert [(model["name"], model["primary"]) for model in facts["models"]] == [
        ("one", False),
        ("two", True),
        ("three", False),
    ]
    assert facts["model"] == {"name": "two", "description": "The network two", "outputs": ["Edema", "Nodule"]}
    assert facts.keys() == {"models", "model"}


@pytest.mark.parametrize(
    ("settings", "origin", "described"),
    [
        ({"name": "vgg_compact"}, "", "{label}"),
        ({"name": "vgg_compact", "weights": Path("/ward/7/a.pt")}, "", "{label}, weights a.pt"),
        ({"name": "vgg_compact"}, "trained for this study", "{label}, trained for this study"),
        ({"name": "python:mine:make"}, "", "A model of your own"),
        ({"name": "python:mine:make", "weights": Path("a.pt")}, "", "A model of your own, weights a.pt"),
    ],
)
def test_model_is_described_by_its_architecture_and_the_origin_of_its_weights(settings, origin, described):
    label = MODELS["vgg_compact"].label
    assert describe_model(ModelSettings(**settings), origin) == described.format(label=label)


def test_architecture_that_is_not_shipped_is_the_users():
    assert architecture_label("vgg_compact") == MODELS["vgg_compact"].label
    assert architecture_label("python:mine:make") == "A model of your own"
