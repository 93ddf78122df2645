"""The chain rule on the tape gives what autograd gives, however the network spells its operations."""

import gc

import pytest
import torch
from torch import nn
from torch.nn import functional

from heatcheck.core.errors import ModelError
from heatcheck.methods import build_method
from heatcheck.methods.speed.tape import Node, Tape, gradient
from heatcheck.models import NetworkClassifier, Preprocessing


def classifier_of(module, size=(8, 8)):
    contract = Preprocessing(outputs=("a", "b"), size=size, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("under test", module.eval(), contract)


class Doubled(torch.autograd.Function):
    """A user's own autograd function, made of torch operations."""

    @staticmethod
    def forward(_, value):
        return value * 2

    @staticmethod
    def backward(_, arriving):
        return arriving * 2


class Net(nn.Module):
    """A convolution, something in the middle, and a head."""

    def __init__(self, middle):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.head, self.middle = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(4, 2), middle

    def forward(self, images):
        return self.head(self.middle(self.conv(images)).mean((2, 3)))


def written_part(x):
    changed = x.clone()
    changed[:, 1:3] = x[:, :2].tanh()
    return changed


def summed_in_place(x):
    kept = x
    y = x * 0.3
    y += kept
    y.mul_(0.5).relu_()
    return y


def mixed_attention(x):
    tokens = x.flatten(2).transpose(1, 2)
    weights = torch.einsum("bik,bjk->bij", tokens, tokens).softmax(-1)
    return (weights @ tokens).transpose(1, 2).unflatten(2, (8, 8))


def chunks(x):
    first, second = x.chunk(2, 1)
    a, b = second.unbind(1)
    return torch.cat([first.exp(), torch.stack([a * b, b - 1.0], 1)], 1)


def spread_in_place(x):
    y = x * 1.5
    y += x.mean((2, 3), keepdim=True)
    return y.div_(2.0)


MIDDLES = {
    "a sum with a pooled map": lambda x: x + x.mean((2, 3), keepdim=True),
    "a sum with a larger constant": lambda x: x.mean((2, 3), keepdim=True) + torch.ones(1, 4, 8, 8),
    "a spread sum in place": spread_in_place,
    "a shape's own methods": lambda x: x * (x.shape[2:].numel() / x.size().numel()),
    "answers with names": lambda x: x + x.max(dim=1, keepdim=True).values + x.topk(1, 1).values,
    "a wish for gradients": lambda x: x.requires_grad_() * 2,
    "relu in place": lambda x: functional.relu(x, True),
    "relu method in place": lambda x: x.relu_(),
    "functional relu in place by name": lambda x: functional.relu(x, inplace=True),
    "tensors written into": written_part,
    "sums in place": summed_in_place,
    "operators": lambda x: -(2 - x / 3) * x + x**2,
    "quotients": lambda x: 1 / (2 + x.abs()) + x / (1 + x.square()) + (3 - x) / 2,
    "attention": mixed_attention,
    "fused attention": lambda x: functional.scaled_dot_product_attention(x, x, x),
    "chunks": chunks,
    "pooling": lambda x: functional.max_pool2d(functional.avg_pool2d(x, 2), 2),
    "shape arithmetic": lambda x: x.view(x.shape[0], -1).reshape(x.size(0), 4, 8, 8).mT.mT,
    "dropout": lambda x: functional.dropout(x, 0.5, training=False),
    "a mask": lambda x: torch.where(x > 0, x, 0.1 * x).masked_fill(x < -1, 0.0),
    "a detached factor": lambda x: x * x.detach().sigmoid(),
    "an autograd function": Doubled.apply,
    "the same tensor twice": lambda x: x * x + torch.cat([x[:, :2], x[:, :2]], 1),
}


@pytest.mark.parametrize("graph", [False, True], ids=["without graph", "with graph"])
@pytest.mark.parametrize("middle", MIDDLES.values(), ids=MIDDLES)
def test_the_chain_rule_on_the_tape_is_autograd(middle, graph):
    net = Net(middle)
    images = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    leaf = images.clone().requires_grad_()
    expected_logits = net.eval()(leaf.clone())
    (expected,) = torch.autograd.grad(expected_logits[:, 1].sum(), leaf)
    tape = Tape({}, otherwise=gradient, create_graph=graph)
    logits = tape.record(classifier_of(net), images)
    torch.testing.assert_close(logits, expected_logits)
    got = tape.back(torch.zeros_like(logits).index_fill(1, torch.tensor([1]), 1.0))
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("batch_first", [True, False])
def test_the_multi_head_attention_of_torch_can_be_taken_apart(batch_first):
    from heatcheck.methods.speed.operations import attention, multi_head_attention

    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=batch_first)
            self.head = nn.Linear(8, 2)

        def forward(self, images):
            return self.head(self.layer(images[:, 0]).mean(1))

    net, images = Attending().eval(), torch.randn(2, 1, 8, 8)
    leaf = images.clone().requires_grad_()
    expected_logits = net(leaf)
    (expected,) = torch.autograd.grad(expected_logits[:, 0].sum(), leaf)
    apart = {"multi_head_attention_forward": multi_head_attention, "scaled_dot_product_attention": attention}
    tape = Tape({}, apart, otherwise=gradient)
    logits = tape.record(classifier_of(net), images)
    torch.testing.assert_close(logits, expected_logits.detach(), rtol=1e-5, atol=1e-6)
    assert "softmax" in {node.operation for node in tape.nodes}
    got = tape.back(torch.tensor([[1.0, 0.0]] * 2))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6)


