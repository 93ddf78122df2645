"""Overlap of boxes, for truth that was drawn as boxes."""

from heatcheck.core.boxes import boxed
from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.grids import require_masks
from heatcheck.metrics.registry import Needs, metric
from heatcheck.metrics.undefined import NO_TRUTH, undefined


@metric(
    "box_iou",
    label="Box IoU",
    summary="How closely boxes around the highlighted spots match the experts' boxes: 0 no overlap, 1 identical.",
    higher_is_better=True,
    needs=Needs.REGION,
    reference="Wang et al. 2017, CVPR (ChestX-ray8)",
)
def box_iou(region: Mask, truth: Mask) -> Measured:
    """Intersection over union after each connected part of both became its tightest box; NaN without truth.

    A region is never a rectangle: against a truth of boxes its plain IoU stays below 1 however well it lies. Boxes
    that touch are one part and become the box around both. An empty region scores 0.
    """
    require_masks(region, truth)
    if not truth.any():
        return undefined(NO_TRUTH)
    shown, drawn = boxed(region), boxed(truth)
    return Measured(pixels_in(shown & drawn) / pixels_in(shown | drawn))
