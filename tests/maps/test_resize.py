import numpy as np
import pytest
import torch
from torch.nn import functional

from heatcheck.core.geometry import place
from heatcheck.maps.resize import to_image


@pytest.mark.parametrize(
    ("grid", "image", "mode"), [((7, 5), (31, 18), "bilinear"), ((2, 3, 4), (9, 8, 7), "trilinear")]
)
def test_stretched_maps_equal_one_torch_interpolation_in_float32(grid, image, mode):
    maps = torch.randn(2, *grid, generator=torch.Generator().manual_seed(0))
    resized = to_image(maps, place(image, (16,) * len(image), "stretch"))
    assert resized.dtype == np.float32
    np.testing.assert_array_equal(resized, functional.interpolate(maps[None], image, mode=mode)[0])


def test_maps_that_carry_gradients_or_half_precision_come_out_as_plain_float32():
    maps = torch.ones(1, 2, 2, dtype=torch.float16, requires_grad=True)
    resized = to_image(maps, place((4, 4), (2, 2), "stretch"))
    assert resized.dtype == np.float32
    np.testing.assert_array_equal(resized, np.ones((1, 4, 4)))


def test_maps_with_channels_are_refused_with_a_hint():
    with pytest.raises(ValueError, match=r"got shape \(1, 3, 4, 4\); merge the channels"):
        to_image(torch.zeros(1, 3, 4, 4), place((8, 8), (4, 4), "stretch"))
