import pytest
import torch
from torch import nn

from heatcheck.training import quick


@pytest.mark.parametrize(("kind", "order"), [(nn.Conv2d, torch.channels_last), (nn.Conv3d, torch.channels_last_3d)])
def test_convolutions_have_their_channels_last_and_answer_as_before(kind, order):
    network = nn.Sequential(kind(2, 3, 3, padding=1), nn.Flatten(), nn.LazyLinear(2))
    image = torch.randn(1, 2, *[4] * (network[0].weight.ndim - 2))
    before = network(image)
    assert quick(network) is network
    assert network[0].weight.is_contiguous(memory_format=order)
    torch.testing.assert_close(network(image), before)
