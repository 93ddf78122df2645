"""The shipped trigger specs compare methods that differ."""

from itertools import combinations

import pytest
import torch
from tests.conftest import small_cnn

from heatcheck.explaining.methods import built_methods
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.studies.triggers.spec import TriggersBody

TRIGGERS = [name for name in shipped_specs() if read_spec(name).envelope.study == "triggers"]


@pytest.mark.parametrize("name", TRIGGERS)
def test_no_two_methods_of_a_shipped_spec_make_the_same_map(name):
    """Feature ablation with its usual segments is occlusion with its usual window."""
    classifier = NetworkClassifier("cnn", small_cnn(2, 1, 2).eval(), Preprocessing(outputs=("a", "b"), size=(48, 48)))
    image = torch.rand(1, 1, 48, 48, generator=torch.Generator().manual_seed(0))
    methods = built_methods(read_spec(name).checked_body(TriggersBody).methods, name)
    maps = {name: method(classifier, image, torch.tensor([[1]]), [0]).values for name, method in methods.items()}
    for one, other in combinations(maps, 2):
        same = maps[one].shape == maps[other].shape and torch.allclose(maps[one], maps[other])
        assert not same, f"{one} and {other}"
