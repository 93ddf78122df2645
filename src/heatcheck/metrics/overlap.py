"""Overlap of a region with the truth, relative to their sizes."""

from heatcheck.core.records import Measured
from heatcheck.metrics.counting import Overlap
from heatcheck.metrics.registry import region_metric
from heatcheck.metrics.undefined import NO_TRUTH, NOTHING_MARKED, undefined


@region_metric(
    "iou",
    label="Overlap (IoU)",
    summary="The area that the map’s region and the radiologists’ outline share, divided by the area either covers: 1"
    " is a perfect match, 0 is no overlap.",
    higher_is_better=True,
    reference="Saporta et al. 2022, Nature Machine Intelligence 4:867",
)
def iou(shared: Overlap) -> Measured:
    """Intersection over union on a case with the finding; NaN without truth.

    An empty region scores 0. The benchmark leaves such cases out, which rewards a method for showing nothing.
    """
    if not shared.truth:
        return undefined(NO_TRUTH)
    return Measured(shared.inside / shared.either)


@region_metric(
    "iou_full",
    label="IoU, all cases",
    summary="Overlap with the experts' area over all cases, where highlighting anything in a healthy image scores 0.",
    higher_is_better=True,
    reference="Saporta et al. 2022, Nature Machine Intelligence 4:867",
)
def iou_full(shared: Overlap) -> Measured:
    """Intersection over union on any case; NaN only where region and truth are both empty."""
    return Measured(shared.inside / shared.either) if shared.either else undefined(NOTHING_MARKED)


@region_metric(
    "dice",
    label="Dice",
    summary="Overlap with the experts' area, kinder to partial overlap than IoU: 0 no overlap, 1 identical.",
    higher_is_better=True,
    reference="Dice 1945, Ecology 26:297",
)
def dice(shared: Overlap) -> Measured:
    """Twice the intersection over the sum of both sizes on a case with the finding; NaN without truth."""
    if not shared.truth:
        return undefined(NO_TRUTH)
    return Measured(2 * shared.inside / (shared.region + shared.truth))
