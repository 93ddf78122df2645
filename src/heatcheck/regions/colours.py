"""Smoothing as in the CheXlocalize benchmark: of the colours in which a map is shown, not of the map.

Both ends of the colour scale are dark, so this keeps the coldest pixels together with the hottest. It exists for
comparison with the benchmark; `maps.smooth` smooths the map itself.
"""

import cv2
import numpy as np

from heatcheck.core.records import Map, Mask
from heatcheck.regions.otsu import above_otsu, grey_levels


def colour_region(normalised: Map, kernel: int) -> Mask:
    """Otsu's region of the darkness of the map's colours, averaged over boxes of `kernel` pixels.

    A map without contrast has one colour, and all of it is the region, as in the benchmark.
    """
    if normalised.ndim != 2:
        raise ValueError(f"colours are smoothed on 2D maps only, got shape {normalised.shape}; smooth the map itself")
    colours = cv2.applyColorMap(grey_levels(normalised), cv2.COLORMAP_JET)
    # the benchmark reads OpenCV's blue-green-red as red-green-blue
    grey = cv2.cvtColor(colours, cv2.COLOR_RGB2GRAY)
    return above_otsu(np.asarray(255 - cv2.boxFilter(grey, -1, (kernel, kernel)), np.uint8))
