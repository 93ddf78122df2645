import warnings

import pytest
import torch

from heatcheck.models import MODELS
from heatcheck.models.densenet import DenseNet, DenseNetDimensions
from heatcheck.models.registry import NetworkShape

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # MONAI warns about its deprecations on import
    from monai.networks.nets.densenet import DenseNet as MonaiDenseNet

SIZES = {2: (37, 50), 3: (33, 40, 35)}
MEASURES = {
    "compact": DenseNetDimensions((4, 6, 10), features=24, growth=16, widening=3),
    "one block": DenseNetDimensions((2,), features=8, growth=4, widening=2),
    "usual widths": DenseNetDimensions((2, 1)),
}


def twins(spatial, dimensions):
    """Our network and MONAI's, each built after the same seed."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        ours = DenseNet(NetworkShape(2, 3, SIZES[spatial]), dimensions)
        after_ours = torch.rand(1)
        torch.manual_seed(5)
        theirs = MonaiDenseNet(
            spatial, 2, 3, dimensions.features, dimensions.growth, dimensions.blocks, bn_size=dimensions.widening
        )
        assert torch.equal(torch.rand(1), after_ours)  # later draws are the same as well
    return ours, theirs


@pytest.mark.parametrize("spatial", SIZES)
@pytest.mark.parametrize("dimensions", MEASURES.values(), ids=MEASURES)
def test_names_and_first_weights_are_monais(spatial, dimensions):
    ours, theirs = (network.state_dict() for network in twins(spatial, dimensions))
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("spatial", SIZES)
def test_answers_and_gradients_are_monais_with_the_same_weights(spatial, training):
    ours, theirs = (network.train(training) for network in twins(spatial, MEASURES["compact"]))
    with torch.random.fork_rng():
        torch.manual_seed(6)
        for parameter in theirs.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        images = torch.rand(2, 2, *SIZES[spatial])
    ours.load_state_dict(theirs.state_dict())
    answers = [network(images) for network in (ours, theirs)]
    assert torch.equal(*answers)
    for answer in answers:
        answer.sum().backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine.grad, other.grad)
    assert all(torch.equal(ours.state_dict()[name], value) for name, value in theirs.state_dict().items())


@pytest.mark.parametrize(("name", "blocks"), [("densenet121", (6, 12, 24, 16)), ("densenet201", (6, 12, 48, 32))])
def test_the_published_networks_are_monais(name, blocks):
    with torch.device("meta"):
        ours, theirs = MODELS[name].build(3, 4), MonaiDenseNet(2, 3, 4, block_config=blocks)
    assert {key: value.shape for key, value in ours.state_dict().items()} == {
        key: value.shape for key, value in theirs.state_dict().items()
    }


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
