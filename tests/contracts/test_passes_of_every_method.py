"""Every method states the passes that it makes, which the cost of a run is computed from."""

from dataclasses import replace

import pytest
import torch
from tests.conftest import SmallTransformer, small_cnn
from torch import nn

from heatcheck.methods import METHODS, build_method
from heatcheck.methods.registry import Passes, passes_of
from heatcheck.methods.speed.tape import Tape
from heatcheck.models import NetworkClassifier, Preprocessing

SHAPE = (2, 24, 32)
OTHER_SETTINGS = [
    ("integrated_gradients", {"steps": 3, "rule": "gauss"}, Passes(5, 6)),
    ("smooth_grad", {"samples": 4}, Passes(4, 8)),
    ("gradient_shap", {"samples": 5}, Passes(5, 10)),
    ("occlusion", {"window": 8}, Passes(1 + 3 * 4)),
    ("occlusion", {"window": 8, "stride": 4, "per_channel": True}, Passes(1 + 2 * 5 * 7)),
    ("feature_ablation", {"segments": {"kind": "grid", "cells": 3}}, Passes(1 + 9)),
    ("feature_ablation", {"segments": {"kind": "grid", "cells": 3, "per_channel": True}}, Passes(1 + 18)),
    ("feature_permutation", {"segments": {"kind": "grid", "cells": 2}, "donors_each": 2}, Passes(1 + 8)),
    ("shapley_value_sampling", {"segments": {"kind": "grid", "cells": 2}, "permutations": 3}, Passes(2 + 3 * 3)),
    ("kernel_shap", {"segments": {"kind": "grid", "cells": 3}, "samples": 20}, Passes(22)),
    ("kernel_shap", {"segments": {"kind": "grid", "cells": 2}, "samples": 20}, Passes(16)),
    ("lime", {"samples": 7}, Passes(7)),
]


class Counting(nn.Module):
    """A network that counts the images that pass through it, and their gradients that come back."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network, self.forwards, self.backwards = network, 0, 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.forwards += len(images)
        if images.requires_grad and type(images) is torch.Tensor:
            images.register_hook(self.count)
        return self.network(images)

    def count(self, gradient: torch.Tensor) -> None:
        self.backwards += len(gradient)


@pytest.fixture
def counting(monkeypatch):
    """A function that counts the passes per image of a method with these settings, for two targets of three images."""

    def counted(name, settings):
        inner = SmallTransformer(2, 2, 3) if METHODS[name].family == "attention" else small_cnn(2, 2, 3)
        module = Counting(inner).eval()
        back = Tape.back
        monkeypatch.setattr(Tape, "back", lambda self, arriving: (module.count(arriving), back(self, arriving))[1])
        classifier = NetworkClassifier("c", module, Preprocessing(outputs=("a", "b", "c"), size=SHAPE[1:], channels=2))
        images = torch.rand(3, *SHAPE, generator=torch.Generator().manual_seed(0))
        method = build_method(name, settings)
        if METHODS[name].wants_priors:
            method = replace(method, priors=torch.ones(3, 3, 4, 4))
        if METHODS[name].wants_donors:
            method = replace(method, donors=tuple(torch.rand(3, 2, *SHAPE)))
        targets = torch.tensor([0, 2]).expand(3, -1)
        method(classifier, images, targets, [1, 2, 3])  # the first call may look for the layer
        module.forwards = module.backwards = 0
        method(classifier, images, targets, [1, 2, 3])
        return method, Passes(module.forwards / 3, module.backwards / 3)

    return counted


@pytest.mark.parametrize("name", METHODS)
def test_a_method_makes_the_passes_that_it_states(name, counting):
    facts = METHODS[name]
    method, made = counting(name, facts.trial if facts.family == "masks" else {})
    stated = passes_of(name, method, SHAPE, 2)
    assert (stated.forward + stated.covered, stated.backward) == (made.forward, made.backward)


@pytest.mark.parametrize(("name", "settings", "expected"), OTHER_SETTINGS)
def test_its_settings_are_counted(name, settings, expected, counting):
    method, made = counting(name, settings)
    assert made == expected
    stated = passes_of(name, method, SHAPE, 2)
    assert (stated.forward + stated.covered, stated.backward) == (made.forward, made.backward)


def test_a_method_that_states_nothing_is_taken_for_a_gradient():
    assert passes_of("gradient", lambda *_: None, SHAPE, 4) == Passes(1, 4)
    assert passes_of("random", lambda *_: None, SHAPE, 4) == Passes()
