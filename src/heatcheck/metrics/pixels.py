"""Pixel by pixel, as a diagnostic test: right and wrong pixels of a region, and the rates of one case.

The counts are registered so that rates over many images can be formed from their sums.
"""

from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.grids import require_masks
from heatcheck.metrics.registry import Needs, metric, pixel_count
from heatcheck.metrics.undefined import NO_REGION, NO_TRUTH, NOTHING_OUTSIDE, undefined

_SAPORTA = "Saporta et al. 2022, Nature Machine Intelligence 4:867"


@pixel_count(
    "true_positive_pixels",
    label="TP pixels",
    summary="Highlighted pixels inside the area the experts drew.",
    higher_is_better=True,
    reference=_SAPORTA,
)
def true_positive_pixels(region: Mask, truth: Mask) -> Measured:
    """How many pixels lie in the region and in the truth."""
    require_masks(region, truth)
    return Measured(float(pixels_in(region & truth)))


@pixel_count(
    "false_positive_pixels",
    label="FP pixels",
    summary="Highlighted pixels outside the area the experts drew.",
    higher_is_better=False,
    reference=_SAPORTA,
)
def false_positive_pixels(region: Mask, truth: Mask) -> Measured:
    """How many pixels lie in the region only."""
    require_masks(region, truth)
    return Measured(float(pixels_in(region & ~truth)))


@pixel_count(
    "false_negative_pixels",
    label="FN pixels",
    summary="Pixels of the experts' area that are not highlighted.",
    higher_is_better=False,
    reference=_SAPORTA,
)
def false_negative_pixels(region: Mask, truth: Mask) -> Measured:
    """How many pixels lie in the truth only."""
    require_masks(region, truth)
    return Measured(float(pixels_in(truth & ~region)))


@pixel_count(
    "true_negative_pixels",
    label="TN pixels",
    summary="Pixels outside the experts' area that are not highlighted.",
    higher_is_better=True,
    reference=_SAPORTA,
)
def true_negative_pixels(region: Mask, truth: Mask) -> Measured:
    """How many pixels lie in neither."""
    require_masks(region, truth)
    return Measured(float(region.size - pixels_in(region | truth)))


@metric(
    "precision",
    label="Precision",
    summary="Which share of the highlighted area lies inside the area the experts drew.",
    higher_is_better=True,
    needs=Needs.REGION,
    reference=_SAPORTA,
)
def precision(region: Mask, truth: Mask) -> Measured:
    """The share of the region that lies in the truth; NaN for an empty region."""
    require_masks(region, truth)
    return _share(pixels_in(region & truth), pixels_in(region), NO_REGION)


@metric(
    "recall",
    label="Recall",
    summary="Which share of the area the experts drew is highlighted.",
    higher_is_better=True,
    needs=Needs.REGION,
    reference=_SAPORTA,
)
def recall(region: Mask, truth: Mask) -> Measured:
    """The share of the truth that lies in the region; NaN without truth."""
    require_masks(region, truth)
    return _share(pixels_in(region & truth), pixels_in(truth), NO_TRUTH)


@metric(
    "specificity",
    label="Specificity",
    summary="Which share of the image outside the experts' area is left unmarked.",
    higher_is_better=True,
    needs=Needs.REGION,
    reference=_SAPORTA,
)
def specificity(region: Mask, truth: Mask) -> Measured:
    """The share of the truth's outside that the region leaves free; NaN if there is no outside."""
    require_masks(region, truth)
    outside = truth.size - pixels_in(truth)
    return _share(region.size - pixels_in(region | truth), outside, NOTHING_OUTSIDE)


def _share(part: int, whole: int, reason: str) -> Measured:
    return Measured(part / whole) if whole else undefined(reason)
