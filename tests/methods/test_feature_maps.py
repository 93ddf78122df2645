"""The feature map that the head reads is found in every kind of network."""

import pytest
import torch
from torch import nn
from torch.nn import functional

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
    chosen = feature_map(module, torch.randn(1, 1, *facts.size))
    assert (chosen.name, chosen.grid, chosen.extra_tokens) == FOUND[name]


class Tokens(nn.Module):
    """Patches as tokens of which the head reads the mean: each position's share is known."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patches, self.norm = nn.Conv2d(1, 6, 4, 4), nn.LayerNorm(6)
        self.head = nn.Linear(6, 2)

    def forward(self, images):
        return self.head(self.norm(self.patches(images).flatten(2).transpose(1, 2)).mean(1))


def test_tokens_go_back_to_their_positions():
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


class Written(nn.Module):
    """A trunk, something written in `forward`, and a head that reads the mean of what comes out."""

    def __init__(self, last, features=4):
        super().__init__()
        torch.manual_seed(0)
        self.trunk, self.other = nn.Conv2d(1, 4, 3, stride=2), nn.Conv2d(1, 4, 3, stride=2)
        self.gate, self.head, self.last = nn.Conv2d(4, 1, 1), nn.Linear(features, 2), last

    def forward(self, images):
        return self.head(self.last(self, images).mean((2, 3)))


LASTS = {
    "a functional relu": (lambda net, x: functional.relu(net.trunk(x)), 4),
    "a relu in place, as a statement": (lambda net, x: (y := net.trunk(x), functional.relu_(y))[0], 4),
    "a spatial gate": (lambda net, x: (y := net.trunk(x)) * net.gate(y).sigmoid(), 4),
    "two towers": (lambda net, x: torch.cat([net.trunk(x), net.other(x)], 1), 8),
}


@pytest.mark.parametrize(("last", "features"), LASTS.values(), ids=LASTS)
def test_what_is_written_in_forward_is_part_of_the_map(last, features):
    module = Written(last, features).eval()
    contract = Preprocessing(outputs=("a", "b"), size=(16, 16), mean=(0.0,), std=(1.0,))
    images = torch.randn(2, 1, 16, 16)
    maps = GradCam()(NetworkClassifier("written", module, contract), images, torch.tensor([[0, 1]] * 2), [0, 0]).values
    features = last(module, images).detach()
    expected = torch.einsum("tk,bkij->btij", module.head.weight / features[0, 0].numel(), features).relu()
    torch.testing.assert_close(maps[:, :, 0], expected, rtol=1e-4, atol=1e-6)


def test_outputs_whose_sum_never_changes_do_not_mislead():
    class Opposite(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = nn.Conv2d(1, 4, 3), nn.Linear(4, 1)

        def forward(self, images):
            score = self.head(self.conv(images).relu().mean((2, 3)))
            return torch.cat([score, -score], 1)

    assert feature_map(Opposite().eval(), torch.zeros(1, 1, 8, 8)).name == "relu in forward"


@pytest.mark.parametrize("queries", [5, 10])
def test_the_queries_of_a_decoder_are_no_map(queries):
    class Queries(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.queries = nn.Conv2d(1, 8, 3, stride=2), nn.Parameter(torch.randn(1, queries, 8))
            self.decoder, self.head = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 1)

        def forward(self, images):
            memory = self.conv(images).relu()
            queries = self.queries.expand(len(images), -1, -1)
            return self.head(self.decoder(queries, memory.flatten(2).transpose(1, 2)))[..., 0]

    chosen = feature_map(Queries().eval(), torch.randn(1, 1, 32, 32))
    assert (chosen.name, chosen.grid) == ("relu in forward", (15, 15))


def test_a_black_image_finds_the_same_map_as_any_other():
    black, noise = MODELS["resnet_compact"].build(1, 3).eval(), MODELS["resnet_compact"].build(1, 3).eval()
    assert feature_map(black, torch.zeros(1, 1, 64, 64)) == feature_map(noise, torch.randn(1, 1, 64, 64))


def test_the_size_of_the_image_is_part_of_what_is_remembered():
    module = Tokens().eval()
    assert feature_map(module, torch.randn(1, 1, 8, 8)).grid == (2, 2)
    assert feature_map(module, torch.randn(1, 1, 8, 16)).grid == (2, 4)


def test_a_named_layer_that_is_no_map_is_refused():
    with pytest.raises(ModelError, match=r"layer 'head' is not a feature map: its output has the shape \(2,\)"):
        feature_map(Tokens().eval(), torch.randn(1, 1, 8, 8), "head")
