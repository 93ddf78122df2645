import json

import numpy as np
import torch
from tests.brats_material import write_2020
from tests.fitting.material import training_spec

from heatcheck.fitting.train import train
from heatcheck.models import ModelSettings, load_classifier
from heatcheck.running.progress import Silent
from heatcheck.sources import SOURCES


def test_network_of_volumes_is_trained_on_four_modalities_scaled_by_themselves(tmp_path):
    for first, name, grades in ((1, "training", "HHHHHL"), (101, "validation", "HL"), (201, "test", "HL")):
        write_2020(tmp_path / name, [f"{letter}GG" for letter in grades], first)
    spec = {
        "study": "training",
        "seed": 1,
        "threads": 1,
        "model": "vgg3d_compact",
        "size": [8, 8, 8],
        "labels": "single",
        "pixels": {"scaling": "nonzero"},
        "fit": {"epochs": 1, "batch_size": 2, "learning_rate": 0.0005, "optimizer": "adam", "balanced": True},
        **{name: {"name": "brats", "root": name} for name in ("training", "validation", "test")},
    }
    result = train(training_spec(tmp_path, spec), tmp_path / "out", Silent())
    classifier = load_classifier(ModelSettings(name="vgg3d_compact", weights=result.weights))
    wanted = classifier.preprocessing
    assert (wanted.outputs, wanted.channels, wanted.scaling, wanted.activation) == (
        ("LGG", "HGG"), 4, "nonzero", "softmax"
    )  # fmt: skip
    facts = SOURCES["brats"]
    source = facts.open(facts.settings(root=tmp_path / "test"))
    images = classifier.prepare([source.load(key).image for key in source.index()])
    classes = classifier.probabilities(classifier.logits(images)).argmax(1)
    right = [source.index()[case].labels[wanted.outputs[int(label)]] for case, label in enumerate(classes)]
    assert torch.isfinite(images).all()
    assert result.accuracy == np.mean(right)
    assert json.loads((tmp_path / "out" / "training.json").read_text())["unreadable"] == 0
