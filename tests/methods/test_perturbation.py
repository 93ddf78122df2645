"""Covering parts of the image, against Captum and by hand."""

from dataclasses import replace

import pytest
import torch
from captum.attr import FeatureAblation as PeerAblation
from captum.attr import FeaturePermutation as PeerPermutation
from captum.attr import Occlusion as PeerOcclusion

from heatcheck.methods.covering.segments import Grid, Slic, grid_segments, segments_of
from heatcheck.methods.perturbation import FeatureAblation, FeaturePermutation, Occlusion
from heatcheck.models import BlackBox


def every(*outputs):
    return torch.tensor(outputs).expand(4, -1)


@pytest.mark.parametrize(("window", "stride"), [(6, 6), (5, 3), (7, 4)])
def test_occlusion_equals_captum(tiny_classifier, tiny_images, window, stride):
    ours = Occlusion(window, stride)(tiny_classifier, tiny_images, every(0, 2), range(4)).values
    shape = (tiny_images.shape[1], *[window] * (tiny_images.ndim - 2))
    steps = (1, *[stride] * (tiny_images.ndim - 2))
    for column, target in enumerate((0, 2)):
        peer = PeerOcclusion(tiny_classifier.module).attribute(
            tiny_images, sliding_window_shapes=shape, strides=steps, target=target
        )
        torch.testing.assert_close(ours[:, column, 0], peer[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("window", "stride"), [(6, 6), (5, 3)])
def test_occlusion_of_one_channel_at_a_time_equals_captum(tiny_classifier, tiny_images, window, stride):
    ours = Occlusion(window, stride, per_channel=True)(tiny_classifier, tiny_images, every(0, 2), range(4)).values
    axes = tiny_images.ndim - 2
    for column, target in enumerate((0, 2)):
        peer = PeerOcclusion(tiny_classifier.module).attribute(
            tiny_images, sliding_window_shapes=(1, *[window] * axes), strides=(1, *[stride] * axes), target=target
        )
        torch.testing.assert_close(ours[:, column], peer, rtol=1e-5, atol=1e-6)


def test_feature_ablation_equals_captum(tiny_classifier, tiny_images):
    ours = FeatureAblation(Grid(cells=4))(tiny_classifier, tiny_images, every(1, 2), range(4)).values
    segments = grid_segments(tuple(tiny_images.shape[2:]), 4)
    for column, target in enumerate((1, 2)):
        peer = PeerAblation(tiny_classifier.module).attribute(
            tiny_images, feature_mask=segments[None, None], target=target
        )
        torch.testing.assert_close(ours[:, column, 0], peer[:, 0], rtol=1e-5, atol=1e-6)


def test_feature_ablation_of_superpixels_in_each_channel_equals_captum(tiny_classifier, tiny_images):
    rule = Slic(count=6, per_channel=True)
    ours = FeatureAblation(rule)(tiny_classifier, tiny_images, every(1), range(4)).values
    for image, maps in zip(tiny_images, ours, strict=True):
        labels = segments_of(image, rule).labels
        peer = PeerAblation(tiny_classifier.module).attribute(image[None], feature_mask=labels[None], target=1)
        torch.testing.assert_close(maps, peer, rtol=1e-5, atol=1e-6)


def test_feature_permutation_with_one_donor_equals_captum_with_the_batch_rolled(tiny_classifier, tiny_images):
    def rolled(batch, mask):
        return torch.where(mask, batch.roll(1, 0), batch)

    donors = tuple(tiny_images.roll(1, 0).unsqueeze(1))
    ours = FeaturePermutation(Grid(cells=3), donors=donors)(tiny_classifier, tiny_images, every(2, 0), range(4)).values
    segments = grid_segments(tuple(tiny_images.shape[2:]), 3)
    for column, target in enumerate((2, 0)):
        peer = PeerPermutation(tiny_classifier.module, rolled).attribute(
            tiny_images, feature_mask=segments[None, None], target=target
        )
        torch.testing.assert_close(ours[:, column, 0], peer[:, 0], rtol=1e-5, atol=1e-6)


def test_feature_permutation_averages_over_its_donors(tiny_classifier, tiny_images):
    image, pool = tiny_images[:1], tiny_images[1:]
    targets = every(0, 1)[:1]

    def drops(donors, each=1):
        method = FeaturePermutation(Grid(cells=2), donors_each=each, donors=(donors,))
        return method(tiny_classifier, image, targets, [0]).values

    alone = [drops(donor[None]) for donor in pool]
    torch.testing.assert_close(drops(pool, 3), sum(alone) / 3)
    in_turn = drops(pool)  # the first segment shows the first donor, the second the second, the fourth the first again
    numbers = grid_segments(tuple(image.shape[2:]), 2) % 3
    torch.testing.assert_close(in_turn, torch.stack(alone).gather(0, numbers.expand_as(in_turn)[None])[0])
    assert drops(image).abs().max() < 1e-6


@pytest.mark.parametrize("donors", [(), (torch.rand(0, 2, 24, 32),)], ids=["none given", "an empty set"])
def test_without_donors_feature_permutation_says_what_it_needs_before_any_work(donors):
    with pytest.raises(ValueError, match="needs images of other patients"):
        FeaturePermutation(donors=donors)(None, torch.rand(1, 2, 24, 32), torch.tensor([[0]]), [0])


def test_donors_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"images' grid \(2, 24, 32\), got \(2, 12, 12\)"):
        FeaturePermutation(donors=(torch.rand(1, 2, 12, 12),))(None, torch.rand(1, 2, 24, 32), torch.tensor([[0]]), [0])


