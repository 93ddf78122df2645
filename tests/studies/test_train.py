"""Training from a spec, tiny; and the classifier that ships with the package."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from heatcheck import models
from heatcheck.core.errors import RunFolderError, SpecError, UnknownNameError
from heatcheck.models import ModelSettings, load_classifier
from heatcheck.runs.spec import read_spec
from heatcheck.sources.phantom_chest import PhantomChest, PhantomChestSettings
from heatcheck.studies.progress import Silent
from heatcheck.studies.train import evaluate, train

PHANTOM = {"name": "phantom_chest", "size": 40, "second_view": 0, "readers": 0}
SMALL = {
    "study": "training",
    "seed": 1,
    "threads": 1,
    "model": "densenet_compact",
    "size": [32, 32],
    "training": {**PHANTOM, "patients": 24},
    "validation": {**PHANTOM, "patients": 8, "first": 100},
    "test": {**PHANTOM, "patients": 12, "first": 200},
    "fit": {"epochs": 2, "batch_size": 8},
}


def spec_of(folder, **changes):
    path = folder / "training.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}))
    return read_spec(str(path))


def test_training_twice_gives_the_same_weights_and_a_classifier_that_loads(tmp_path):
    first = train(spec_of(tmp_path), tmp_path / "a", Silent(), workers=0)
    second = train(spec_of(tmp_path), tmp_path / "b", Silent(), workers=0)
    assert first.weights.read_bytes() == second.weights.read_bytes()
    assert first.results == second.results
    classifier = load_classifier(ModelSettings(name="densenet_compact", weights=first.weights))
    assert classifier.outputs == PhantomChest().findings
    record = json.loads((tmp_path / "a" / "training.json").read_text())
    assert [epoch["epoch"] for epoch in record["history"]] == [0, 1]


def test_another_seed_gives_other_weights(tmp_path):
    first = train(spec_of(tmp_path), tmp_path / "a", Silent(), workers=0)
    second = train(spec_of(tmp_path, seed=2), tmp_path / "b", Silent(), workers=0)
    assert first.weights.read_bytes() != second.weights.read_bytes()


def test_another_training_in_the_same_folder_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "training-spec.json").write_text("{}\n")
    with pytest.raises(RunFolderError, match="another training"):
        train(spec_of(tmp_path), tmp_path / "a", Silent(), workers=0)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "densnet_compact"}, UnknownNameError, "did you mean 'densenet_compact'"),
        ({"findings": ["Flu"]}, SpecError, "Flu"),
        ({"epochs": 3}, SpecError, "unknown key 'epochs'"),
        ({"fit": {"epoch": 3}}, SpecError, "did you mean 'epochs'"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_is_written(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        train(spec_of(tmp_path, **changes), tmp_path / "a", Silent(), workers=0)
    assert not (tmp_path / "a").exists()


def test_the_shipped_classifier_is_small_and_good_on_unseen_patients():
    name = "phantom_chest_densenet"
    classifier = load_classifier(ModelSettings(name=name))
    unseen = PhantomChest(PhantomChestSettings(patients=150, first=9_000_000, second_view=0, readers=0, size=192))
    results = evaluate(classifier, unseen, Silent())
    assert np.mean([result.auroc for result in results]) >= 0.90
    assert min(result.auroc for result in results) >= 0.80
    weights = Path(models.__file__).parent / "weights" / models.MODELS[name].weights
    assert weights.stat().st_size <= 5_000_000
