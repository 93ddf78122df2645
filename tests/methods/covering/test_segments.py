"""Segments cover the image, are disjoint and reproducible, and a note says where there are none."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heatcheck.core.errors import SpecError
from heatcheck.methods import build_method
from heatcheck.methods.covering.segments import (
    Given,
    Grid,
    Quickshift,
    Slic,
    each_alone,
    grid_segments,
    numbered,
    segments_of,
)
from heatcheck.methods.perturbation import FeatureAblation


def halves(shape, low=-3.0, high=900.0):
    """A noisy image whose left half is dark and right half bright."""
    image = torch.randn(1, *shape, generator=torch.Generator().manual_seed(1))
    image[..., shape[-1] // 2 :] += high
    return image + low


@settings(deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=3), st.integers(1, 20))
def test_grid_cells_are_boxes_of_nearly_one_size_that_cover_everything_once(shape, cells):
    shape = tuple(shape)
    if cells > min(shape):
        with pytest.raises(ValueError, match="use fewer"):
            grid_segments(shape, cells)
        return
    segments = grid_segments(shape, cells)
    assert segments.shape == shape
    assert segments.unique().tolist() == list(range(cells ** len(shape)))
    for number in range(min(cells ** len(shape), 5)):
        positions = (segments == number).nonzero()
        sides = (positions.amax(0) - positions.amin(0) + 1).tolist()
        assert len(positions) == math.prod(sides)
        assert all(size // cells <= side <= -(-size // cells) for side, size in zip(sides, shape, strict=True))


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_relabelled_segments_are_the_same_ones_numbered_without_gaps(labels):
    labels = torch.tensor(labels)
    numbers = numbered(labels)
    assert numbers.unique().tolist() == list(range(len(labels.unique())))
    assert torch.equal(labels[:, None] == labels, numbers[:, None] == numbers)


def test_grid_segments_are_numbered_row_by_row():
    segments = grid_segments((6, 9), 3)
    assert (segments[0, 0], segments[0, -1], segments[-1, 0]) == (0, 2, 6)
    assert set(segments.flatten().bincount().tolist()) == {6}


@pytest.mark.parametrize("rule", [Slic(count=20), Quickshift(max_dist=8.0)], ids=["slic", "quickshift"])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_segments_follow_the_image_whatever_its_range(rule, channels):
    image = halves((24, 32)).expand(channels, -1, -1) * torch.tensor([1.0, -0.01, 50.0])[:channels, None, None]
    segments = segments_of(image, rule)
    labels = segments.labels[0]
    assert segments.labels.shape == (1, 24, 32)
    assert labels.unique().tolist() == list(range(segments.count))
    assert segments.count > 1
    left, right = (set(part.flatten().tolist()) for part in (labels[:, :16], labels[:, 16:]))
    assert not left & right
    assert torch.equal(labels, segments_of(image * 3 + 7, rule).labels[0])


def test_supervoxels_follow_the_volume():
    segments = segments_of(halves((8, 10, 12)).expand(2, -1, -1, -1), Slic(count=12))
    assert segments.labels.shape == (1, 8, 10, 12)
    assert segments.count > 3
    assert not set(segments.labels[..., :6].flatten().tolist()) & set(segments.labels[..., 6:].flatten().tolist())


def test_one_bright_channel_does_not_drown_another():
    image = torch.cat([halves((24, 32), high=100.0), 1e6 * torch.ones(1, 24, 32)])
    assert torch.equal(segments_of(image, Slic(count=8)).labels, segments_of(image / 7, Slic(count=8)).labels)
    labels = segments_of(image, Slic(count=8)).labels[0]
    assert not set(labels[:, :16].flatten().tolist()) & set(labels[:, 16:].flatten().tolist())


@pytest.mark.parametrize("rule", [Slic(count=16), Quickshift()], ids=["slic", "quickshift"])
@pytest.mark.parametrize("spatial", [2])
def test_a_constant_image_gets_a_grid_and_the_map_says_so(rule, tiny_classifier):
    segments = segments_of(torch.full((1, 24, 32), 0.3), rule)
    assert segments.count == (16 if isinstance(rule, Slic) else 64)
    assert f"no {rule.kind} segments; a grid was used" in segments.note
    images = torch.full((3, 2, 24, 32), 0.3)
    maps = FeatureAblation(rule)(tiny_classifier, images, torch.zeros(3, 1, dtype=torch.long), range(3))
    assert maps.note == segments.note


def test_each_channel_can_have_segments_of_its_own():
    segments = segments_of(torch.rand(3, 6, 6), Grid(cells=2, per_channel=True))
    assert segments.count == 12
    assert torch.equal(segments.labels[2], grid_segments((6, 6), 2) + 8)
    covers = each_alone(segments)[:]
    assert covers.shape == (12, 3, 6, 6)
    assert torch.equal(covers.sum(0), torch.ones(3, 6, 6, dtype=torch.long))
    assert covers[4].any(-1).any(-1).tolist() == [False, True, False]


def head(shape, channels=2):
    """A noisy ball in empty space, with another range in each channel."""
    positions = torch.meshgrid(*[torch.linspace(-1, 1, size) for size in shape], indexing="ij")
    inside = sum(position**2 for position in positions) < 0.7
    image = torch.randn(channels, *shape, generator=torch.Generator().manual_seed(2))
    return torch.where(inside, image * torch.arange(1, channels + 1).reshape(-1, *[1] * len(shape)), 0.0), inside


@pytest.mark.parametrize("shape", [(24, 32), (12, 14, 16)])
@pytest.mark.parametrize("per_channel", [False, True])
def test_superpixels_of_what_is_not_zero_leave_the_rest_uncovered_and_without_value(shape, per_channel):
    image, inside = head(shape)
    image[0][inside.nonzero()[0].tolist()[0]] = 0.0  # zero in one channel only: it is still cut
    segments = segments_of(image, Slic(count=10, sigma=1.0, nonzero=True, per_channel=per_channel))
    inside = (image != 0).any(0)
    count = segments.count // (2 if per_channel else 1)
    assert 3 <= count <= 20
    for channel, labels in enumerate(segments.labels):
        assert labels[inside].unique().tolist() == list(range(channel * count, (channel + 1) * count))
        assert set(labels[~inside].tolist()) == {segments.count}
    covers = each_alone(segments)[:]
    assert torch.equal(covers.any(0).all(0), inside)
    assert (covers.sum(0) <= 1).all()
    values = segments.painted(torch.rand(3, segments.count) + 1)
    assert torch.equal((values != 0).all(0).all(0), inside)
    assert torch.equal((values != 0).any(0).any(0), inside)


def test_a_voxel_that_no_seed_reaches_still_belongs_to_a_segment():
    image = torch.zeros(1, 40, 40)
    image[0, :8, :8] = halves((8, 8))
    image[0, 39, 39] = 5.0
    segments = segments_of(image, Slic(count=3, nonzero=True))
    assert int(segments.labels[0, 39, 39]) < segments.count


@pytest.mark.parametrize("pixels", [1, 2, 5])
def test_fewer_pixels_than_segments_were_asked_for_are_segmented_as_far_as_possible(pixels):
    image = torch.zeros(2, 9, 9)
    image[:, 4, :pixels] = 1.0
    segments = segments_of(image, Slic(count=6, nonzero=True))
    assert 1 <= segments.count <= pixels
    assert (segments.labels < segments.count).sum() == pixels


def test_an_empty_image_gets_a_grid_that_covers_it():
    segments = segments_of(torch.zeros(2, 8, 8), Slic(count=4, nonzero=True))
    assert "a grid was used" in segments.note
    assert segments.labels.unique().tolist() == [0, 1, 2, 3]


def test_blurring_before_cutting_makes_superpixels_of_a_noisy_image_smoother():
    def border(sigma):
        labels = segments_of(halves((32, 32), high=4.0), Slic(count=12, compactness=0.3, sigma=sigma)).labels[0]
        return int((labels.diff(dim=0) != 0).sum() + (labels.diff(dim=1) != 0).sum())

    assert border(2.0) < border(0.0)


def test_given_segments_are_used_as_they_are():
    labels = torch.tensor([[7, 7, -2], [9, 7, -2]])
    segments = segments_of(torch.rand(1, 2, 3), Given(labels))
    assert segments.labels.tolist() == [[[1, 1, 0], [2, 1, 0]]]
    with pytest.raises(ValueError, match="must have the shape of the model"):
        segments_of(torch.rand(1, 3, 3), Given(labels))


def test_what_cannot_be_segmented_is_refused():
    with pytest.raises(ValueError, match="2D images only"):
        segments_of(torch.zeros(1, 8, 8, 8), Quickshift())
    with pytest.raises(ValueError, match="more than the 16 pixels"):
        segments_of(torch.zeros(1, 4, 4), Slic(count=17))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"kind": "slik"}, "'grid', 'slic', 'quickshift'"),
        ({"kind": "grid", "cellz": 3}, "segments.grid.cellz"),
        ({"kind": "grid", "cells": 0}, "at least 1"),
        ({"kind": "given", "given": [[1]]}, "instance of Tensor"),
    ],
)
def test_a_spec_that_names_wrong_segments_is_refused(written, message):
    with pytest.raises(SpecError, match=message):
        build_method("feature_ablation", {"segments": written})


def test_a_spec_can_name_segments():
    built = build_method("lime", {"segments": {"kind": "slic", "count": 9, "per_channel": True}})
    assert built.segments == Slic(count=9, per_channel=True)
