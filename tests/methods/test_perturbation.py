"""Covering parts of the image, against Captum and by hand."""

import pytest
import torch
from captum.attr import FeatureAblation as PeerAblation
from captum.attr import Occlusion as PeerOcclusion

from heatcheck.methods.masking import score_drops
from heatcheck.methods.perturbation import FeatureAblation, Occlusion, grid_segments


def every(*outputs):
    return torch.tensor(outputs).expand(4, -1)


@pytest.mark.parametrize(("window", "stride"), [(6, 6), (5, 3), (7, 4)])
def test_occlusion_equals_captum(tiny_classifier, tiny_images, window, stride):
    ours = Occlusion(window, stride)(tiny_classifier, tiny_images, every(0, 2), range(4)).values
    shape = (tiny_images.shape[1], *[window] * (tiny_images.ndim - 2))
    steps = (1, *[stride] * (tiny_images.ndim - 2))
    for place, target in enumerate((0, 2)):
        peer = PeerOcclusion(tiny_classifier.module).attribute(
            tiny_images, sliding_window_shapes=shape, strides=steps, target=target
        )
        torch.testing.assert_close(ours[:, place, 0], peer[:, 0], rtol=1e-4, atol=1e-6)


def test_feature_ablation_equals_captum(tiny_classifier, tiny_images):
    ours = FeatureAblation(cells=4)(tiny_classifier, tiny_images, every(1, 2), range(4)).values
    segments = grid_segments(tuple(tiny_images.shape[2:]), 4)
    for place, target in enumerate((1, 2)):
        peer = PeerAblation(tiny_classifier.module).attribute(
            tiny_images, feature_mask=segments[None, None], target=target
        )
        torch.testing.assert_close(ours[:, place, 0], peer[:, 0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "window", "stride"), [((10, 13), 4, 3), ((8, 8), 8, 8), ((5, 7), 9, 2), ((6, 7, 5), 3, 2)]
)
def test_windows_cover_every_pixel(shape, window, stride):
    covers = Occlusion(window, stride).windows(shape)
    assert covers.any(0).all()
    assert covers.flatten(1).any(1).all()


def test_a_stride_that_leaves_gaps_is_refused():
    with pytest.raises(ValueError, match="leaves gaps"):
        Occlusion(3, 5).windows((10, 10))


def test_more_segments_than_pixels_are_refused():
    with pytest.raises(ValueError, match="use fewer"):
        grid_segments((4, 20), 5)


def test_grid_segments_are_numbered_row_by_row_and_nearly_equal():
    segments = grid_segments((6, 9), 3)
    assert segments[0, 0] == 0
    assert segments[0, -1] == 2
    assert segments[-1, 0] == 6
    assert set(segments.flatten().bincount().tolist()) == {6}


def test_drops_do_not_depend_on_how_many_copies_go_at_a_time():
    images, fill = torch.rand(1, 1, 6, 6), torch.zeros(1, 1, 6, 6)
    covers = torch.rand(37, 6, 6) < 0.5
    sizes = []

    def predict(batch):
        sizes.append(len(batch))
        return batch.flatten(1).cumsum(1)[:, -3:]

    (drops,) = score_drops(predict, images, torch.tensor([[2, 0]]), [covers], fill, at_a_time=5)
    lost = (images[0] * covers.unsqueeze(1)).flatten(1).cumsum(1)[:, -3:]
    torch.testing.assert_close(drops, lost[:, [2, 0]])
    assert sizes == [1, 5, 5, 5, 5, 5, 5, 5, 2]
