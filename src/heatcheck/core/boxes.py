"""The boxes around the parts of a mask: metrics compare them, and pictures show them."""

import numpy as np
from scipy import ndimage

from heatcheck.core.records import Mask

Box = tuple[slice, ...]


def box_around(mask: Mask) -> Box:
    """The tightest box around all pixels of a mask, which must not be empty."""
    axes = range(mask.ndim)
    taken = (np.flatnonzero(mask.any(axis=tuple(a for a in axes if a != axis))) for axis in axes)
    return tuple(slice(int(line[0]), int(line[-1]) + 1) for line in taken)


def component_boxes(mask: Mask) -> list[Box]:
    """The tightest box around each connected part; parts that touch at a corner are one."""
    parts, _ = ndimage.label(mask, np.ones((3,) * mask.ndim, bool))
    return list(ndimage.find_objects(parts))


def boxed(mask: Mask) -> Mask:
    """The pixels inside any of these boxes."""
    inside = np.zeros(mask.shape, bool)
    for box in component_boxes(mask):
        inside[box] = True
    return inside
