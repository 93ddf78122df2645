import pytest
import torch
from torch import nn

from heatcheck.models import MODELS


def convolutions(module):
    return [part.out_channels for part in module.modules() if isinstance(part, nn.Conv3d)]


def test_3d_network_is_that_of_the_study():
    with torch.device("meta"):
        module = MODELS["vgg3d"].build(4, 2, (128, 128, 128))
        assert convolutions(module) == [16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128]
        assert module.features(torch.zeros(1, 4, 128, 128, 128)).shape == (1, 128, 2, 2, 2)
    assert [(part.in_features, part.out_features) for part in module.classifier if isinstance(part, nn.Linear)] == [
        (1024, 4096),
        (4096, 2),
    ]


@pytest.mark.parametrize(
    ("size", "blocks", "left"),
    [
        ((64, 64, 64), 6, (1, 1, 1)),
        ((63, 70, 80), 4, (3, 4, 5)),
        ((32, 32, 32), 4, (2, 2, 2)),
        ((31, 32, 32), 3, (3, 4, 4)),
        ((4, 4, 4), 1, (2, 2, 2)),
    ],
)
def test_3d_network_has_as_many_blocks_as_the_volume_allows(size, blocks, left):
    with torch.device("meta"):
        module = MODELS["vgg3d"].build(1, 2, size)
        assert sum(isinstance(part, nn.MaxPool3d) for part in module.features) == blocks
        assert module.features(torch.zeros(1, 1, *size)).shape[2:] == left
        assert module(torch.zeros(1, 1, *size)).shape == (1, 2)


def test_untrained_vgg_keeps_its_signal():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        module = MODELS["vgg_compact"].build(1, 2).eval()
        images = torch.randn(1, 1, 64, 64)
    with torch.no_grad():
        assert module.features(images).std() > 0.5


def test_vgg_takes_any_size():
    module = MODELS["vgg_compact"].build(1, 2).eval()
    with torch.no_grad():
        assert module(torch.rand(1, 1, 40, 72)).shape == (1, 2)
