"""LRP against Captum, by hand, and by what must be conserved."""

import copy

import pytest
import torch
from captum.attr import LRP
from captum.attr._utils.lrp_rules import Alpha1_Beta0_Rule, GammaRule
from tests.methods.networks import Attending, Residual
from torch import nn

from heatcheck.core.errors import ModelError
from heatcheck.methods.lrp import Lrp
from heatcheck.models import NetworkClassifier, Preprocessing


def classifier_of(module, size=(12, 12), outputs=3):
    names = tuple(f"finding {i}" for i in range(outputs))
    contract = Preprocessing(outputs=names, size=size, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("under test", module.eval(), contract)


class Plain(nn.Module):
    """A network that Captum can take apart."""

    def __init__(self, bias=True):
        super().__init__()
        torch.manual_seed(4)
        self.conv1, self.relu1, self.pool = nn.Conv2d(1, 5, 3, padding=1, bias=bias), nn.ReLU(), nn.MaxPool2d(2)
        self.conv2, self.relu2, self.mean = nn.Conv2d(5, 6, 3, bias=bias), nn.ReLU(), nn.AvgPool2d(2)
        self.linear1, self.relu3, self.linear2 = nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, images):
        features = self.mean(self.relu2(self.conv2(self.pool(self.relu1(self.conv1(images))))))
        return self.linear2(self.relu3(self.linear1(features.flatten(1))))


@pytest.mark.parametrize(("rule", "peer"), [("epsilon", None), ("zplus", Alpha1_Beta0_Rule), ("gamma", GammaRule)])
def test_equal_to_captum_where_it_has_the_rule(rule, peer):
    # Captum leaves the bias out of the rules for convolutions, so that there is none where one of them is compared
    net, images = Plain(bias=peer is None).eval(), torch.rand(2, 1, 12, 12)
    ours = Lrp(convolutions=rule, epsilon=1e-9)(classifier_of(net), images, torch.tensor([[1, 2], [1, 2]]), [0, 0])
    for column, target in enumerate((1, 2)):
        theirs = copy.deepcopy(net)
        for part in theirs.modules():
            if isinstance(part, nn.Conv2d) and peer:
                part.rule = peer()
        expected = LRP(theirs).attribute(images.clone().requires_grad_(), target=target).detach()
        assert expected.abs().max() > 1e-4
        torch.testing.assert_close(ours.values[:, column], expected, rtol=1e-5, atol=1e-8)


def test_the_epsilon_rule_by_hand():
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1))
    with torch.no_grad():
        net[1].weight.copy_(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
        net[3].weight.copy_(torch.tensor([[2.0, 1.0]]))
        net[3].bias.copy_(torch.tensor([4.0]))
    images = torch.tensor([[[[1.0, 2.0]]]])
    # hidden: 1·1 + 2·2 = 5 and 3·1 − 1·2 = 1; logit: 2·5 + 1·1 + 4 = 15, of which the bias keeps 4
    # relevance of the hidden units: 10 and 1; of the pixels: 10·1/5 + 1·3/1 = 5 and 10·4/5 − 1·2/1 = 6
    got = Lrp(epsilon=1e-12)(classifier_of(net, (1, 2), 1), images, torch.tensor([[0]]), [0])
    torch.testing.assert_close(got.values[0, 0, 0, 0], torch.tensor([5.0, 6.0]))
    torch.testing.assert_close(got.error, torch.tensor([[4.0]]))


def test_the_z_plus_rule_by_hand_with_pixels_of_both_signs():
    net = nn.Sequential(nn.Conv2d(1, 1, (1, 3), bias=False), nn.Flatten())
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[[[2.0, -1.0, 3.0]]]]))
    # products: 2·1, −1·−4, 3·−2; the logit 0 + ε is shared by the positive ones alone: 2 and 4 of 6
    images = torch.tensor([[[[1.0, -4.0, -1.0]]]])  # logit 2 + 4 − 3 = 3
    got = Lrp(epsilon=1e-12)(classifier_of(net, (1, 3), 1), images, torch.tensor([[0]]), [0])
    torch.testing.assert_close(got.values[0, 0, 0, 0], torch.tensor([1.0, 2.0, 0.0]))


