"""The feature map that the head sees is found in every kind of network."""

import pytest
import torch
from torch import nn

from heatcheck.core.errors import ModelError
from heatcheck.methods.cam import GradCam
from heatcheck.methods.feature_maps import feature_map
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing

FOUND = {
    "densenet_compact": ("class_layers.relu", (4, 4), 0),
    "inception_compact": ("features.10", (2, 2), 0),  # the joined branches, not the last of them
    "resnet_compact": ("layer4.0.act", (2, 2), 0),
    "vgg_compact": ("avgpool", (4, 4), 0),
    "vgg3d_compact": ("features.17", (4, 4, 4), 0),
    "vit_compact": ("blocks.3.norm1", (8, 8), 1),  # later tokens other than the class token change nothing
    "swin_compact": ("norm", (4, 4), 0),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_last_map_of_each_family(name):
    facts = MODELS[name]
    module = facts.build(1, 3).eval()
    found = feature_map(module, torch.randn(1, 1, *facts.size))
    assert (found.name, found.grid, found.extra_tokens) == FOUND[name]


class Tokens(nn.Module):
    """Patches as tokens of which the head reads the mean: each place's share is known."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patches, self.norm = nn.Conv2d(1, 6, 4, 4), nn.LayerNorm(6)
        self.head = nn.Linear(6, 2)

    def forward(self, images):
        return self.head(self.norm(self.patches(images).flatten(2).transpose(1, 2)).mean(1))


def test_tokens_go_back_to_their_places():
    """On a grid with different sides, a planted patch stays in its row and column."""
    module = Tokens().eval()
    contract = Preprocessing(outputs=("a", "b"), size=(8, 24), mean=(0.0,), std=(1.0,))
    images = torch.randn(1, 1, 8, 24) * 0.01
    images[0, 0, 4:8, 16:20] += torch.randn(4, 4)  # row 1, column 4 of 2 × 6 patches
    maps = GradCam()(NetworkClassifier("tokens", module, contract), images, torch.tensor([[0, 1]]), [0]).values
    assert maps.shape == (1, 2, 1, 2, 6)
    tokens = module.norm(module.patches(images).flatten(2).transpose(1, 2)).detach()
    expected = (tokens @ module.head.weight.T / 12).relu().reshape(2, 6, 2)
    torch.testing.assert_close(maps[0, :, 0].movedim(0, -1), expected, rtol=1e-5, atol=1e-7)


def test_the_size_of_the_image_is_part_of_what_is_remembered():
    module = Tokens().eval()
    assert feature_map(module, torch.randn(1, 1, 8, 8)).grid == (2, 2)
    assert feature_map(module, torch.randn(1, 1, 8, 16)).grid == (2, 4)


def test_a_named_layer_that_is_no_map_is_refused():
    with pytest.raises(ModelError, match=r"layer 'head' is no feature map: its output has the shape \(2,\)"):
        feature_map(Tokens().eval(), torch.randn(1, 1, 8, 8), "head")
