"""Floors do not depend on the model."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from heatcheck.methods.floors import CenterPrior, EdgeFloor, LocationPrior, RandomFloor

TARGETS = torch.tensor([[0, 1], [1, 2]])


def test_random_maps_differ_between_images_and_targets_but_not_between_positions_in_the_batch():
    images = torch.zeros(2, 1, 20, 30)
    maps = RandomFloor()(None, images, TARGETS, [4, 5]).values
    assert len({tuple(row.flatten().tolist()) for row in maps.flatten(0, 1)}) == 4
    swapped = RandomFloor()(None, images, TARGETS.flip(0), [5, 4]).values
    assert torch.equal(swapped.flip(0), maps)


def test_the_centre_is_highest_in_the_middle_and_symmetric():
    maps = CenterPrior()(None, torch.zeros(1, 1, 21, 31), torch.tensor([[0]]), [0]).values[0, 0, 0]
    assert divmod(int(maps.argmax()), 31) == (10, 15)
    torch.testing.assert_close(maps, maps.flip(0, 1))
    assert float(maps[10, 15]) == 1
    assert float(maps[10, 0]) == pytest.approx(np.exp(-0.5 * ((0.5 / 31 - 0.5) / 0.2) ** 2))


@pytest.mark.parametrize("shape", [(12, 17), (9, 8, 7)])
def test_edges_are_the_sobel_magnitude(shape):
    image = np.random.default_rng(0).random(shape).astype(np.float32)
    ours = EdgeFloor()(None, torch.from_numpy(image)[None, None], torch.tensor([[0]]), [0]).values[0, 0, 0]
    axes = [ndimage.sobel(image, axis, mode="nearest") for axis in range(len(shape))]
    scale = 4 ** (len(shape) - 1)  # scipy's smoothing sums to 4 along each other axis, ours to 1
    np.testing.assert_allclose(ours.numpy(), np.sqrt(sum(a**2 for a in axes)) / scale, rtol=1e-4, atol=1e-5)


def test_the_location_prior_shows_what_it_was_given_for_each_target():
    priors = torch.rand(2, 3, 8, 8)
    maps = LocationPrior(priors)(None, torch.zeros(2, 1, 20, 30), TARGETS, [0, 0]).values
    assert torch.equal(maps[0, 1, 0], priors[0, 1])
    assert torch.equal(maps[1, 1, 0], priors[1, 2])


def test_without_priors_the_location_prior_says_what_it_needs():
    with pytest.raises(ValueError, match="truth masks of other cases"):
        LocationPrior()(None, torch.zeros(2, 1, 20, 30), TARGETS, [0, 0])
