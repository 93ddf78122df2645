"""Whether a map's peak lies in the truth. Tied peaks share the score, because any of them could be the peak."""

import cv2
import numpy as np
from scipy import ndimage

from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.grids import require_masks
from heatcheck.metrics.registry import Needs, metric
from heatcheck.metrics.undefined import NO_PEAK, NO_TRUTH, undefined

MARGIN = 0.03  # Zhang et al. allow 15 pixels on photographs with a longer side of about 500


@metric(
    "hit",
    label="Hit rate",
    summary="Hit: the hottest pixel of the map lies inside the radiologists’ outline; the rate is the share of cases "
    "with a hit.",
    higher_is_better=True,
    needs=Needs.POINT,
    reference="Zhang et al. 2018, International Journal of Computer Vision 126:1084",
    unit="share",
)
def hit(peaks: Mask, truth: Mask) -> Measured:
    """The share of the tied peaks that lies in the truth; NaN without truth."""
    require_masks(peaks, truth)
    return _share_inside(peaks, truth) if truth.any() else undefined(NO_TRUTH)


@metric(
    "hit_margin",
    label="Hit rate, margin",
    summary="How often the hottest spot lies inside the experts' area or within 3 % of the image's side from it.",
    higher_is_better=True,
    needs=Needs.POINT,
    reference="Zhang et al. 2018, International Journal of Computer Vision 126:1084",
    unit="share",
)
def hit_margin(peaks: Mask, truth: Mask, margin: float = MARGIN) -> Measured:
    """The share of the tied peaks at most `margin` of the longer image side away from the truth; NaN without truth.

    Distances run from pixel centre to pixel centre.
    """
    require_masks(peaks, truth)
    if not truth.any():
        return undefined(NO_TRUTH)
    if not peaks.any():
        return undefined(NO_PEAK)
    # without rounding, a distance such as 0.29 × 100 falls short of 29
    reach = round(margin * max(truth.shape), 6)
    window = _window_around(peaks, int(reach) + 1)
    return _share_inside(peaks[window], _distance_to(truth[window]) <= reach)


def _share_inside(peaks: Mask, target: Mask) -> Measured:
    tied = pixels_in(peaks)
    return Measured(pixels_in(peaks & target) / tied) if tied else undefined(NO_PEAK)


def _window_around(peaks: Mask, room: int) -> tuple[slice, ...]:
    # most maps have one peak: computing distances far from it would be most of the work
    if peaks.ndim == 2:
        column, row, width, height = cv2.boundingRect(peaks.view(np.uint8))
        box: tuple[slice, ...] = (slice(row, row + height), slice(column, column + width))
    else:
        (box,) = ndimage.find_objects(peaks.view(np.uint8))
    return tuple(slice(max(0, side.start - room), side.stop + room) for side in box)


def _distance_to(truth: Mask) -> np.ndarray:
    if not truth.any():
        return np.full(truth.shape, np.inf)
    if truth.ndim == 2:
        return np.asarray(cv2.distanceTransform((~truth).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE))
    return np.asarray(ndimage.distance_transform_edt(~truth))
