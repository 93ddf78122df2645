"""Before the first case every method is tried; what cannot explain the model is skipped, or stops the run."""

from types import SimpleNamespace

import pytest
import torch
from tests.conftest import SmallTransformer
from torch import nn

from heatcheck.core.errors import InputError, ModelError, SpecError
from heatcheck.explaining.dry_run import tried_on
from heatcheck.explaining.methods import MethodRules, chosen_methods, skipped_facts
from heatcheck.methods import METHODS
from heatcheck.methods.sets import PREFERRED, SETS
from heatcheck.models import NetworkClassifier, Preprocessing

TWO_PATIENTS = [SimpleNamespace(patient="p1"), SimpleNamespace(patient="p2")]
FLOORS = {name for name, facts in METHODS.items() if facts.is_floor}


class Convolutional(nn.Module):
    """A small network; without rules for LRP and DeepLIFT where it ends in a maximum."""

    def __init__(self, pool):
        super().__init__()
        self.look, self.head, self.pool = nn.Conv2d(1, 3, 3, padding=1), nn.Linear(3, 1), pool

    def forward(self, images):
        return self.head(self.pool(torch.relu(self.look(images)), (2, 3)))


def classifier(network=None, size=(32, 32), channels=1):
    contract = Preprocessing(outputs=("a",), size=size, channels=channels)
    return NetworkClassifier("net", (network or Convolutional(torch.mean)).eval(), contract)


def transformer():
    contract = Preprocessing(outputs=("a", "b", "c"), size=(24, 32), channels=2)
    return NetworkClassifier("tokens", SmallTransformer(2, 2, 3).eval(), contract)


def parts(*names):
    return [{"name": name} if isinstance(name, str) else name for name in names]


def settled(model, *names, keys=TWO_PATIENTS, **rules):
    return tried_on(chosen_methods(parts(*names), "spec", MethodRules(**rules)), model, keys).settled()


@pytest.mark.parametrize("scaling", ["fixed", "nonzero"])
def test_methods_are_tried_out_on_a_black_image_however_images_are_scaled(scaling):
    contract = Preprocessing(outputs=("a",), size=(8, 8), channels=2, scaling=scaling)
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1))
    assert not settled(NetworkClassifier("net", network.eval(), contract), "gradient", "grad_cam").skipped


def test_no_method_is_called_like_a_set():
    assert not set(SETS) & set(METHODS)
    assert {name for order in PREFERRED.values() for name in order} <= set(METHODS)


def test_all_is_every_method_that_runs_with_the_floors_last():
    choice = settled(classifier(), "all")
    assert set(choice.methods) == set(METHODS) - {"attention_rollout"}
    assert [each.name for each in choice.skipped] == ["attention_rollout"]
    assert set(list(choice.methods)[-len(FLOORS) :]) == FLOORS
    assert [part["name"] for part in choice.parts] == list(choice.methods)


def test_fast_methods_need_few_passes_on_this_model_and_floors_none():
    choice = settled(classifier(), "fast")
    assert {"grad_cam", "gradient", "integrated_gradients", *FLOORS} <= set(choice.methods)
    assert not {"occlusion", "lime", "kernel_shap"} & set(choice.methods)


def test_an_occlusion_of_few_windows_is_fast_where_the_image_is_small(monkeypatch):
    monkeypatch.setattr(METHODS["occlusion"].settings, "passes", lambda *_: SimpleNamespace(total=9))
    assert "occlusion" in settled(classifier(), "fast").methods


def test_recommended_is_one_method_of_each_family_that_runs_and_all_floors():
    families = {facts.family for facts in METHODS.values()} - {"floor", "attention"}
    names = set(settled(classifier(), "recommended").methods)
    assert names >= FLOORS
    assert sorted(METHODS[name].family for name in names - FLOORS) == sorted(families)
    assert {"grad_cam", "integrated_gradients", "lrp", "occlusion"} == names - FLOORS
    assert "attention_rollout" in settled(transformer(), "recommended").methods


def test_where_the_recommended_method_of_a_family_does_not_run_the_next_one_stands_in():
    choice = settled(classifier(Convolutional(torch.amax)), "recommended")
    assert "guided_backprop" in choice.methods
    assert [each.name for each in choice.skipped] == ["attention_rollout", "deep_lift", "lrp"]
    # of a family whose first method runs, the others are not spoken of
    assert [each.name for each in settled(classifier(), "recommended").skipped] == ["attention_rollout"]


def test_a_set_may_stand_beside_methods_with_settings_and_comes_out_the_same_every_time():
    window = {"name": "occlusion", "window": 8}
    choice = settled(classifier(), "fast", window)
    assert choice.parts[-1] == window
    assert choice.parts == settled(classifier(), "fast", window).parts
    again = settled(classifier(), *choice.parts)  # as run.json holds it
    assert again.parts == choice.parts
    assert again.methods == choice.methods


def test_a_study_says_which_methods_its_sets_can_have():
    names = set(settled(classifier(), "all", in_sets=lambda facts: facts.differentiable).methods)
    assert names == {name for name, facts in METHODS.items() if facts.differentiable}


def test_a_named_method_that_cannot_explain_the_model_is_skipped_and_named():
    choice = settled(classifier(Convolutional(torch.amax)), "lrp", "gradient")
    assert list(choice.methods) == ["gradient"]
    (entry,) = skipped_facts(choice.skipped)["skipped"]
    assert entry["label"] == "LRP"
    assert entry["model"] == "net"
    assert entry["reason"] == "the network uses the operation 'amax', for which this method has no rule"


def test_strict_stops_at_a_named_method_but_not_at_a_member_of_a_set():
    network = classifier(Convolutional(torch.amax))
    with pytest.raises(ModelError, match="method lrp: the network uses the operation 'amax'"):
        settled(network, "gradient", "lrp", strict=True)
    assert "lrp" not in settled(network, "all", strict=True).methods


def test_settings_that_do_not_fit_stop_the_run_though_the_method_would_run():
    with pytest.raises(ModelError, match="method grad_cam: the model has no layer 'lok'; did you mean 'look'"):
        settled(classifier(), {"name": "grad_cam", "layer": "lok"}, "gradient")
    flat = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
    choice = settled(classifier(flat, (8, 8)), {"name": "grad_cam", "placement": "plain"}, "gradient")
    assert [each.name for each in choice.skipped] == ["grad_cam"]  # no setting would help


def test_cases_of_one_patient_stop_a_named_method_that_needs_others():
    with pytest.raises(SpecError, match="feature_permutation needs images of other patients"):
        settled(classifier(), "feature_permutation", "gradient", keys=TWO_PATIENTS[:1])
    assert "feature_permutation" not in settled(classifier(), "all", keys=TWO_PATIENTS[:1]).methods


def test_a_run_of_floors_alone_is_refused_if_methods_were_wanted():
    flat = classifier(nn.Sequential(nn.Flatten(), nn.Linear(64, 1)), (8, 8))
    with pytest.raises(
        ModelError, match=r"no method is left to explain model net; Grad-CAM: .* no spatial feature map"
    ):
        settled(flat, "grad_cam", "random")
    assert list(settled(flat, "random").methods) == ["random"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["recomended"], "unknown method 'recomended'; did you mean 'recommended'"),
        ([{"name": "fast", "steps": 3}], "'fast' stands for several methods"),
        (["fast", "fast"], "named twice"),
    ],
)
def test_what_is_wrong_with_a_set_is_said(names, message):
    with pytest.raises(InputError, match=message):
        chosen_methods(parts(*names), "spec")
