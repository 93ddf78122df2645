"""The share of a map's relevance inside the truth, without a threshold. Negative relevance counts as 0."""

import sys
from collections.abc import Callable

import cv2
import numpy as np

from heatcheck.core.records import Map, Mask, Measured
from heatcheck.metrics.counting import Overlap, overlap, pixels_in
from heatcheck.metrics.grids import require_map, require_masks
from heatcheck.metrics.registry import Needs, metric
from heatcheck.metrics.undefined import NO_RELEVANCE, NO_TRUTH, undefined

_HALVES = 2**15  # possible values of the upper 16 bits of a non-negative float32
_UPPER = 1 if sys.byteorder == "little" else 0  # index of the upper 16 bits of a float32 among its two halves
_ARRAS = "Arras et al. 2022, Information Fusion 81:14"


@metric(
    "mass",
    label="Mass accuracy",
    summary="Which share of the map's total heat lies inside the area the experts drew.",
    higher_is_better=True,
    needs=Needs.MAP,
    reference=_ARRAS,
)
def mass(relevance: Map, truth: Mask) -> Measured:
    """The relevance inside the truth over all relevance; NaN without truth or without positive relevance.

    A mask of booleans counts as a map of zeros and ones.
    """
    if relevance.dtype == np.bool_:
        return _region_score(relevance, truth, lambda shared: shared.inside / shared.region)
    low = require_map(relevance, truth)
    if not truth.any():
        return undefined(NO_TRUTH)
    positive = relevance if low >= 0 else np.maximum(relevance, 0)
    total = positive.sum(dtype=np.float64)
    if total == 0:
        return undefined(NO_RELEVANCE)
    return Measured(float(positive[truth].sum(dtype=np.float64) / total))


@metric(
    "rank",
    label="Rank accuracy",
    summary="Of the hottest pixels, as many as the experts' area has, which share lies inside that area.",
    higher_is_better=True,
    needs=Needs.MAP,
    reference=_ARRAS,
)
def rank(relevance: Map, truth: Mask) -> Measured:
    """The share of the k most relevant positions that lies in the truth of size k; NaN without truth or relevance.

    Positions that tie for the k-th rank share it: the value is the expectation over all ways to break the tie.
    """
    if relevance.dtype == np.bool_:
        return _region_score(relevance, truth, _rank_of_region)
    low = require_map(relevance, truth)
    size = pixels_in(truth)
    if not size:
        return undefined(NO_TRUTH)
    positive = relevance if low >= 0 else np.maximum(relevance, 0)
    if not positive.any():
        return undefined(NO_RELEVANCE)
    kth = _kth_largest(positive, size)
    inside = positive[truth]
    ranks_left = size - pixels_in(positive > kth)  # for all positions that tie with the k-th
    tied_inside = ranks_left * pixels_in(inside == kth) / pixels_in(positive == kth)
    return Measured((pixels_in(inside > kth) + tied_inside) / size)


def _region_score(region: Mask, truth: Mask, value: Callable[[Overlap], float]) -> Measured:
    """The score of a region as a map of zeros and ones, from pixel counts alone."""
    require_masks(region, truth)
    shared = overlap(region, truth)
    if not shared.truth:
        return undefined(NO_TRUTH)
    return Measured(value(shared)) if shared.region else undefined(NO_RELEVANCE)


def _rank_of_region(shared: Overlap) -> float:
    """Rank accuracy: the pixels of the region tie for the first ranks, all others for the ranks after these."""
    if shared.region >= shared.truth:
        return shared.inside / shared.region
    others = (shared.truth - shared.inside) / (shared.grid - shared.region)
    return (shared.inside + (shared.truth - shared.region) * others) / shared.truth


def _kth_largest(positive: Map, k: int) -> float:
    """The k-th largest of non-negative values.

    The upper 16 bits of a float32 already order such numbers: their histogram shows in which bin the k-th lies, and
    only the values of that bin are compared. Selection over all pixels of an X-ray takes eight times as long.
    """
    values = np.ascontiguousarray(positive, np.float32).ravel()
    high = values.view(np.uint16)[_UPPER::2] & 0x7FFF  # without the sign: zero may be negative
    counts = cv2.calcHist([high[None]], [0], None, [_HALVES], [0, _HALVES]).ravel()
    from_top = int(np.searchsorted(np.cumsum(counts[::-1], dtype=np.float64), k))
    half = _HALVES - 1 - min(from_top, _HALVES - 1)
    # the histogram is float32 and rounds counts beyond 2²⁴, so the bin is corrected by exact counts
    while (above := int(np.count_nonzero(high > half))) >= k:
        half += 1
    while k - above > len(in_bin := values[high == half]):
        above, half = above + len(in_bin), half - 1
    top = in_bin.max()
    if k - above <= np.count_nonzero(in_bin == top):  # plateaus slow selection down
        return float(top)
    return float(np.partition(in_bin, above - k)[above - k])
