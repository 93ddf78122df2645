"""Where cells look, against the centre of mass of what reaches them; and where CAM maps then lie."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from heatcheck.core.geometry import Cells, map_to_image, mask_to_grid, place
from heatcheck.maps.resize import to_image
from heatcheck.methods.cam import NOT_PLACED, EigenCam, GradCam, GradCamPlusPlus
from heatcheck.methods.feature_maps import feature_map
from heatcheck.methods.propagation import GuidedGradCam
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing

SIZE = (48, 60)


class Padded(nn.Module):
    """Zeros before and after, not equally many."""

    def forward(self, x):
        return functional.pad(x, (3, 0, 1, 2))


class Enlarged(nn.Module):
    def __init__(self, align):
        super().__init__()
        self.align = align

    def forward(self, x):
        return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=self.align)


def layers():
    window = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))
    convolution = window.map(lambda w: nn.Conv2d(1, 1, w[0], w[1], min(w[2], w[0] // 2), w[3], bias=False))
    pool = window.map(lambda w: nn.AvgPool2d(w[0] + 1, w[1], min(w[2], (w[0] + 1) // 2)))
    uneven = st.just(nn.Conv2d(1, 1, (3, 5), (2, 1), (1, 2), bias=False))
    same = st.builds(lambda k: nn.Conv2d(1, 1, k, padding="same", bias=False), st.integers(1, 4))
    back = st.builds(lambda p: nn.ConvTranspose2d(1, 1, 4, 2, p, bias=False), st.integers(0, 1))
    enlarged = st.booleans().map(Enlarged)
    return st.one_of(convolution, pool, uneven, same, back, st.builds(Padded), enlarged)


def as_network(parts):
    """The layers with weights of 1, which give each pixel of a receptive field the weight that geometry does."""
    body = nn.Sequential(*parts, nn.Conv2d(1, 1, 1, bias=False))
    for weight in body.parameters():
        nn.init.ones_(weight)
    return nn.Sequential(body, nn.Flatten(1), nn.LazyLinear(2))


@settings(max_examples=40)
@given(st.lists(layers(), min_size=1, max_size=3))
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_cells_look_where_the_centre_of_mass_of_their_input_is(parts):
    network = as_network(parts)
    image = torch.ones(1, 1, *SIZE, requires_grad=True)
    output = network[0](image)
    network(torch.ones(1, 1, *SIZE))
    found = feature_map(network.eval(), torch.zeros(1, 1, *SIZE), "0")
    assert found.is_placed
    middle = tuple(side // 2 for side in found.grid)  # the border's cells also see the padding
    (seen,) = torch.autograd.grad(output[(0, 0, *middle)], image)
    field = seen[0, 0].double()
    for axis in (0, 1):
        positions = torch.arange(SIZE[axis]) + 0.5
        mass = field.sum(1 - axis)
        centre = float((mass * positions).sum() / mass.sum())
        cells = found.cells or Cells(
            tuple(size / cells / 2 for size, cells in zip(SIZE, found.grid, strict=True)),
            tuple(size / cells for size, cells in zip(SIZE, found.grid, strict=True)),
        )
        # a transposed convolution's cells alternate between two inputs, and corners fall between centres
        slack = 2.01 if any(isinstance(part, nn.ConvTranspose2d | Enlarged) for part in parts) else 1e-4
        assert float(cells.centres(axis, found.grid[axis])[middle[axis]]) == pytest.approx(centre, abs=slack)


def network_of(stem):
    return nn.Sequential(stem, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))


def halving(kind):
    """Three halvings of the same kind."""
    parts = []
    for channels in (1, 4, 4):
        parts += [kind(channels), nn.ReLU()]
    return network_of(nn.Sequential(*parts))


def classifier_of(module, size):
    contract = Preprocessing(outputs=("a", "b"), size=size, channels=1, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("net", module.eval(), contract)


def test_padded_strides_are_placed_half_a_step_to_the_left_of_their_tiles():
    found = feature_map(halving(lambda c: nn.Conv2d(c, 4, 3, 2, 1)).eval(), torch.zeros(1, 1, 64, 64))
    assert found.cells == Cells((0.5, 0.5), (8.0, 8.0))  # by hand: pixels 0, 8, 16, …, not 3.5, 11.5, …
    assert found.cells.shift(found.grid, (64, 64)) == (-3.5, -3.5)


def test_tiles_need_no_placement():
    """Windows as wide as their stride tile the image: maps stay as they were, to the bit."""
    found = feature_map(halving(lambda c: nn.Conv2d(c, 4, 2, 2)).eval(), torch.zeros(1, 1, 64, 64))
    assert found.cells is None
    assert found.is_placed
    for name in ("vit_compact", "swin_compact"):
        patches = feature_map(MODELS[name].build(1, 2, (64, 64)).eval(), torch.zeros(1, 1, 64, 64))
        assert patches.cells is None
        assert patches.is_placed


@pytest.mark.parametrize("maximum", [nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2, ceil_mode=True)])
def test_a_maximum_looks_where_the_mean_does(maximum):
    mean = nn.AvgPool2d(maximum.kernel_size, maximum.stride, maximum.padding, maximum.ceil_mode)
    where = [
        feature_map(network_of(nn.Sequential(nn.Conv2d(1, 4, 3, 1, 1), pool)).eval(), torch.zeros(1, 1, 33, 33))
        for pool in (maximum, mean)
    ]
    assert where[0].cells == where[1].cells is not None


class Sliced(nn.Module):
    """A grid that no layer of a known kind made."""

    def forward(self, x):
        return x[:, :, 3:-1, 3:-1]


def test_a_grid_of_unknown_origin_is_said_to_be_spread_evenly():
    module = nn.Sequential(nn.Conv2d(1, 4, 3), Sliced(), nn.Conv2d(4, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    maps = GradCam()(classifier_of(module, (20, 20)), torch.rand(1, 1, 20, 20), torch.zeros(1, 1, dtype=int), [0])
    assert maps.cells is None
    assert maps.note == NOT_PLACED
    assert not GradCam(placement="plain")(
        classifier_of(module, (20, 20)), torch.rand(1, 1, 20, 20), torch.zeros(1, 1, dtype=int), [0]
    ).note


def bright_spot(module, method, at, size=128):
    """How far from a bright square in the image the middle of the method's map lies, in pixels."""
    image = torch.zeros(1, 1, size, size)
    image[..., at - 4 : at + 4, at - 4 : at + 4] = 1
    maps = method(classifier_of(module, (size, size)), image, torch.zeros(1, 1, dtype=int), [0])
    whole = place((size, size), (size, size), "stretch")
    values = to_image(maps.values[0, 0].clamp(min=0), whole, maps.cells)[0].astype(float)
    values[values < values.max() / 2] = 0
    pixels = np.arange(size) + 0.5
    return float((values.sum(0) * pixels).sum() / values.sum() - at)


