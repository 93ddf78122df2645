"""Every method that can be part of a loss, on compact networks of the families that maps are trained through."""

from functools import cache

import pytest
import torch
from torch import nn

from heatcheck.methods import METHODS, build_method
from heatcheck.methods.differentiable import backward
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing

NETWORKS = [name for name in MODELS if name.endswith("_compact") and len(MODELS[name].size) == 2]
SMOOTH = ["densenet_compact", "vit_compact", "swin_compact"]
IN_A_LOSS = [name for name, facts in METHODS.items() if facts.differentiable]
SETTINGS = {"integrated_gradients": {"steps": 2}, "smooth_grad": {"samples": 2}, "gradient_shap": {"samples": 2}}
TARGETS, SEEDS = torch.tensor([[2], [0]]), [5, 6]


@cache
def classifier_of(name, double=False):
    """A fresh network whose findings all rise with its last features, or ReLU would leave nothing of Grad-CAM.

    In double precision it has no ReLU, so that finite differences are exact enough.
    """
    facts = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(7)
        module = facts.build(1, 3).eval()
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
    *_, last = (part for part in module.modules() if isinstance(part, nn.Linear))
    with torch.no_grad():
        last.weight.abs_()
    if double:
        without_kinks(module.double())
    contract = Preprocessing(outputs=("a", "b", "c"), size=facts.size, mean=(0.0,), std=(1.0,))
    return NetworkClassifier(name, module, contract)


def without_kinks(module):
    for name, part in module.named_children():
        if isinstance(part, nn.ReLU):
            setattr(module, name, nn.Softplus(beta=3))
        else:
            without_kinks(part)


def images_of(classifier):
    noise = torch.randn(2, 1, *classifier.preprocessing.size, generator=torch.Generator().manual_seed(3))
    return noise.to(next(classifier.module.parameters()).dtype)


def loss_of(values, scale):
    """How far the map is from rising from left to right."""
    return (values / scale - torch.linspace(-1, 1, values.shape[-1], dtype=values.dtype)).square().mean()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", IN_A_LOSS)
def test_a_loss_on_the_map_asks_something_finite_of_the_weights(name, network):
    classifier, method = classifier_of(network), build_method(name, SETTINGS.get(name, {}))
    inputs = (images_of(classifier), TARGETS, SEEDS)
    plain = method(classifier, *inputs).values
    classifier.module.zero_grad()
    value, made = backward(method, classifier, inputs, lambda values: loss_of(values, plain.abs().max()))
    torch.testing.assert_close(made.values, plain, rtol=1e-3, atol=1e-4 * plain.abs().max().item())
    weights = dict(classifier.module.named_parameters())
    assert value.isfinite()
    assert all(weight.grad.isfinite().all() for weight in weights.values() if weight.grad is not None)
    # a bias before a ReLU opens or closes it, which a gradient at the input does not see; the others must all learn
    several = [key for key, weight in weights.items() if weight.ndim > 1]
    assert [key for key in several if weights[key].grad is None or not weights[key].grad.any()] == []


@pytest.mark.parametrize("network", SMOOTH)
@pytest.mark.parametrize("name", IN_A_LOSS)
def test_its_slope_in_one_direction_of_all_weights_is_that_of_finite_differences(name, network):
    classifier = classifier_of(network, double=True)
    # an ε of 1e-6 leaves poles between the steps of a difference, where a sum that is divided by passes zero
    method = build_method(name, {"epsilon": 1.0} if name == "lrp" else SETTINGS.get(name, {}))
    inputs = (images_of(classifier), TARGETS, SEEDS)
    weights = list(classifier.module.parameters())
    generator = torch.Generator().manual_seed(11)
    way = [torch.randn(weight.shape, generator=generator, dtype=weight.dtype) for weight in weights]
    scale = method(classifier, *inputs).values.abs().max()
    maps = method(classifier, *inputs, create_graph=True).values
    slopes = torch.autograd.grad(loss_of(maps, scale), weights, allow_unused=True)
    along = sum((slope * step).sum() for slope, step in zip(slopes, way, strict=True) if slope is not None)

    def moved(distance):
        with torch.no_grad():
            for weight, step in zip(weights, way, strict=True):
                weight.add_(distance * step)
        return loss_of(method(classifier, *inputs).values, scale).item()

    below, above = moved(-1e-7), moved(2e-7)
    moved(-1e-7)
    assert along.item() != 0
    assert along.item() == pytest.approx((above - below) / 2e-7, rel=1e-4)
