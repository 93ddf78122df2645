import pytest

from heatcheck.core.errors import UnknownNameError
from heatcheck.models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_model_explains_itself(name):
    assert MODELS[name].name == name
    assert MODELS[name].summary
    assert callable(MODELS[name].build)


@pytest.mark.parametrize("name", MODELS)
def test_label_says_what_the_network_is_and_nothing_of_weights(name):
    label = MODELS[name].label
    assert label
    assert not {"weights", "checkpoints", "trained", "training"} & set(label.replace(";", "").replace(",", "").split())
    assert MODELS["densenet_compact"].label == MODELS["phantom_chest_densenet"].label == "Compact DenseNet"
    assert MODELS["vit_compact"].label == MODELS["phantom_chest_vit"].label == "Compact vision transformer"


def test_unknown_model_is_met_with_a_suggestion():
    with pytest.raises(UnknownNameError, match="unknown model 'densenet_compct'; did you mean 'densenet_compact'"):
        MODELS["densenet_compct"]