@pytest.mark.parametrize("name", ["centres", "plain"])
@pytest.mark.parametrize("method", [GradCam, GradCamPlusPlus, EigenCam])
def test_a_map_lies_on_what_the_network_saw(method, name):
    """A network of strided, padded averages sees a bright square; its map must lie on it, not beside it."""
    module = halving(lambda c: nn.Conv2d(c, 4, 3, 2, 1, bias=False))
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.constant_(part.weight, 1 / 9)
    module[-1].weight.data.fill_(1.0)
    off = [bright_spot(module, method(placement=name), at) for at in (40, 64, 88)]
    assert off == pytest.approx([0.0] * 3 if name == "centres" else [3.5] * 3, abs=0.6)


def test_guided_grad_cam_takes_grad_cams_place():
    module = halving(lambda c: nn.Conv2d(c, 4, 3, 2, 1))
    for weight in module.parameters():
        weight.data.abs_()
    classifier, images = classifier_of(module, (64, 64)), torch.rand(1, 1, 64, 64)
    targets = torch.zeros(1, 1, dtype=int)
    coarse = GradCam()(classifier, images, targets, [0])
    whole = place((64, 64), (64, 64), "stretch")
    placed, plain = (
        GuidedGradCam(placement=name)(classifier, images, targets, [0]).values for name in ("centres", "plain")
    )
    ratio = map_to_image(coarse.values[0, 0], whole, coarse.cells) / map_to_image(coarse.values[0, 0], whole)
    kept = (plain != 0) & (ratio != 0) & ratio.isfinite()
    torch.testing.assert_close(placed[kept], (plain * ratio)[kept])
    assert kept.any()
    nearest = GuidedGradCam(upsampling="nearest")(classifier, images, targets, [0]).values
    cell = (torch.arange(64) / 8).round().long().clamp(max=7)  # pixel 8·i is the centre of cell i
    steps = coarse.values[0, 0, 0][cell][:, cell]
    exact = map_to_image(coarse.values[0, 0], whole, coarse.cells)[0]
    centres = slice(0, 57, 8)
    torch.testing.assert_close(nearest[0, 0, 0, centres, centres], placed[0, 0, 0, centres, centres])
    torch.testing.assert_close(steps[centres, centres], exact[centres, centres])


