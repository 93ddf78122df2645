"""Maps that can be differentiated with respect to the weights, against finite differences."""

import pytest
import torch
from tests.methods.networks import Attending
from torch import nn

from heatcheck.core.errors import SpecError
from heatcheck.methods import METHODS, build_method
from heatcheck.methods.differentiable import backward, differentiable
from heatcheck.models import NetworkClassifier, Preprocessing

SETTINGS = {"integrated_gradients": {"steps": 3}, "smooth_grad": {"samples": 3}, "gradient_shap": {"samples": 3}}
DIFFERENTIABLE = [name for name in METHODS if METHODS[name].differentiable]


def smooth_classifier():
    """A small network without kinks, in double precision, so that finite differences are exact enough."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.Softplus(), nn.Conv2d(3, 4, 3, padding=1), nn.Softplus(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Tanh(), nn.Linear(4, 2),
    ).double()  # fmt: skip
    with torch.no_grad():
        module[-1].weight.abs_()  # or ReLU would leave nothing of Grad-CAM
    contract = Preprocessing(outputs=("a", "b"), size=(6, 6), mean=(0.0,), std=(1.0,))
    return NetworkClassifier("smooth", module.eval(), contract)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_gradient_of_a_loss_on_the_map_reaches_the_weights_and_is_right(name):
    classifier = smooth_classifier()
    method = build_method(name, SETTINGS.get(name, {}))
    images = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(1)).double()
    targets = torch.tensor([[0, 1], [1, 0]])

    def loss():
        values = method(classifier, images, targets, [1, 2], create_graph=True).values
        pattern = torch.linspace(0, 1, values[0, 0].numel(), dtype=torch.float64).reshape(values.shape[2:])
        return ((values - pattern) ** 2).sum()

    weight = classifier.module[0].weight
    gradient = torch.autograd.grad(loss(), weight)[0]
    assert gradient.abs().max() > 0
    for index in ((0, 0, 1, 1), (2, 0, 0, 2)):
        step = 1e-5
        with torch.no_grad():
            weight[index] += step
        above = loss().item()
        with torch.no_grad():
            weight[index] -= 2 * step
        below = loss().item()
        with torch.no_grad():
            weight[index] += step
        assert gradient[index].item() == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].differentiable])
def test_other_methods_refuse_with_a_reason(name):
    with pytest.raises(SpecError, match=rf"method {name} cannot be part of a loss: it.*; use one of .*gradient"):
        differentiable(build_method(name, {}))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_two_pass_form_gives_the_gradient_of_one_graph(name):
    classifier = smooth_classifier()
    method = build_method(name, SETTINGS.get(name, {}))
    images = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(1)).double()
    targets = torch.tensor([[0, 1], [1, 0]])

    def loss(values):
        return (values**2).sum() + (values[:, 0] * values[:, 1]).sum()

    weights = list(classifier.module.parameters())
    plain = loss

    def loss(values):  # a loss may also ask something of the weights themselves
        return plain(values) + weights[0].pow(2).sum()

    maps = method(classifier, images, targets, [1, 2], create_graph=True).values
    expected = torch.autograd.grad(loss(maps), weights, allow_unused=True)
    value, result = backward(method, classifier, (images, targets, [1, 2]), loss)
    torch.testing.assert_close(result.values, maps.detach())
    torch.testing.assert_close(value, loss(maps).detach())
    assert expected[0].abs().max() > 0
    for weight, slope in zip(weights, expected, strict=True):
        torch.testing.assert_close(
            torch.zeros_like(weight) if weight.grad is None else weight.grad,
            torch.zeros_like(weight) if slope is None else slope,
        )


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_fused_attention_can_be_differentiated_twice(name):
    contract = Preprocessing(outputs=("a", "b", "c"), size=(12, 12), mean=(0.0,), std=(1.0,))
    images, targets = torch.rand(1, 1, 12, 12), torch.tensor([[0]])
    slopes = []
    for fused in (False, True):
        module = Attending(fused).eval()
        method = build_method(name, SETTINGS.get(name, {}))
        maps = method(NetworkClassifier("vit", module, contract), images, targets, [1], create_graph=True).values
        slopes.append(torch.autograd.grad((maps**2).sum(), module.qkv.weight)[0])
    assert slopes[0].abs().max() > 0
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-3, atol=1e-5 * slopes[0].abs().max().item())


def test_a_frozen_trunk_leaves_what_the_head_can_learn():
    classifier = smooth_classifier()
    trunk, head = classifier.module[:4], classifier.module[-1]
    for weight in trunk.parameters():
        weight.requires_grad_(False)
    images, targets = torch.rand(1, 1, 6, 6).double(), torch.tensor([[0]])
    maps = build_method("grad_cam", {})(classifier, images, targets, [1], create_graph=True).values
    assert torch.autograd.grad(maps.square().sum(), head.weight)[0].abs().max() > 0
