"""A patch on an image, worked by hand."""

import numpy as np
import pytest

from heatcheck.triggers.stamp import Stamp, stamp_where

CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)


def test_only_the_pixels_of_the_mask_get_the_values():
    image = np.arange(20, dtype=np.float32).reshape(1, 4, 5)
    stamped = Stamp((slice(1, 4), slice(0, 3)), CROSS, np.full((1, 3, 3), -1, np.float32)).on(image)
    assert stamped.tolist() == [[[0, 1, 2, 3, 4], [5, -1, 7, 8, 9], [-1, -1, -1, 13, 14], [15, -1, 17, 18, 19]]]
    assert image.min() == 0  # the image itself is unchanged


def test_every_channel_gets_its_own_values():
    values = np.stack([np.full((3, 3), value, np.float32) for value in (0.1, 0.2, 0.3)])
    stamped = Stamp((slice(0, 3), slice(2, 5)), CROSS, values).on(np.zeros((3, 4, 5), np.float32))
    assert stamped[:, 1, 3].tolist() == values[:, 0, 0].tolist()
    assert (stamped != 0).sum() == 15


def test_the_mask_on_the_image():
    stamp = Stamp((slice(1, 4), slice(0, 3)), CROSS, np.zeros((1, 3, 3), np.float32))
    mask = stamp.mask_on((4, 5))
    assert mask.sum() == 5
    assert np.array_equal(mask[1:, :3], CROSS)


def test_the_box_is_cut_to_the_mask():
    mask = np.zeros((6, 8), bool)
    mask[2, 3] = mask[4, 6] = True
    stamp = stamp_where(mask, np.arange(48, dtype=np.float32).reshape(1, 6, 8))
    assert stamp.box == (slice(2, 5), slice(3, 7))
    assert stamp.values[0, 0, 0] == 19


@pytest.mark.parametrize(
    ("box", "mask", "message"),
    [
        ((slice(0, 4), slice(0, 3)), CROSS, "must have the size of the box"),
        ((slice(0, 3), slice(0, 3)), CROSS & (np.arange(3) > 0), "reach all four sides"),
        ((slice(0, 3), slice(0, 3)), np.zeros((3, 3), bool), "reach all four sides"),
    ],
)
def test_a_box_that_is_not_the_tightest_is_refused(box, mask, message):
    with pytest.raises(ValueError, match=message):
        Stamp(box, mask, np.zeros((1, 3, 3), np.float32))
