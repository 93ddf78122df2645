"""How much a region and the truth have in common, relative to their sizes."""

from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.grids import require_masks
from heatcheck.metrics.registry import Needs, metric
from heatcheck.metrics.undefined import NO_TRUTH, NOTHING_MARKED, undefined


@metric(
    "iou",
    label="IoU",
    summary="How closely the highlighted area matches the area the experts drew: 0 no overlap, 1 identical.",
    higher_is_better=True,
    needs=Needs.REGION,
    reference="Saporta et al. 2022, Nature Machine Intelligence 4:867",
)
def iou(region: Mask, truth: Mask) -> Measured:
    """Intersection over union on a case with the finding; NaN without truth.

    An empty region scores 0 there. The benchmark leaves such cases out, which rewards a method for showing nothing.
    """
    require_masks(region, truth)
    if not truth.any():
        return undefined(NO_TRUTH)
    return Measured(pixels_in(region & truth) / pixels_in(region | truth))


@metric(
    "iou_full",
    label="IoU, all cases",
    summary="Overlap with the experts' area over all cases, where highlighting anything in a healthy image scores 0.",
    higher_is_better=True,
    needs=Needs.REGION,
    reference="Saporta et al. 2022, Nature Machine Intelligence 4:867",
)
def iou_full(region: Mask, truth: Mask) -> Measured:
    """Intersection over union on any case; NaN only where neither holds a pixel."""
    require_masks(region, truth)
    union = pixels_in(region | truth)
    return Measured(pixels_in(region & truth) / union) if union else undefined(NOTHING_MARKED)


@metric(
    "dice",
    label="Dice",
    summary="Overlap with the experts' area, kinder to partial overlap than IoU: 0 no overlap, 1 identical.",
    higher_is_better=True,
    needs=Needs.REGION,
    reference="Dice 1945, Ecology 26:297",
)
def dice(region: Mask, truth: Mask) -> Measured:
    """Twice the intersection over the sum of both sizes on a case with the finding; NaN without truth."""
    require_masks(region, truth)
    if not truth.any():
        return undefined(NO_TRUTH)
    return Measured(2 * pixels_in(region & truth) / (pixels_in(region) + pixels_in(truth)))
