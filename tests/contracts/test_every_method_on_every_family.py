"""Every method on a compact network of every family: CNNs with residual sums and joined branches, transformers, 3D."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from heatcheck.core.errors import ModelError
from heatcheck.methods import METHODS, build_method
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing

COMPACT = [name for name in MODELS if name.endswith("_compact")]
CHEAP = {name: facts.trial for name, facts in METHODS.items()} | {"occlusion": {"window": 16, "stride": 16}}
SEEDS = [5, 6]
TARGETS = torch.tensor([[2, 0], [1, 2]])


@cache
def classifier_of(name, double=False):
    facts = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(7)
        module = facts.build(1, 3).eval()
        for part in module.modules():
            if isinstance(part, (nn.BatchNorm2d, nn.BatchNorm3d)):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
    contract = Preprocessing(outputs=("a", "b", "c"), size=facts.size, mean=(0.0,), std=(1.0,))
    return NetworkClassifier(name, module.double() if double else module, contract)


def make(name, images):
    facts = METHODS[name]
    method = build_method(name, CHEAP[name])
    generator = torch.Generator().manual_seed(1)
    if facts.wants_priors:
        return replace(method, priors=torch.rand(len(images), 3, *[8] * (images.ndim - 2), generator=generator))
    if facts.wants_donors:
        return replace(method, donors=tuple(torch.rand(len(images), 1, *images.shape[1:], generator=generator)))
    return method


def test_every_family_has_a_compact_twin():
    assert {MODELS[name].family for name in COMPACT} == {facts.family for facts in MODELS.values()}


@pytest.mark.parametrize("network", COMPACT)
@pytest.mark.parametrize("name", METHODS)
def test_the_method_runs_or_says_why_not(name, network):
    classifier = classifier_of(network)
    images = torch.randn(2, 1, *classifier.preprocessing.size, generator=torch.Generator().manual_seed(3))
    state = {key: value.clone() for key, value in classifier.module.state_dict().items()}
    method = make(name, images)
    if METHODS[name].family == "attention" and MODELS[network].family != "ViT":
        with pytest.raises(ModelError, match="no attention over all its patches"):
            method(classifier, images, TARGETS, SEEDS)
        return
    maps = method(classifier, images, TARGETS, SEEDS)
    assert maps.values.shape[:2] == (2, 2)
    assert maps.values.shape[3:] == images.shape[2:] or max(maps.values.shape[3:]) <= 16
    assert maps.values.isfinite().all()
    if "CAM" not in METHODS[name].label:  # ReLU may leave nothing of a CAM
        assert maps.values.flatten(2).std(2).min() > 0
    assert torch.equal(maps.values, method(classifier, images, TARGETS, SEEDS).values)
    assert all(torch.equal(state[key], value) for key, value in classifier.module.state_dict().items())
    assert not any(part._forward_hooks or part._backward_hooks for part in classifier.module.modules())


PAIRS = [
    (name, network)
    for name, facts in METHODS.items()
    for network in COMPACT
    if facts.needs.name == "INTERNALS" and (facts.family != "attention" or MODELS[network].family == "ViT")
]


@pytest.mark.parametrize(("name", "network"), PAIRS)
def test_a_target_of_a_batch_equals_that_target_of_that_image_alone(name, network):
    classifier = classifier_of(network, double=True)  # or a ReLU near 0 may open in one batch and not in another
    images = torch.randn(2, 1, *classifier.preprocessing.size, generator=torch.Generator().manual_seed(3)).double()
    method = make(name, images)
    together = method(classifier, images, TARGETS, SEEDS).values[1, 1]
    alone = method(classifier, images[1:], TARGETS[1:, 1:], SEEDS[1:]).values[0, 0]
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=1e-8 * alone.abs().max().item())
