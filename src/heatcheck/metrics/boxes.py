"""Overlap of boxes, for a truth that was drawn as boxes."""

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
    """Intersection over union after replacing each connected part of both by its bounding box; NaN without truth.

    A region is hardly ever a rectangle, so that its plain IoU with a truth of boxes stays below 1 however well it fits.
    Boxes that touch are one part and become the box around both. An empty region scores 0.
    """
    require_masks(region, truth)
    if not truth.any():
        return undefined(NO_TRUTH)
    region_boxes, truth_boxes = boxed(region), boxed(truth)
    return Measured(pixels_in(region_boxes & truth_boxes) / pixels_in(region_boxes | truth_boxes))