def test_batch_norm_after_a_convolution_is_folded_into_it():
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    head = [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)]
    merged = torch.nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    images, targets = torch.randn(2, 1, 12, 12), torch.tensor([[0, 1, 2]] * 2)
    for rule in ("zplus", "epsilon", "gamma"):
        apart = Lrp(rule)(classifier_of(nn.Sequential(conv, norm, *head)), images, targets, [0, 0])
        folded = Lrp(rule)(classifier_of(nn.Sequential(merged, *head)), images, targets, [0, 0])
        torch.testing.assert_close(apart.values, folded.values, rtol=1e-4, atol=1e-6)


NETS = {"residual": Residual, "attention": lambda: Attending(False), "fused attention": lambda: Attending(True)}


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
@pytest.mark.parametrize(
    "settings", [{}, {"convolutions": "epsilon"}, {"convolutions": "gamma"}, {"max_pooling": "average"}], ids=str
)
def test_nothing_is_lost_where_there_are_no_biases(net, settings):
    images = torch.randn(2, 1, 12, 12, generator=torch.Generator().manual_seed(3)).double()
    classifier = classifier_of(net().double())
    got = Lrp(epsilon=1e-9, **settings)(classifier, images, torch.tensor([[0, 1, 2]] * 2), [0, 0])
    logits = classifier.logits(images).detach()
    assert got.values.abs().amax() > 1e-3
    torch.testing.assert_close(got.values.sum((2, 3, 4)), logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(got.error, torch.zeros_like(got.error), rtol=0, atol=1e-5)


def test_fused_and_plain_attention_agree():
    images, targets = torch.randn(2, 1, 12, 12), torch.tensor([[0, 1, 2]] * 2)
    a, b = (Lrp()(classifier_of(Attending(fused)), images, targets, [0, 0]).values for fused in (False, True))
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_attention_weights_are_held_constant():
    """With fixed weights the block is linear in its values: relevance is input × gradient of that linear map."""
    net = Attending(False).double()
    net.norm1, net.norm2, net.mlp = nn.Identity(), nn.Identity(), nn.Identity()
    images = torch.randn(1, 1, 12, 12).double()
    with torch.no_grad():
        net.positions.zero_()
        x = net.patches(images).flatten(2).transpose(1, 2)
        q, k, _ = net.qkv(x).chunk(3, -1)
        fixed = (q @ k.transpose(1, 2) * 8**-0.5).softmax(-1)

    def linear(images):
        x = net.patches(images).flatten(2).transpose(1, 2)
        x = x + net.out(fixed @ net.qkv(x).chunk(3, -1)[2])
        return net.head((x + x).mean(1))

    leaf = images.clone().requires_grad_()
    (slope,) = torch.autograd.grad(linear(leaf)[0, 1], leaf)
    got = Lrp(convolutions="epsilon", epsilon=1e-12)(classifier_of(net), images, torch.tensor([[1]]), [0])
    torch.testing.assert_close(got.values[:, 0], images * slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_its_derivative_with_respect_to_the_weights_equals_finite_differences(net):
    generator = torch.Generator().manual_seed(8)
    module = net().double()
    classifier, images = classifier_of(module), torch.randn(2, 1, 12, 12, generator=generator).double()
    targets, method = torch.tensor([[0, 2]] * 2), Lrp(epsilon=0.1)  # a large ε keeps the quotients tame
    wanted = torch.randn(2, 2, 1, 12, 12, generator=generator).double()

    def loss(**how):
        return (method(classifier, images, targets, [0, 0], **how).values * wanted).sum()

    weights = [weight for weight in module.parameters() if weight.ndim > 1]
    slopes = torch.autograd.grad(loss(create_graph=True), weights)
    for weight, slope in zip(weights, slopes, strict=True):
        direction = torch.randn(weight.shape, generator=generator).double()
        with torch.no_grad():
            ahead, behind = 1e-6, -1e-6
            weight.add_(ahead * direction)
            above = loss()
            weight.add_((behind - ahead) * direction)
            below = loss()
            weight.add_(-behind * direction)
        torch.testing.assert_close((slope * direction).sum(), (above - below) / 2e-6, rtol=1e-4, atol=1e-6)


def test_the_gamma_rule_keeps_its_sums_away_from_zero():
    """Outputs of either sign: terms of the output's own sign are amplified, so that no share exceeds the sum."""
    net = nn.Sequential(nn.Conv2d(1, 2, (1, 2), bias=False), nn.Flatten(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[[[1.0, -0.9]]], [[[0.9, -1.0]]]]))
        net[2].weight.copy_(torch.tensor([[1.0, 1.0]]))
    got = Lrp("gamma", epsilon=1e-12, gamma=1.0)(
        classifier_of(net, (1, 2), 1), torch.tensor([[[[1.0, 1.5]]]]), torch.tensor([[0]]), [0]
    )
    # outputs −0.35 and −0.6, logit −0.95; sums −0.35 − 1.35 = −1.7 and −0.6 − 1.5 = −2.1
    first = -0.35 * torch.tensor([1.0, -2.7]) / -1.7
    second = -0.6 * torch.tensor([0.9, -3.0]) / -2.1
    torch.testing.assert_close(got.values[0, 0, 0, 0], first + second)
    torch.testing.assert_close(got.error, torch.zeros(1, 1), rtol=0, atol=1e-6)


def test_a_batch_norm_that_cannot_be_folded_is_a_scale_with_a_bias():
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(1, eps=0.0)
            with torch.no_grad():
                self.norm.weight.fill_(2.0)
                self.norm.bias.fill_(1.0)

        def forward(self, images):
            return self.norm(images).flatten(1)

    # 2·3 + 1 = 7 is the logit, of which the bias keeps 1
    got = Lrp(epsilon=1e-12)(classifier_of(Norm(), (1, 1), 1), torch.full((1, 1, 1, 1), 3.0), torch.tensor([[0]]), [0])
    torch.testing.assert_close(got.values.flatten(), torch.tensor([6.0]))
    torch.testing.assert_close(got.error, torch.ones(1, 1))


class ByHand(nn.Module):
    """A LayerNorm written out, between patches and a head."""

    def __init__(self, *, written_out):
        super().__init__()
        torch.manual_seed(9)
        self.written_out = written_out
        self.patches, self.norm, self.head = nn.Conv2d(1, 6, 4, 4), nn.LayerNorm(6), nn.Linear(6, 3)
        nn.init.normal_(self.norm.weight)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        if not self.written_out:
            return self.head(self.norm(x).mean(1))
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred.pow(2).mean(-1, keepdim=True) + self.norm.eps).sqrt()
        return self.head((self.norm.weight * centred / spread).mean(1))


