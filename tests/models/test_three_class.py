"""A head with three classes per finding: negative, positive, uncertain."""

import math

import pytest
import torch

from heatcheck.methods import build_method
from heatcheck.models import ModelSettings, NetworkClassifier, Preprocessing, explained, load_classifier
from heatcheck.models.load import save_classifier
from heatcheck.models.registry import MODELS

OUTPUTS = ("a", "b")


def network(outputs):
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return MODELS["densenet_compact"].build(1, outputs, (32, 32)).eval()


@pytest.fixture(scope="module")
def three():
    contract = Preprocessing(outputs=OUTPUTS, size=(32, 32), head="three_class")
    return NetworkClassifier("densenet_compact", network(6), contract)


@pytest.fixture(scope="module")
def images():
    return torch.randn(2, 1, 32, 32, generator=torch.Generator().manual_seed(1))


def test_probability_is_the_softmax_over_negative_and_positive():
    classes = torch.tensor([[0.0, math.log(3), 9.0, 1.0, 1.0, -4.0]])
    contract = Preprocessing(outputs=OUTPUTS, size=(32, 32), head="three_class")
    classifier = NetworkClassifier("fixed", torch.nn.Identity(), contract)
    logits = classifier.logits(classes)
    torch.testing.assert_close(logits, torch.tensor([[math.log(3), 0.0]]))
    torch.testing.assert_close(classifier.probabilities(logits), torch.tensor([[0.75, 0.5]]))
    torch.testing.assert_close(explained(classifier).logits(classes), torch.tensor([[math.log(3), 1.0]]))


@pytest.mark.parametrize("name", ["grad_cam", "gradient", "integrated_gradients", "lrp", "deep_lift", "occlusion"])
def test_methods_explain_the_positive_logit(three, images, name):
    """As they would a network that has no other: the same trunk with the positive rows of the last layer."""
    positive = network(2)
    state = three.module.state_dict()
    rows = {key: value[1::3] if key.startswith("class_layers.out") else value for key, value in state.items()}
    positive.load_state_dict(rows)
    plain = NetworkClassifier("plain", positive, Preprocessing(outputs=OUTPUTS, size=(32, 32)))
    targets, seeds = torch.tensor([[0, 1], [0, 1]]), [0, 1]
    method = build_method(name, {"window": 16} if name == "occlusion" else {})
    maps, expected = (method(explained(one), images, targets, seeds).values for one in (three, plain))
    assert expected.abs().max() > 0
    torch.testing.assert_close(maps, expected)
    other = method(three, images, targets, seeds).values  # the log-odds also contain the evidence against the negative
    assert not torch.allclose(other, expected)


def test_binary_head_is_explained_as_it_is(images):
    plain = NetworkClassifier("plain", network(2), Preprocessing(outputs=OUTPUTS, size=(32, 32)))
    assert explained(plain) is plain


def test_positive_logits_alone_have_no_probability(three):
    with pytest.raises(TypeError, match="positive logits of densenet_compact give no probabilities"):
        explained(three).probabilities(torch.zeros(1, 2))


def test_saved_checkpoint_knows_its_head(three, images, tmp_path):
    save_classifier(three, tmp_path / "three.safetensors")
    loaded = load_classifier(ModelSettings(name="densenet_compact", weights=tmp_path / "three.safetensors"))
    assert loaded.preprocessing.head == "three_class"
    assert torch.equal(loaded.logits(images), three.logits(images))


def test_softmax_over_findings_is_refused_with_three_classes():
    with pytest.raises(ValueError, match="set activation to sigmoid"):
        Preprocessing(outputs=("a",), size=(8, 8), head="three_class", activation="softmax")
