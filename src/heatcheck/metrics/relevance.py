"""How much of a map's relevance lies in the truth, without a threshold. Evidence against the finding counts as 0."""

import sys
from collections.abc import Callable

import cv2
import numpy as np

from heatcheck.core.records import Map, Mask, Measured
from heatcheck.metrics.counting import Overlap, overlap, pixels_in
from heatcheck.metrics.grids import require_map, require_masks
from heatcheck.metrics.registry import Needs, metric
from heatcheck.metrics.undefined import NO_RELEVANCE, NO_TRUTH, undefined

_HALVES = 2**15  # values of the upper half of a non-negative float32
_UPPER = 1 if sys.byteorder == "little" else 0  # where the upper half of a float32 lies
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

    A mask of booleans is a map of one height.
    """
    if relevance.dtype == np.bool_:
        return _of_region(relevance, truth, lambda shared: shared.inside / shared.region)
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

    Positions that tie for the last places share them: the value is the expectation over all ways to break the tie.
    """
    if relevance.dtype == np.bool_:
        return _of_region(relevance, truth, _rank_of_region)
    low = require_map(relevance, truth)
    size = pixels_in(truth)
    if not size:
        return undefined(NO_TRUTH)
    positive = relevance if low >= 0 else np.maximum(relevance, 0)
    if not positive.any():
        return undefined(NO_RELEVANCE)
    last = _kth_largest(positive, size)
    inside = positive[truth]
    places = size - pixels_in(positive > last)
    shared = places * pixels_in(inside == last) / pixels_in(positive == last)
    return Measured((pixels_in(inside > last) + shared) / size)


def _of_region(region: Mask, truth: Mask, value: Callable[[Overlap], float]) -> Measured:
    """The score of a region taken for a map, from sizes alone."""
    require_masks(region, truth)
    shared = overlap(region, truth)
    if not shared.truth:
        return undefined(NO_TRUTH)
    return Measured(value(shared)) if shared.region else undefined(NO_RELEVANCE)


def _rank_of_region(shared: Overlap) -> float:
    """The region's pixels share the first places; what is left of them is shared by all others."""
    if shared.region >= shared.truth:
        return shared.inside / shared.region
    others = (shared.truth - shared.inside) / (shared.grid - shared.region)
    return (shared.inside + (shared.truth - shared.region) * others) / shared.truth


def _kth_largest(positive: Map, k: int) -> float:
    """The k-th largest of non-negative values.

    The upper half of a float32 orders such numbers already: a histogram of it says where the k-th lies, and only its
    neighbours are compared. Selection over a whole film takes eight times as long.
    """
    values = np.ascontiguousarray(positive, np.float32).ravel()
    high = values.view(np.uint16)[_UPPER::2] & 0x7FFF  # without the sign: zero may be negative
    counts = cv2.calcHist([high[None]], [0], None, [_HALVES], [0, _HALVES]).ravel()
    place = int(np.searchsorted(np.cumsum(counts[::-1], dtype=np.float64), k))
    half = _HALVES - 1 - min(place, _HALVES - 1)
    while (above := int(np.count_nonzero(high > half))) >= k:  # counts beyond 2²⁴ are rounded
        half += 1
    while k - above > len(near := values[high == half]):
        above, half = above + len(near), half - 1
    top = near.max()
    at_top = np.count_nonzero(near == top)
    if k - above <= at_top:  # plateaus slow selection down
        return float(top)
    return float(np.partition(near, above - k)[above - k])
