"""Maps that can be differentiated with respect to the weights, against finite differences."""

import pytest
import torch
from torch import nn

from heatcheck.methods import METHODS, build_method
from heatcheck.models import NetworkClassifier, Preprocessing

SETTINGS = {"integrated_gradients": {"steps": 3}, "smooth_grad": {"samples": 3}}
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
    for place in ((0, 0, 1, 1), (2, 0, 0, 2)):
        step = 1e-5
        with torch.no_grad():
            weight[place] += step
        above = loss().item()
        with torch.no_grad():
            weight[place] -= 2 * step
        below = loss().item()
        with torch.no_grad():
            weight[place] += step
        assert gradient[place].item() == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].differentiable])
def test_other_methods_do_not_take_the_wish(name):
    with pytest.raises(TypeError, match="create_graph"):
        build_method(name, {})(
            None, torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, dtype=torch.long), [0], create_graph=True
        )
