"""Attention rollout by hand, on every way of writing attention."""

import pytest
import torch
from tests.methods.networks import Attending
from torch import nn

from heatcheck.core.errors import ModelError
from heatcheck.methods.attention import AttentionRollout
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing


def classifier_of(module, size=(12, 12), outputs=3):
    names = tuple(f"finding {i}" for i in range(outputs))
    contract = Preprocessing(outputs=names, size=size, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("under test", module.eval(), contract)


class Stock(nn.Module):
    """The transformer layers of torch behind a class token."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.patches, self.token = nn.Conv2d(1, 8, 4, 4), nn.Parameter(torch.randn(1, 1, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.layers(torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1))[:, 0])


def attention_of(layer, tokens):
    normed = layer.norm1(tokens)
    _, weights = layer.self_attn(normed, normed, normed, need_weights=True, average_attn_weights=True)
    return weights


@torch.no_grad()
def test_rollout_is_the_product_of_the_layers():
    net, images = Stock().eval(), torch.randn(2, 1, 12, 12)
    got = AttentionRollout()(classifier_of(net), images, torch.tensor([[0, 1]] * 2), [0, 0]).values
    tokens = net.patches(images).flatten(2).transpose(1, 2)
    tokens = torch.cat([net.token.expand(2, -1, -1), tokens], 1)
    expected = torch.eye(10).expand(2, -1, -1)
    for layer in net.layers.layers:
        expected = (0.5 * attention_of(layer, tokens) + 0.5 * torch.eye(10)) @ expected
        tokens = layer(tokens)
    assert got.shape == (2, 2, 1, 3, 3)
    for target in range(2):
        torch.testing.assert_close(got[:, target, 0], expected[:, 0, 1:].reshape(2, 3, 3), rtol=1e-4, atol=1e-6)


def test_the_mean_row_is_shown_where_the_head_reads_the_patches_and_not_the_class_token():
    class Pooled(Stock):
        def forward(self, images):
            tokens = self.patches(images).flatten(2).transpose(1, 2)
            tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1)
            return self.head(self.norm(self.layers(tokens))[:, 1:].mean(1))

    net, images = Pooled(), torch.randn(1, 1, 12, 12)
    net.norm = nn.LayerNorm(8)
    pooled = AttentionRollout()(classifier_of(net), images, torch.tensor([[0]]), [0]).values
    from_token = AttentionRollout()(classifier_of(Stock()), images, torch.tensor([[0]]), [0]).values
    assert not torch.allclose(pooled, from_token)
    assert pooled.sum() < 1  # what the class token holds is not shown


def test_fused_and_plain_attention_agree_and_the_mean_row_is_shown_without_a_class_token():
    images, targets = torch.randn(2, 1, 12, 12), torch.tensor([[0]] * 2)
    plain, fused = (
        AttentionRollout()(classifier_of(Attending(kind)), images, targets, [0, 0]).values for kind in (False, True)
    )
    torch.testing.assert_close(plain, fused, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(plain.sum((2, 3, 4)), torch.ones(2, 1))


@pytest.mark.parametrize("name", ["densenet_compact", "swin_compact"])
def test_networks_that_do_not_attend_over_all_patches_are_refused(name):
    net, images = MODELS[name].build(1, 3), torch.randn(1, 1, 64, 64)
    with pytest.raises(ModelError, match="no attention over all its patches"):
        AttentionRollout().check(classifier_of(net, (64, 64)), images)


class Looking(nn.Module):
    """A class token that attends to the brightest patch, which has the longest first feature."""

    def __init__(self):
        super().__init__()
        self.light, self.norm = nn.Conv2d(1, 2, 4, 4), nn.LayerNorm(2, eps=10.0)  # a norm that hardly changes anything
        nn.init.constant_(self.light.weight, 1.0)
        nn.init.zeros_(self.light.bias)
        with torch.no_grad():
            self.light.weight[1].neg_()

    def forward(self, images):
        light = self.light(images).flatten(2).transpose(1, 2)
        tokens = self.norm(torch.cat([torch.zeros_like(light[:, :1]), light], 1))
        keys = tokens[..., 0].unsqueeze(1).expand(-1, tokens.shape[1], -1)
        return (keys.mul(20).softmax(-1) @ tokens)[:, 0, :1].expand(-1, 3)


def test_the_map_peaks_where_the_bright_patch_is():
    image = 0.05 * torch.rand(1, 1, 12, 16, generator=torch.Generator().manual_seed(0))
    image[0, 0, 4:8, 8:12] += 1
    maps = AttentionRollout()(classifier_of(Looking(), (12, 16)), image, torch.tensor([[0]]), [0]).values[0, 0, 0]
    assert maps.shape == (3, 4)
    assert divmod(int(maps.argmax()), 4) == (1, 2)
