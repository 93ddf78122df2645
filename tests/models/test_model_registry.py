import pytest

from heatcheck.core.errors import UnknownNameError
from heatcheck.models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_model_explains_itself(name):
    assert MODELS[name].name == name
    assert MODELS[name].summary
    assert callable(MODELS[name].build)


def test_unknown_model_is_met_with_a_suggestion():
    with pytest.raises(UnknownNameError, match="unknown model 'densenet_compct'; did you mean 'densenet_compact'"):
        MODELS["densenet_compct"]