def test_a_layer_norm_written_out_is_followed_with_its_denominator_constant():
    images, targets = torch.randn(1, 1, 12, 12).double(), torch.tensor([[0, 1, 2]])
    apart, together = (
        Lrp(epsilon=1e-12)(classifier_of(ByHand(written_out=how).double()), images, targets, [0]).values
        for how in (True, False)
    )
    torch.testing.assert_close(apart, together, rtol=1e-6, atol=1e-9)


def test_an_operation_that_relevance_never_reaches_needs_no_rule():
    class Weighed(nn.Module):
        def forward(self, images):
            flat = images.flatten(1)[:, :3]
            return flat * flat.cumsum(1).softmax(1)

    images = torch.rand(1, 1, 12, 12)
    got = Lrp()(classifier_of(Weighed()), images, torch.tensor([[1]]), [0])
    torch.testing.assert_close(got.error, torch.zeros(1, 1), rtol=0, atol=1e-4)


def test_an_operation_without_a_rule_is_named_by_the_check():
    class Odd(nn.Module):
        def forward(self, images):
            return images.flatten(1)[:, :3].cumsum(1)

    with pytest.raises(ModelError, match="'cumsum'"):
        Lrp().check(classifier_of(Odd()), torch.rand(1, 1, 12, 12))
