import pytest
import torch

from heatcheck.models import MODELS


@pytest.mark.parametrize(("channels", "outputs"), [(1, 10), (3, 2)])
def test_network_gives_one_logit_per_output_for_any_size_of_image(channels, outputs):
    network = MODELS["densenet_compact"].build(channels, outputs).eval()
    with torch.no_grad():
        for size in [(64, 64), (48, 80)]:
            assert network(torch.rand(2, channels, *size)).shape == (2, outputs)


def test_last_feature_map_has_a_sixteenth_of_the_inputs_side():
    network = MODELS["densenet_compact"].build(1, 2).eval()
    with torch.no_grad():
        assert network.features(torch.rand(1, 1, 64, 96)).shape[2:] == (4, 6)


def test_trained_and_untrained_network_are_the_same_architecture():
    assert MODELS["densenet_compact"].make is MODELS["phantom_chest_densenet"].make
    assert not MODELS["densenet_compact"].weights
    assert MODELS["phantom_chest_densenet"].weights.endswith(".safetensors")


def test_building_a_network_does_not_fix_its_weights():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        first, second = (MODELS["densenet_compact"].build(1, 2).state_dict() for _ in range(2))
    assert any(not torch.equal(first[name], second[name]) for name in first)
