"""DeepLIFT against Captum, by hand, and by completeness."""

import copy

import pytest
import torch
from captum.attr import DeepLift as Peer
from tests.methods.networks import Attending, Residual
from torch import nn
from torch.nn import functional

from heatcheck.core.errors import ModelError
from heatcheck.methods.deep_lift import DeepLift
from heatcheck.methods.gradient import baseline_of
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing


def classifier_of(module, size=(12, 12), outputs=3):
    names = tuple(f"finding {i}" for i in range(outputs))
    contract = Preprocessing(outputs=names, size=size, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("under test", module.eval(), contract)


def parts(*layers):
    torch.manual_seed(4)
    return nn.Sequential(*(layer() for layer in layers))


NETS = {
    "relu": (lambda: nn.Conv2d(1, 4, 3), nn.ReLU, lambda: nn.AvgPool2d(2), nn.Flatten, lambda: nn.Linear(100, 3)),
    "max pooling": (lambda: nn.Conv2d(1, 4, 3), lambda: nn.MaxPool2d(2), nn.Flatten, lambda: nn.Linear(100, 3)),
    "other activations": (
        lambda: nn.Conv2d(1, 4, 3), nn.ELU, lambda: nn.Conv2d(4, 4, 3), nn.Softplus,
        nn.Flatten, lambda: nn.Linear(256, 6), nn.Sigmoid, lambda: nn.Linear(6, 3),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
@pytest.mark.parametrize("baseline", ["zero", "blurred"])
@pytest.mark.parametrize("layers", NETS.values(), ids=NETS)
def test_equal_to_captum(layers, baseline):
    net, images = parts(*layers), torch.rand(2, 1, 12, 12, generator=torch.Generator().manual_seed(1))
    ours = DeepLift(baseline)(classifier_of(net), images, torch.tensor([[1, 2], [1, 2]]), [0, 0])
    for column, target in enumerate((1, 2)):
        start = baseline_of(images, baseline)
        expected = Peer(copy.deepcopy(net)).attribute(images.clone().requires_grad_(), start, target=target)
        torch.testing.assert_close(ours.values[:, column], expected.detach(), rtol=1e-5, atol=1e-7)


def test_by_hand():
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 1))
    with torch.no_grad():
        net[1].weight.copy_(torch.tensor([[1.0, 2.0]]))
        net[1].bias.copy_(torch.tensor([-2.0]))
        net[3].weight.copy_(torch.tensor([[3.0]]))
    # hidden: 1 + 4 − 2 = 3 → 3, of the empty image −2 → 0; multiplier 3/5; shares 3·(3/5)·1 and 3·(3/5)·4
    got = DeepLift()(classifier_of(net, (1, 2), 1), torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[0]]), [0])
    torch.testing.assert_close(got.values[0, 0, 0, 0], torch.tensor([1.8, 7.2]))
    torch.testing.assert_close(got.error, torch.zeros(1, 1))


def test_max_pooling_after_a_relu_by_hand():
    """Here Captum's answer does not add up; the pooled maxima are worked out one by one."""
    torch.manual_seed(0)
    conv, linear = nn.Conv2d(1, 3, 3, padding=1), nn.Linear(75, 3)
    after = nn.Conv2d(3, 3, 2)
    net = nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(2), after, nn.Flatten(), linear)
    images = torch.rand(1, 1, 12, 12)
    start = baseline_of(images, "blurred")
    with torch.no_grad():
        (z, z0), features = (conv(images), conv(start)), conv(images).relu()
        empty = z0.relu()
        slopes = linear.weight[1].reshape(1, 3, 5, 5)
        arriving = functional.conv_transpose2d(slopes, after.weight)
        moved = torch.zeros_like(features)
        for c, i, j in torch.cartesian_prod(torch.arange(3), torch.arange(6), torch.arange(6)).tolist():
            window = (0, c, slice(2 * i, 2 * i + 2), slice(2 * j, 2 * j + 2))
            now, then = features[window], empty[window]
            common = max(now.max(), then.max())
            for values, gain in ((now, common - then.max()), (then, now.max() - common)):
                row, column = divmod(int(values.argmax()), 2)
                moved[0, c, 2 * i + row, 2 * j + column] += arriving[0, c, i, j] * gain
        multipliers = torch.where(moved == 0, 0, moved / (features - empty)) * (features - empty) / (z - z0)
        expected = functional.conv_transpose2d(multipliers, conv.weight, padding=1) * (images - start)
    got = DeepLift("blurred")(classifier_of(net), images, torch.tensor([[1]]), [0])
    torch.testing.assert_close(got.values[:, 0], expected, rtol=1e-4, atol=1e-7)


class Quotients(nn.Module):
    """Divisions of every kind between a convolution and its head."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 4, 3), nn.Linear(4, 3)

    def forward(self, images):
        x = self.conv(images)
        return self.head((1 / (2 + x.abs()) + x / (1 + x.square()) + (3 - x) / 2).mean((2, 3)))


class Masked(nn.Module):
    """A causal mask of −inf on the attention, and ReLUs written as choices."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(12, 2, 16, batch_first=True)
        self.head = nn.Linear(12, 3)

    def forward(self, images):
        mask = nn.Transformer.generate_square_subsequent_mask(12, dtype=images.dtype)
        x = self.layer(images[:, 0], src_mask=mask)
        return self.head(torch.where(x > 0, x, 0.1 * x.detach() * 0).mean(1))


COMPLETE = {
    "masks and choices": Masked,
    "quotients": Quotients,
    "residual": Residual,
    "attention": lambda: Attending(False),
    "fused attention": lambda: Attending(True),
    "densenet": lambda: MODELS["densenet_compact"].build(1, 3),
}


@pytest.mark.parametrize("net", COMPLETE.values(), ids=COMPLETE)
def test_the_shares_add_up_to_the_difference(net):
    torch.manual_seed(2)
    module, size = net().double(), (32, 32) if net is COMPLETE["densenet"] else (12, 12)
    images = torch.randn(2, 1, *size, generator=torch.Generator().manual_seed(3)).double()
    classifier = classifier_of(module, size)
    got = DeepLift()(classifier, images, torch.tensor([[0, 1, 2]] * 2), [0, 0])
    with torch.no_grad():
        difference = classifier.logits(images) - classifier.logits(torch.zeros_like(images))
    assert difference.abs().min() > 1e-4
    torch.testing.assert_close(got.values.sum((2, 3, 4)), difference, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(got.error, torch.zeros_like(got.error), rtol=0, atol=1e-8)


def test_indices_that_depend_on_the_image_are_refused():
    class Sorted(nn.Module):
        def forward(self, images):
            flat = images.flatten(1)
            return flat.gather(1, flat.argsort(1))[:, -3:]

    with pytest.raises(ModelError, match="'gather' with a mask or indices that depend on the image"):
        DeepLift("blurred")(classifier_of(Sorted()), torch.rand(1, 1, 12, 12), torch.tensor([[0]]), [0])


def test_a_network_that_runs_other_operations_on_the_empty_image_is_refused():
    class Choosing(nn.Module):
        def forward(self, images):
            flat = images.flatten(1)[:, :3]
            return flat.relu() if bool(images.sum() > 0) else flat

    with pytest.raises(ModelError, match="other operations on the empty image"):
        DeepLift()(classifier_of(Choosing()), torch.rand(1, 1, 12, 12), torch.tensor([[0]]), [0])
