"""Fills holes and drops specks of masks in two and three dimensions."""

import cv2
import numpy as np
from scipy import ndimage

from heatcheck.core.records import Mask

_RING = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], dtype=np.uint8)


def fill_holes(mask: Mask) -> Mask:
    """The mask with every background part filled that does not reach the border.

    Background is connected through faces only (4-connected, in a volume 6-connected), so a diagonal chain of mask
    pixels encloses a hole.
    """
    return _fill_plane(mask) if mask.ndim == 2 else _fill_volume(mask)


def drop_specks(mask: Mask) -> Mask:
    """The mask without pixels that have no neighbour in it (8-connected, in a volume 26-connected)."""
    return _drop_in_plane(mask) if mask.ndim == 2 else _drop_in_volume(mask)


def _fill_plane(mask: Mask) -> Mask:
    # a frame of background joins all outside parts, so that one flood reaches them
    framed = cv2.copyMakeBorder(mask.view(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    outside = 2
    cv2.floodFill(framed, None, (0, 0), outside, flags=4)
    return np.asarray(framed[1:-1, 1:-1] != outside)


def _drop_in_plane(mask: Mask) -> Mask:
    near_others = cv2.dilate(mask.view(np.uint8), _RING, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray(mask & near_others.view(bool))


def _fill_volume(mask: Mask) -> Mask:
    framed = np.pad(~mask, 1, constant_values=True)
    parts, _ = ndimage.label(framed)
    return np.asarray(parts[(slice(1, -1),) * mask.ndim] != parts.flat[0])


def _drop_in_volume(mask: Mask) -> Mask:
    around = mask.astype(np.uint8)  # voxels of the mask in a 3×3×3 cube: at most 27
    for axis in range(mask.ndim):
        line = np.moveaxis(around.copy(), axis, 0)
        sums = np.moveaxis(around, axis, 0)
        sums[1:] += line[:-1]
        sums[:-1] += line[1:]
    return np.asarray(mask & (around > 1))
