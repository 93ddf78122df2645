"""What a map costs in memory does not grow with what it is asked for."""

import pytest
import torch
from tests.methods.live_memory import LiveMemory
from torch import nn

from heatcheck.methods import METHODS, build_method
from heatcheck.methods.differentiable import backward
from heatcheck.models import NetworkClassifier, Preprocessing

SIZE = 64
PASSES = [name for name, facts in METHODS.items() if facts.needs.name == "INTERNALS" and facts.family != "attention"]


def classifier():
    """A network whose activations are far larger than its maps."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 12),
    )  # fmt: skip
    outputs = tuple(f"finding {n}" for n in range(12))
    contract = Preprocessing(outputs=outputs, size=(SIZE, SIZE), mean=(0.0,), std=(1.0,))
    return NetworkClassifier("wide", module.eval(), contract)


def most(call):
    call()  # what is found once and remembered is not counted
    with LiveMemory() as memory:
        call()
    return memory.most


def test_the_counter_sees_what_is_kept_and_what_is_freed():
    with LiveMemory() as memory:
        kept = torch.zeros(1000)
        for _ in range(5):
            torch.zeros(500) + 1
    assert memory.now == kept.nbytes
    assert memory.most == kept.nbytes + 4000


@pytest.mark.parametrize("name", PASSES)
def test_ten_targets_need_no_more_memory_than_two_but_for_the_maps(name):
    judged, images = classifier(), torch.rand(1, 1, SIZE, SIZE)
    method = build_method(name, METHODS[name].trial)
    few, many = (most(lambda n=n: method(judged, images, torch.arange(n)[None], [0])) for n in (2, 10))
    a_map = images.nbytes
    activations = 16 * SIZE * SIZE * 4
    assert few > activations  # or the test would compare nothing
    assert many - few <= 8 * 3.5 * a_map + 0.1 * activations, (few, many)


@pytest.mark.parametrize(("name", "setting"), [("integrated_gradients", "steps"), ("smooth_grad", "samples")])
def test_the_two_pass_form_needs_no_more_memory_for_more_points(name, setting):
    judged, images, targets = classifier(), torch.rand(1, 1, SIZE, SIZE), torch.tensor([[0, 1]])

    def needed(points):
        method = build_method(name, {setting: points})
        return most(lambda: backward(method, judged, (images, targets, [0]), lambda maps: (maps**2).sum()))

    few, many = needed(2), needed(12)
    assert many <= few * 1.02, (few, many)


@pytest.mark.parametrize(("name", "setting"), [("integrated_gradients", "steps"), ("smooth_grad", "samples")])
def test_one_graph_over_all_points_does_grow(name, setting):
    """The comparison that shows what the two-pass form is for."""
    judged, images, targets = classifier(), torch.rand(1, 1, SIZE, SIZE), torch.tensor([[0, 1]])

    def needed(points):
        method = build_method(name, {setting: points})
        return most(lambda: method(judged, images, targets, [0], create_graph=True).values.sum().backward())

    assert needed(12) > 3 * needed(2)