def test_an_outline_goes_to_the_cells_that_look_at_it():
    """A disc around the centre of cell 2 marks that cell, and on tiles its neighbours."""
    cells = Cells((0.5, 0.5), (16.0, 16.0))
    mask = np.zeros((64, 64), bool)
    mask[30:36, 30:36] = True  # around 32.5, the centre of cell 2
    whole = place((64, 64), (64, 64), "stretch")
    assert np.argwhere(mask_to_grid(mask, whole, (4, 4), cells)).tolist() == [[2, 2]]
    small = np.zeros((64, 64), bool)
    small[9, 9] = True  # between cells 0 (0.5) and 1 (16.5), nearer to the second
    assert np.argwhere(mask_to_grid(small, whole, (4, 4), cells)).tolist() == [[1, 1]]


class Merged(nn.Module):
    """A shortcut of averages beside strided convolutions, as in some residual networks; it is run last."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, 2, 1)

    def forward(self, x):
        return self.convolution(x) + functional.avg_pool2d(x, 2)


class Described(nn.Module):
    """A layer made of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def cells_of(*layers, size=64, layer=""):
    module = nn.Sequential(*layers, nn.Conv2d(4, 4, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return feature_map(module.eval(), torch.zeros(1, 1, size, size), layer)


def test_branches_that_are_joined_look_where_they_do_on_average():
    assert cells_of(nn.Conv2d(1, 4, 1), Merged()).cells.first == (0.75, 0.75)  # 0.5 by the convolution, 1 by the mean


def test_a_layer_is_placed_by_its_own_cells_whatever_a_decoder_does_later():
    up = nn.ConvTranspose2d(4, 4, 4, 2, 0)
    found = cells_of(nn.Conv2d(1, 4, 3, 2, 1), up, nn.Conv2d(4, 4, 3, 2, 0), layer="0")
    assert found.cells.first == (0.5, 0.5)


@pytest.mark.parametrize(
    "stem",
    [
        lambda x: x[:, :, ::2, ::2],
        lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True)[0],
        lambda x: functional.unfold(x, 2, stride=2).view(2, -1, 32, 32)[:, :4],
        lambda x: x.flip(2),
    ],
)
def test_what_cannot_be_followed_is_not_said_to_be_placed(stem):
    found = cells_of(nn.Conv2d(1, 4, 3, 1, 1), Described(stem), nn.Conv2d(4, 4, 3, 2, 1))
    assert not found.is_placed
    assert found.cells is None


def test_layers_without_a_gradient_and_shuffled_pixels_are_followed():
    def frozen(x):
        with torch.no_grad():
            return functional.conv2d(x, torch.ones(4, 4, 3, 3), stride=2, padding=1)

    found = cells_of(nn.Conv2d(1, 4, 1), Described(frozen), nn.Conv2d(4, 4, 3, 2, 1))
    assert found.cells == Cells((0.5, 0.5), (4.0, 4.0))
    shuffled = cells_of(nn.PixelUnshuffle(2), nn.Conv2d(4, 4, 3, 2, 1))
    assert shuffled.cells == Cells((1.0, 1.0), (4.0, 4.0))  # pairs of pixels, then every second of them


@pytest.mark.parametrize(
    ("settings", "cells"),
    [
        ({"size": (16, 16)}, Cells((0.5, 0.5), (4.0, 4.0))),  # the nearest pixel is the first of four
        ({"scale_factor": 0.25, "mode": "bilinear"}, None),  # the middle of four, as tiles have it
    ],
)
def test_resizing_within_a_network(settings, cells):
    found = cells_of(nn.Conv2d(1, 4, 1), Described(lambda x: functional.interpolate(x, **settings)))
    assert found.cells == cells
    assert found.is_placed
