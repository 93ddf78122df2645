"""Whether a given network and the data speak of the same classes."""

import pytest
from torch import nn

from heatcheck.core.errors import SpecError
from heatcheck.fitting.contract import require_classes
from heatcheck.models import NetworkClassifier, Preprocessing


def given(**changes):
    facts = {"outputs": ("high", "low"), "size": (4, 4), "activation": "softmax", **changes}
    return NetworkClassifier("tiny", nn.Flatten(), Preprocessing(**facts))


def test_classes_may_stand_in_another_order():
    require_classes(given(), ["low", "high"], "correct it", "study.yaml")


def test_a_network_of_other_classes_is_refused():
    with pytest.raises(
        SpecError, match="the model's outputs are high, low, the classes of the data high, middle; make"
    ):
        require_classes(given(), ["high", "middle"], "correct it", "study.yaml")


def test_a_network_whose_outputs_occur_together_is_refused_with_the_remedy():
    with pytest.raises(SpecError, match="tiny do not exclude each other \\(activation sigmoid\\); correct it"):
        require_classes(given(activation="sigmoid"), ["high", "low"], "correct it", "study.yaml")