def test_an_operation_without_a_rule_is_named_before_the_backward_pass():
    with pytest.raises(ModelError, match="'cumsum', for which this method has no rule; choose another"):
        Tape(dict.fromkeys(("conv2d", "mean", "linear"), gradient)).record(
            classifier_of(Net(lambda x: x.cumsum(2))), torch.rand(1, 1, 8, 8)
        )


def test_memory_written_through_another_view_is_refused():
    def stale(x):
        flat = x.flatten(1)
        x.relu_()
        return flat.reshape(x.shape)

    with pytest.raises(ModelError, match="reads through another view"):
        Tape({}, otherwise=gradient).record(classifier_of(Net(stale)), torch.rand(1, 1, 8, 8))


@pytest.mark.parametrize("name", ["lrp", "deep_lift", "guided_backprop"])
@pytest.mark.parametrize("middle", ["a sum with a pooled map", "a spread sum in place"])
def test_nothing_is_counted_twice_where_a_sum_broadcasts_a_summand(name, middle):
    net = Net(MIDDLES[middle])
    nn.init.zeros_(net.conv.bias)
    nn.init.zeros_(net.head.bias)
    images = torch.rand(1, 1, 8, 8)
    maps = build_method(name, {})(classifier_of(net), images, torch.tensor([[0]]), [0]).values[0, 0]
    logit = net(images)[0, 0].detach()
    # the network is linear: relevance and contributions add up to the logit, and so do gradient × input
    total = (maps * images[0]).sum() if name == "guided_backprop" else maps.sum()
    torch.testing.assert_close(total, logit, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("middle", "words"),
    [
        (lambda x: torch.zeros_like(x).add_(x), "into a tensor of its own"),
        (lambda x: torch.zeros_like(x).index_copy_(1, torch.tensor([0]), x[:, :1]), "into a tensor of its own"),
    ],
)
def test_values_written_into_a_plain_tensor_are_refused_in_words(middle, words):
    with pytest.raises(ModelError, match=words):
        Tape({}, otherwise=gradient).record(classifier_of(Net(middle)), torch.rand(1, 1, 8, 8))


def test_a_network_that_would_give_other_logits_is_refused():
    wrong = {"relu": lambda x, **_: x * 2}
    net = Net(nn.ReLU())
    with pytest.raises(ModelError, match="cannot be followed exactly"):
        Tape({}, wrong, otherwise=gradient).record(classifier_of(net), torch.rand(1, 1, 8, 8))


def test_outputs_that_do_not_depend_on_the_input_are_refused():
    class Constant(nn.Module):
        def forward(self, images):
            return torch.ones(len(images), 2)

    with pytest.raises(ModelError, match="cannot be traced back"):
        Tape({}, otherwise=gradient).record(classifier_of(Constant()), torch.rand(1, 1, 8, 8))


def test_scripted_code_is_refused_and_not_silently_taken_for_a_constant():
    class Scripted(torch.autograd.Function):
        """Stands for compiled code: what it calls bypasses torch's function protocol."""

        @staticmethod
        def forward(_, value):
            with torch._C.DisableTorchFunctionSubclass():
                return torch.relu(value)

        @staticmethod
        def backward(_, arriving):
            return arriving

    with pytest.raises(ModelError, match="cannot be followed"):
        Tape({}, otherwise=gradient).record(classifier_of(Net(Scripted.apply)), torch.rand(1, 1, 8, 8))


@pytest.mark.parametrize("name", ["guided_backprop", "lrp", "deep_lift"])
def test_a_tape_is_freed_at_once_and_does_not_wait_for_the_collector(name):
    gc.collect()
    gc.disable()
    try:
        method, images = build_method(name, {}), torch.rand(1, 1, 8, 8)
        classifier = classifier_of(Net(nn.ReLU(inplace=True)))
        method(classifier, images, torch.tensor([[0, 1]]), [0])
        assert not [each for each in gc.get_objects() if type(each) in (Tape, Node)]
    finally:
        gc.enable()