@pytest.mark.parametrize(
    ("shape", "window", "stride"), [((10, 13), 4, 3), ((8, 8), 8, 8), ((5, 7), 9, 2), ((6, 7, 5), 3, 2)]
)
def test_windows_cover_every_pixel_and_spread_as_the_mean_over_them(shape, window, stride):
    windows = Occlusion(window, stride).windows(shape)
    covers = windows[:]
    assert covers.shape == (len(windows), 1, *shape)
    assert covers.any(0).all()
    assert covers.flatten(1).any(1).all()
    drops = torch.rand(2, len(windows))
    weights = covers.flatten(1).float()
    torch.testing.assert_close(windows.spread(drops).flatten(1), drops @ weights / weights.sum(0))
    assert torch.equal(torch.cat([windows[:3], windows[3:]]), covers)


def test_windows_can_cover_one_channel_at_a_time():
    windows = replace(Occlusion(4, 4).windows((8, 12)), channels=3)
    covers = windows[:]
    assert covers.shape == (18, 3, 8, 12)
    assert torch.equal(covers.sum(0), torch.ones(3, 8, 12, dtype=torch.long))
    assert (covers.flatten(2).any(2).sum(1) == 1).all()
    drops = torch.rand(2, 18)
    weights = covers.flatten(1).float()
    torch.testing.assert_close(windows.spread(drops).flatten(1), drops @ weights)
    assert torch.equal(torch.cat([windows[:7], windows[7:]]), covers)


def test_a_stride_that_leaves_gaps_is_refused():
    with pytest.raises(ValueError, match="leaves gaps"):
        Occlusion(3, 5).windows((10, 10))


@pytest.mark.parametrize("shape", [(320, 320), (20, 33), (32, 32, 32), (9, 16, 12)])
def test_windows_follow_the_size_of_the_image_by_default(shape):
    windows = Occlusion().windows(shape)
    assert 16 <= len(windows) <= 64
    assert all(int(rows.sum(0).max()) == 1 for rows in windows.along)
    assert max(int(rows.sum(1).max()) for rows in windows.along) < min(shape)


@pytest.mark.parametrize("baseline", ["zero", "black"])
@pytest.mark.parametrize(
    "method", [Occlusion(4, 4, per_channel=True), FeatureAblation(Grid(cells=3, per_channel=True))]
)
def test_a_cover_that_changes_nothing_costs_nothing_and_is_worth_exactly_nothing(
    tiny_classifier, tiny_images, method, baseline
):
    half = tiny_images.clone()
    half[:, 0] = 0.0
    half[:, 1, : half.shape[2] // 2] = 0.0
    batch_sizes = []

    def predict(batch):
        batch_sizes.append(len(batch))
        with torch.no_grad():
            return tiny_classifier.module(batch)

    method = replace(method, baseline=baseline)
    maps = method(tiny_classifier, half, every(0, 2), range(4)).values
    assert not maps[:, :, 0].any()
    box = BlackBox("box", predict, tiny_classifier.preprocessing)
    by_predictions = method(box, half, every(0, 2), range(4)).values
    assert not by_predictions[:, :, 0].any()
    torch.testing.assert_close(maps, by_predictions, rtol=1e-4, atol=1e-6)
    segments = len(method.windows(half.shape[2:])) if isinstance(method, Occlusion) else 3 ** (half.ndim - 2)
    assert sum(batch_sizes) < 4 * (1 + segments)  # of two channels one is empty, and a part of the other
