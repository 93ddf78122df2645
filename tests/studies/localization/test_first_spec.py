"""A first spec is filled in from a folder of images and a model, and runs."""

import json

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from heatcheck.core.errors import InputError, ModelError
from heatcheck.explaining.named_model import NamedModel
from heatcheck.models import NetworkClassifier, Preprocessing, save_classifier
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.localization.first_spec import DataFiles, first_spec
from heatcheck.studies.localization.plan import plan_localization

NETWORK = """
import torch
from torch import nn

class Maximum(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.head = nn.Conv2d(1, 4, 3), nn.Linear(4, 2)
    def forward(self, images):
        return self.head(torch.relu(self.look(images)).amax((2, 3)))
"""
MODEL = "python:first_spec_net:Maximum"
CONTRACT = {"outputs": ["Edema", "Nodule"], "size": [24, 24], "channels": 1, "mean": [0.5], "std": [0.25],
            "activation": "sigmoid"}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Six films with masks and labels, a network, and the current folder among them."""
    monkeypatch.chdir(tmp_path)
    for folder in ("films", "masks/Nodule", "masks/Edema"):
        (tmp_path / folder).mkdir(parents=True)
    for number in range(6):
        grey = np.full((24, 24), 40 * number, np.uint8)
        Image.fromarray(grey).save(tmp_path / f"films/p{number}.png")
        Image.fromarray(np.eye(24, dtype=np.uint8) * 255).save(tmp_path / f"masks/Nodule/p{number}.png")
    rows = "".join(f"p{number},1,0\n" for number in range(6))
    (tmp_path / "labels.csv").write_text(f"image,Nodule,Edema\n{rows}")
    (tmp_path / "first_spec_net.py").write_text(NETWORK)
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(CONTRACT))
    return tmp_path


def written(filled, folder):
    path = folder / "mine.yaml"
    path.write_text(filled.text)
    return path, yaml.safe_load(filled.text)


def test_what_lies_beside_the_images_and_what_the_model_says_is_a_spec_that_runs(here):
    model = NamedModel(MODEL, contract=here / "contract.yaml", trust_code=True)
    filled = first_spec(here / "mine.yaml", DataFiles(here / "films"), model)
    path, spec = written(filled, here)
    assert spec["source"] == {"name": "folder", "images": "films", "masks": "masks", "labels": "labels.csv"}
    assert spec["model"]["contract"] == CONTRACT
    assert spec["findings"] == "all"
    assert {"grad_cam", "guided_backprop", "occlusion", "location_prior"} < set(spec["methods"])
    assert not {"lrp", "deep_lift", "attention_rollout"} & set(spec["methods"])  # they do not run on this model
    assert filled.text.count("# ") > 20  # the comments of the template are there
    assert any("Found 6 images; findings: Nodule and Edema." in remark for remark in filled.remarks)
    plan = plan_localization(read_spec(str(path)), RunOptions(trust_code=True), here / "run")
    assert list(plan.methods) == spec["methods"]
    assert not plan.study_models.choice.skipped


def test_images_without_labels_and_damaged_ones_are_named(here):
    (here / "labels.csv").write_text("image,Nodule,Edema\np0,1,0\np1,1,0\np2,0,1\np3,1,0\n")
    whole = (here / "films" / "p2.png").read_bytes()
    (here / "films" / "p2.png").write_bytes(whole[:-20])
    (here / "films" / "p3.png").write_bytes(b"")
    said = first_spec(here / "mine.yaml", DataFiles(here / "films"), None).remarks
    assert "Found 6 images, 4 of them with labels; findings: Nodule and Edema." in said
    assert any("2 of 6 images in films/ have no row in labels.csv and take no part (p4, p5)" in each for each in said)
    (damaged,) = (each for each in said if "cannot be used" in each)
    assert damaged.startswith("2 of 6 images cannot be used: p2.png cannot be read (")
    assert "p3.png is empty" in damaged


def test_a_checkpoint_with_its_contract_needs_nothing_filled_in(here):
    contract = Preprocessing(**{**CONTRACT, "outputs": ["Nodule", "Hernia"]})
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24 * 24, 2))
    save_classifier(NetworkClassifier("n", network, contract), here / "w.safetensors")
    (here / "first_spec_flat.py").write_text(
        "from torch import nn\ndef make():\n    return nn.Sequential(nn.Flatten(), nn.Linear(576, 2))\n"
    )
    model = NamedModel("python:first_spec_flat:make", here / "w.safetensors", trust_code=True)
    filled = first_spec(here / "mine.yaml", DataFiles(here / "films"), model)
    _, spec = written(filled, here)
    assert spec["model"] == {"name": model.name, "weights": "w.safetensors"}
    assert "its outputs: Nodule, Hernia" in filled.text
    assert spec["findings"] == ["Nodule"]
    assert any("no output for Edema" in remark for remark in filled.remarks)
    assert "grad_cam" not in spec["methods"]  # there is no feature map


def test_what_a_model_does_not_say_is_asked_for_and_not_guessed(here):
    filled = first_spec(here / "mine.yaml", DataFiles(here / "films"), NamedModel(MODEL, trust_code=True))
    path, spec = written(filled, here)
    assert spec["model"]["contract"]["outputs"] == ["Nodule", "Edema"]  # as many as the network has
    assert spec["model"]["contract"]["mean"] is None
    assert any(
        "does not say size, channels, mean, std and activation: fill them in" in remark for remark in filled.remarks
    )
    assert "\n  # weights: model.safetensors " in filled.text
    assert filled.remarks[-1].startswith("No weights were named.")
    with pytest.raises(InputError, match="the contract does not say size, channels, mean, std, activation; add"):
        plan_localization(read_spec(str(path)), RunOptions(trust_code=True), here / "run")


def test_without_a_model_the_spec_asks_for_the_recommended_methods(here):
    outlines = {"p1": {"img_size": [24, 24], "Nodule": [[[1, 1], [9, 1], [9, 9]]]}}
    (here / "outlines.json").write_text(json.dumps(outlines))
    _, spec = written(first_spec(here / "mine.yaml", DataFiles(here / "films", here / "outlines.json"), None), here)
    assert spec["methods"] == "recommended"
    assert spec["source"]["truth"] == "outlines.json"
    assert "masks" not in spec["source"]


def test_paths_are_relative_to_the_spec_where_they_lie_beside_it(here):
    (here / "specs").mkdir()
    _, spec = written(first_spec(here / "specs" / "mine.yaml", DataFiles(here / "films"), None), here)
    assert spec["source"]["images"] == str(here / "films")


def test_what_cannot_be_used_is_refused(here):
    with pytest.raises(InputError, match="nowhere: no such folder"):
        first_spec(here / "mine.yaml", DataFiles(here / "nowhere"), None)
    with pytest.raises(ModelError, match="add --trust-code"):
        first_spec(here / "mine.yaml", DataFiles(), NamedModel(MODEL))
    (here / "contract.yaml").write_text(yaml.safe_dump({**CONTRACT, "outputs": ["Cyst", "Hernia"]}))
    model = NamedModel(MODEL, contract=here / "contract.yaml", trust_code=True)
    with pytest.raises(InputError, match=r"no finding of the images \(Nodule, Edema\) is an output of the model"):
        first_spec(here / "mine.yaml", DataFiles(here / "films"), model)
