"""Preflight: every method is tried, and what fails says why."""

from dataclasses import dataclass, replace

import pytest
import yaml

from heatcheck.core.errors import InputError, ModelError
from heatcheck.explaining.named_model import NamedModel
from heatcheck.explaining.preflight import Input, preflight
from heatcheck.methods import METHODS

MODULE = """
import torch
from torch import nn
from torch.nn import functional

def flat():
    return nn.Sequential(nn.Flatten(), nn.Linear(2 * 8 * 8, 3))

class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.head = nn.Conv3d(2, 3, 3, stride=4), nn.Linear(3, 4)
    def forward(self, x):
        return self.head(functional.relu(self.look(x)).mean((2, 3, 4)))

def picky():
    return nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 30 * 30, 3))
"""
CONTRACT = {
    "outputs": ["a", "b", "c"],
    "size": [8, 8],
    "channels": 2,
    "mean": [0.0],
    "std": [1.0],
    "activation": "sigmoid",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "preflight_nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(CONTRACT))
    return tmp_path


def test_every_method_is_tried_on_a_network_with_random_weights():
    known = preflight(NamedModel("densenet_compact"), Input(side=64))
    assert [row.method for row in known.methods] == sorted(METHODS)
    assert (known.size, known.channels, known.weights) == ((64, 64), 1, "random")
    assert known.parameters > 1e5
    assert known.layer
    for row in known.methods:
        assert row.runs or row.reason
        assert not row.runs or (row.seconds > 0 and row.forwards > 0)
    assert next(row for row in known.methods if row.method == "grad_cam").runs
    rows = {row.method: row for row in known.methods}
    assert rows["lime"].passes == 500  # as in a study, though it is tried with fewer
    assert rows["lime"].seconds_per_map > 50 * rows["grad_cam"].seconds_per_map > 0
    assert rows["random"].seconds_per_map == 0
    assert known.seconds_of(["lime", "occlusion"]) == rows["lime"].seconds_per_map + rows["occlusion"].seconds_per_map
    assert "flat prior" in next(row for row in known.methods if row.method == "location_prior").reason


def test_a_network_without_feature_maps_gets_the_reason(here):
    model = NamedModel("python:preflight_nets:flat", contract=here / "contract.yaml", trust_code=True)
    known = preflight(model)
    rows = {row.method: row for row in known.methods}
    assert not rows["grad_cam"].runs
    assert rows["grad_cam"].reason.startswith("the model has no spatial feature map")  # its name stands before it
    assert rows["gradient"].runs
    assert "grad_cam" not in known.recommended
    assert {"integrated_gradients", "occlusion", "location_prior"} < set(known.recommended)
    assert (known.layer, known.outputs, known.size) == ("", 3, (8, 8))


@pytest.mark.usefixtures("here")
def test_channels_and_axes_are_read_from_the_first_convolution():
    known = preflight(NamedModel("python:preflight_nets:Volume", trust_code=True), Input(side=16))
    assert (known.size, known.channels, known.outputs) == ((16, 16, 16), 2, 4)


@pytest.mark.usefixtures("here")
def test_what_cannot_be_done_at_all_is_an_error():
    with pytest.raises(ModelError, match="--trust-code"):
        preflight(NamedModel("python:preflight_nets:flat"))
    with pytest.raises(ModelError, match=r"fails on images of \(1, 3, 224, 224\)"):
        preflight(NamedModel("python:preflight_nets:picky", trust_code=True))
    with pytest.raises(InputError, match="did you mean 'densenet_compact'"):
        preflight(NamedModel("densenet_compct"))
    with pytest.raises(ModelError, match="abacus"):
        preflight(NamedModel("densenet_compact", device="abacus"))


@dataclass(frozen=True)
class Broken:
    """A method that fails in a way nobody thought of."""

    def __call__(self, *_):
        raise KeyError("inside")


def test_a_method_that_breaks_does_not_stop_the_others(monkeypatch):
    monkeypatch.setitem(METHODS._parts, "edge", replace(METHODS["edge"], settings=Broken))
    rows = {row.method: row for row in preflight(NamedModel("densenet_compact"), Input(side=32)).methods}
    assert not rows["edge"].runs
    assert "KeyError: 'inside'" in rows["edge"].reason
    assert rows["random"].runs


def test_donors_get_a_stand_in_and_it_is_said():
    rows = {row.method: row for row in preflight(NamedModel("densenet_compact"), Input(side=32)).methods}
    assert rows["feature_permutation"].runs
    assert "random image as donor" in rows["feature_permutation"].reason
