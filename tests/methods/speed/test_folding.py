"""A BatchNorm folded into the convolution before it leaves the output the same."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from heatcheck.methods.covering.masking import evaluating
from heatcheck.methods.speed.folding import Folding, Waiting, plain
from heatcheck.models import NetworkClassifier, Preprocessing


class Counting(TorchFunctionMode):
    """Counts the BatchNorms and convolutions that are computed."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def layers(axes, **norm):
    torch.manual_seed(axes)
    conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](4, 4, 3, padding=1)
    norm_layer = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[axes - 1](4, **norm)
    for value in norm_layer.parameters():
        nn.init.normal_(value)
    if norm_layer.running_mean is not None:
        norm_layer.running_mean.normal_()
        norm_layer.running_var.uniform_(0.5, 2)
    return conv, norm_layer.eval()


def changed_before_the_norm(conv, norm, x):
    answer = conv(x)
    x.mul_(0)
    return norm(answer)


def written_into(conv, norm, x):
    answer = conv(x)
    answer += 1
    return norm(answer)


def used_twice(conv, norm, x):
    answer = conv(x)
    return norm(answer) + answer


def norm_of_something_else(conv, norm, x):
    answer = conv(x)
    return norm(x) + answer


def sliced(conv, norm, x):
    answer = conv(x)
    return norm(answer[:1]) + answer[1:]


SAFE = {
    "one after the other": lambda conv, norm, x: norm(conv(x)),
    "with a relu in place": lambda conv, norm, x: norm(conv(norm(conv(x)).relu_())),
    "used twice": used_twice,
    "the norm of something else": norm_of_something_else,
    "no norm at all": lambda conv, _, x: conv(x),
    "its input is changed in between": changed_before_the_norm,
    "its output is written into": written_into,
    "its output is cut": sliced,
    "shape asked for": lambda conv, norm, x: norm(conv(x)) * conv(x).shape[1] + conv(x).dim() + conv(x).size(0),
    "padding by name": lambda conv, norm, x: (
        norm(functional.conv3d(x, conv.weight, padding="same")) if x.ndim == 5 else x
    ),
    "strided": lambda conv, norm, x: norm(type(conv)(4, 4, 3, stride=2, dilation=2).requires_grad_(False)(x)),
}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("name", SAFE)
def test_outputs_are_the_same_whatever_happens_in_between(name, axes):
    conv, norm = layers(axes)
    images = torch.randn(2, 4, *[6] * axes)
    with torch.no_grad():
        torch.manual_seed(0)
        expected = SAFE[name](conv, norm, images.clone())
        torch.manual_seed(0)
        with Folding():
            answer = plain(SAFE[name](conv, norm, images.clone()))
    assert type(answer) is torch.Tensor
    torch.testing.assert_close(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", [{}, {"affine": False}, {"eps": 0.1}], ids=str)
def test_a_norm_after_a_convolution_is_not_computed(norm):
    conv, norm = layers(3, **norm)
    images = torch.randn(2, 4, 6, 6, 6)
    with torch.no_grad(), Counting() as counted, Folding():
        answer = norm(conv(images))
    assert "batch_norm" not in counted.calls
    with torch.no_grad():
        torch.testing.assert_close(answer, norm(conv(images)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", [{"track_running_stats": False}, {}], ids=str)
def test_a_norm_that_depends_on_the_batch_is_not_folded(norm):
    conv, norm_layer = layers(3, **norm)
    images = torch.randn(2, 4, 6, 6, 6)
    norm_layer.train()
    with torch.no_grad():
        expected = functional.batch_norm(conv(images), None, None, norm_layer.weight, norm_layer.bias, training=True)
        with Folding():
            torch.testing.assert_close(norm_layer(conv(images)), expected)


def test_with_a_graph_nothing_waits():
    conv, norm = layers(3)
    with Folding():
        answer = norm(conv(torch.randn(1, 4, 6, 6, 6)))
    assert not isinstance(answer, Waiting)
    assert answer.requires_grad


def test_scores_of_volumes_are_those_of_the_network_and_hardly_differ_with_the_batch():
    torch.manual_seed(4)
    conv, norm = layers(3)
    module = nn.Sequential(conv, norm, nn.ReLU(inplace=True), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(108, 2)).eval()
    contract = Preprocessing(outputs=("a", "b"), size=(6, 6, 6), channels=4)
    images = torch.randn(3, 4, 6, 6, 6)
    for batch in (1, 2, 3):
        with evaluating(NetworkClassifier("net", module, contract), batch) as evaluate, Counting() as counted:
            scores = evaluate.uncovered(images)
        assert "batch_norm" not in counted.calls
        torch.testing.assert_close(scores, module(images).detach(), rtol=1e-4, atol=1e-5)
