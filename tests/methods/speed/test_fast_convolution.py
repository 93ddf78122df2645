"""The faster forms have the same values and gradients, once and twice differentiated."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from heatcheck.methods.speed.fast_convolution import DirectVolumes, QuickBackward

STEPS = [
    {},
    {"stride": 2, "padding": 3},
    {"stride": (2, 1), "padding": (0, 2)},
    {"dilation": 2, "padding": 1},
    {"kernel_size": (3, 5), "stride": 3},
]


def convolution(channels, steps):
    torch.manual_seed(0)
    return nn.Conv2d(channels, 5, **({"kernel_size": 4} | steps)).double()


def norm():
    torch.manual_seed(1)
    norm = nn.BatchNorm2d(3).double().eval()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return norm


def through(module, images, *, quick):
    if not quick:
        return module(images)
    with QuickBackward(weights=True):
        return module(images)


MODULES = [convolution(channels, steps) for channels in (1, 3) for steps in STEPS] + [norm()]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_values_and_gradients_are_those_of_torch(module):
    channels = module.weight.shape[1] if module.weight.ndim > 1 else 3
    images = torch.randn(2, channels, 11, 12, dtype=torch.float64, requires_grad=True)
    answers = [through(module, images, quick=quick) for quick in (False, True)]
    assert "FewChannels" in answers[1].grad_fn.name() or "Add" in answers[1].grad_fn.name()
    torch.testing.assert_close(answers[0], answers[1])
    arriving = torch.randn_like(answers[0])
    wanted = [images, *module.parameters()]
    slopes = [torch.autograd.grad(answer, wanted, arriving, create_graph=True) for answer in answers]
    for plain, quick in zip(*slopes, strict=True):
        torch.testing.assert_close(plain, quick)
    again = [torch.autograd.grad(sum((s**2).sum() for s in slope), wanted[:2]) for slope in slopes]
    for plain, quick in zip(*again, strict=True):
        torch.testing.assert_close(plain, quick)


@pytest.mark.parametrize(
    "steps",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2},
        {"groups": 2, "kernel_size": 2},
        {"padding": 3, "dilation": 2},
        {"padding": (0, 2, 1), "kernel_size": (1, 3, 2)},
        {"padding": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_volume_has_the_values_and_gradients_of_torch_once_and_twice(steps, batch):
    torch.manual_seed(2)
    module = nn.Conv3d(2, 4, **({"kernel_size": 3} | steps))
    volumes = torch.randn(batch, 2, 7, 8, 9, requires_grad=True)
    answers = [through(module, volumes, quick=quick) for quick in (False, True)]
    assert "Mkldnn" in answers[1].grad_fn.name() or "_Volumes" in answers[1].grad_fn.name()
    torch.testing.assert_close(answers[0], answers[1])
    arriving = torch.randn_like(answers[0])
    wanted = [volumes, *module.parameters()]
    slopes = [torch.autograd.grad(answer, wanted, arriving, create_graph=True) for answer in answers]
    for plain, quick in zip(*slopes, strict=True):
        torch.testing.assert_close(plain, quick, rtol=1e-4, atol=1e-4)
    again = [torch.autograd.grad(sum((s**2).sum() for s in slope), wanted[:2]) for slope in slopes]
    for plain, quick in zip(*again, strict=True):
        torch.testing.assert_close(plain, quick, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(
    "volumes",
    [torch.randn(1, 2, 5, 5, 5).double(), torch.randn(2, 5, 5, 5), torch.randn(0, 2, 5, 5, 5)],
    ids=["double precision", "no batch", "an empty batch"],
)
def test_volumes_that_onednn_cannot_take_are_left_to_torch(volumes):
    module = nn.Conv3d(2, 4, 3).to(volumes.dtype)
    with torch.no_grad():
        expected = module(volumes)
        for mode in (DirectVolumes(), QuickBackward(weights=False)):
            with mode:
                assert torch.equal(module(volumes), expected)


def test_a_relu_in_place_may_follow():
    images = torch.randn(1, 3, 8, 8, dtype=torch.float64, requires_grad=True)
    module = nn.Sequential(norm(), nn.ReLU(inplace=True))
    slopes = [torch.autograd.grad(through(module, images, quick=quick).sum(), images)[0] for quick in (False, True)]
    torch.testing.assert_close(slopes[0], slopes[1])


def test_weights_get_no_gradient_unless_asked_for():
    images = torch.randn(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    module = convolution(1, {})
    with QuickBackward(weights=False):
        answer = module(images)
    assert torch.autograd.grad(answer.sum(), module.weight, allow_unused=True) == (None,)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: functional.conv2d(x, torch.ones(2, 1, 3, 3).double(), padding="same"),
        lambda x: functional.conv2d(x, torch.ones(2, 1, 1, 1).double()),
        lambda x: functional.batch_norm(x, None, None, training=True),
    ],
)
def test_other_calls_are_left_to_torch(call):
    images = torch.randn(2, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    with QuickBackward(weights=True):
        answer = call(images)
    assert "FewChannels" not in answer.grad_fn.name()
    assert "Add" not in answer.grad_fn.name()
    torch.testing.assert_close(answer, call(images))
