"""Modified backward passes, against Captum and by hand, on networks that break other libraries."""

import copy

import pytest
import torch
from captum.attr import Deconvolution, GuidedBackprop, GuidedGradCam
from torch import nn
from torch.nn import functional

from heatcheck.methods import propagation
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing

OURS = {"guided": propagation.GuidedBackprop(), "deconvolution": propagation.Deconvolution()}
PEERS = {"guided": GuidedBackprop, "deconvolution": Deconvolution}
pytestmark = pytest.mark.filterwarnings("ignore:Setting backward hooks on ReLU")


def classifier_of(module, size, outputs):
    names = tuple(f"finding {i}" for i in range(outputs))
    contract = Preprocessing(outputs=names, size=size, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("under test", module.eval(), contract)


def leaf(images):
    return images.clone().requires_grad_()


def not_in_place(module):
    """A copy that Captum can work on: its hooks do not allow in-place ReLUs."""
    edited = copy.deepcopy(module)
    for part in edited.modules():
        if isinstance(part, nn.ReLU):
            part.inplace = False
    return edited


@pytest.mark.parametrize("name", OURS)
def test_equal_to_captum_on_small_networks(name, tiny_classifier, tiny_images):
    ours = OURS[name](tiny_classifier, tiny_images, torch.tensor([0, 2]).expand(4, -1), range(4)).values
    peer = PEERS[name](not_in_place(tiny_classifier.module))
    for column, target in enumerate((0, 2)):
        torch.testing.assert_close(
            ours[:, column], peer.attribute(leaf(tiny_images), target=target), rtol=1e-5, atol=1e-8
        )


@pytest.mark.parametrize("name", OURS)
def test_equal_to_captum_on_the_compact_densenet_with_its_relus_in_place(name):
    torch.manual_seed(0)
    module = MODELS["densenet_compact"].build(1, 4).eval()
    images = torch.randn(2, 1, 64, 64)
    ours = OURS[name](classifier_of(module, (64, 64), 4), images, torch.tensor([[3], [3]]), [1, 2]).values[:, 0]
    peer = PEERS[name](not_in_place(module)).attribute(leaf(images), target=3)
    torch.testing.assert_close(ours, peer, rtol=1e-5, atol=1e-8)


def test_guided_grad_cam_equals_captum(tiny_classifier, tiny_images):
    ours = propagation.GuidedGradCam(upsampling="nearest", placement="plain")
    got = ours(tiny_classifier, tiny_images, torch.tensor([1]).expand(4, -1), range(4)).values[:, 0]
    edited = not_in_place(tiny_classifier.module)
    peer = GuidedGradCam(edited, edited[4]).attribute(leaf(tiny_images), target=1)
    torch.testing.assert_close(got, peer, rtol=1e-5, atol=1e-8)


class Spelled(nn.Module):
    """Two convolutions with a ReLU between and after them, spelled in one of many ways."""

    def __init__(self, spelling):
        super().__init__()
        torch.manual_seed(4)
        self.first, self.second, self.head = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3), nn.Linear(4, 2)
        self.shared = nn.ReLU()
        self.spelling = spelling

    def relu(self, x):
        if self.spelling == "statement in place":
            x.relu_()
            return x
        return {
            "reused module": lambda: self.shared(x),
            "functional": lambda: functional.relu(x),
            "functional in place": lambda: functional.relu(x, inplace=True),
            "functional in place by position": lambda: functional.relu(x, True),
            "torch": lambda: torch.relu(x),
            "torch in place": lambda: torch.relu_(x),
            "method": x.relu,
            "module in place": lambda: nn.ReLU(inplace=True)(x),
        }[self.spelling]()

    def forward(self, images):
        one = self.relu(self.first(images))
        return self.head(self.relu(self.second(one) + one[:, :, 1:-1, 1:-1]).mean((2, 3)))


SPELLINGS = ["reused module", "functional", "functional in place", "functional in place by position", "torch",
             "torch in place", "method", "module in place", "statement in place"]  # fmt: skip


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_relu_gives_the_same_map(name, spelling):
    images = torch.randn(2, 1, 12, 12, generator=torch.Generator().manual_seed(1))
    targets = torch.tensor([[0, 1], [1, 0]])
    usual = OURS[name](classifier_of(Spelled("functional"), (12, 12), 2), images, targets, [0, 0]).values
    got = OURS[name](classifier_of(Spelled(spelling), (12, 12), 2), images, targets, [0, 0]).values
    assert torch.equal(usual, got)
    plain = torch.autograd.grad(Spelled(spelling)(x := leaf(images))[:, 0].sum(), x)[0]
    assert not torch.equal(plain[0], got[0, 0])


def test_the_rules_by_hand_on_one_relu():
    module = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(4, 1, bias=False))
    with torch.no_grad():
        module[2].weight[:] = torch.tensor([[1.0, -1.0, 1.0, -1.0]])
    images = torch.tensor([[[[2.0, 2.0], [-2.0, -2.0]]]])
    classifier = classifier_of(module, (2, 2), 1)
    guided = OURS["guided"](classifier, images, torch.tensor([[0]]), [0]).values.flatten().tolist()
    deconvolved = OURS["deconvolution"](classifier, images, torch.tensor([[0]]), [0]).values.flatten().tolist()
    assert guided == [1, 0, 0, 0]
    assert deconvolved == [1, 0, 1, 0]


@pytest.mark.parametrize("activation", [nn.GELU(), nn.SiLU(), nn.LeakyReLU(0.1), nn.Hardswish()])
def test_smooth_activations_are_handled_and_the_note_says_so(activation):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 3, 3), activation, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))
    maps = OURS["guided"](classifier_of(module, (8, 8), 2), torch.randn(1, 1, 8, 8), torch.tensor([[0]]), [0])
    assert maps.note.startswith("the rule for ReLU was applied to the output gradient of ")
    assert maps.values.isfinite().all()


def test_the_logits_are_those_of_the_untouched_network():
    images = torch.randn(2, 1, 12, 12)
    module = Spelled("functional in place").eval()
    before = module(images)
    OURS["guided"](classifier_of(module, (12, 12), 2), images, torch.tensor([[0], [1]]), [0, 0])
    assert torch.equal(before, module(images))


@pytest.mark.parametrize("name", OURS)
def test_clamping_at_zero_is_a_relu_and_a_network_without_one_is_noted(name):
    class Net(nn.Module):
        def __init__(self, activation):
            super().__init__()
            torch.manual_seed(5)
            self.conv, self.second, self.activation = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 3, 3), activation

        def forward(self, images):
            return self.second(self.activation(self.conv(images))).mean((2, 3))

    images, targets = torch.randn(1, 1, 12, 12), torch.tensor([[0, 1]])
    maps = [
        OURS[name](classifier_of(Net(activation), (12, 12), 3), images, targets, [0])
        for activation in (torch.relu, lambda x: x.clamp(min=0), lambda x: x.clamp_min(0), torch.tanh)
    ]
    for same in maps[1:3]:
        torch.testing.assert_close(maps[0].values, same.values)
    assert maps[0].note == ""
    assert "plain gradient" in maps[3].note
