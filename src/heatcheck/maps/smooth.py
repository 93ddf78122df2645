"""Smooths fine-grained maps (gradients, relevance) so that a region can be cut out."""

import cv2
import numpy as np
from scipy import ndimage

from heatcheck.core.records import Map


def kernel_size(shape: tuple[int, ...], fraction: float) -> int:
    """The side of the box in pixels, at least 1: `fraction` of the image's longer side."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"smoothing must be a fraction of the image's side between 0 and 1, got {fraction}")
    return max(1, round(fraction * max(shape)))


def box_smooth(normalised: Map, fraction: float) -> Map:
    """The mean over a box around each position, `kernel_size` wide along every axis; the map is mirrored at its border.

    A fraction of 0 leaves the map unchanged.
    """
    size = kernel_size(normalised.shape, fraction)
    if size == 1:
        return normalised
    values = np.asarray(normalised, dtype=np.float32)
    if values.ndim == 2:
        smooth = cv2.boxFilter(values, -1, (size, size), borderType=cv2.BORDER_REFLECT_101)
    else:
        smooth = ndimage.uniform_filter(values, size, mode="mirror")
    # rounding errors of running sums can leave [0, 1], which regions require
    return np.clip(smooth, 0, 1, out=smooth)
