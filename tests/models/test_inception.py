import pytest
import torch

from heatcheck.models import MODELS


@pytest.mark.parametrize(("name", "side", "left"), [("inception_v4", 299, 8), ("inception_v4", 75, 1)])
def test_last_feature_map_is_that_of_the_paper(name, side, left):
    with torch.device("meta"):
        module = MODELS[name].build(3, 2).eval()
        assert module.features(torch.zeros(1, 3, side, side)).shape == (1, 1536, left, left)


def test_no_smaller_side_than_the_one_stated_works():
    for name, side in (("inception_v4", 74), ("inception_compact", 38)):
        assert MODELS[name].smallest == side + 1
        with torch.device("meta"), pytest.raises(RuntimeError):
            MODELS[name].build(1, 2).eval()(torch.zeros(1, 1, side, side))
