"""A region as a diagnostic test of every pixel: counts of right and wrong pixels, and the rates of one case.

The counts are registered so that rates over many images can be computed from their sums.
"""

from heatcheck.core.records import Measured
from heatcheck.metrics.counting import Overlap
from heatcheck.metrics.registry import region_metric
from heatcheck.metrics.undefined import NO_REGION, NO_TRUTH, NOTHING_OUTSIDE, undefined

_SAPORTA = "Saporta et al. 2022, Nature Machine Intelligence 4:867"


@region_metric(
    "true_positive_pixels",
    label="TP pixels",
    summary="Highlighted pixels inside the area the experts drew.",
    higher_is_better=True,
    reference=_SAPORTA,
    is_count=True,
)
def true_positive_pixels(shared: Overlap) -> Measured:
    """The number of pixels in both region and truth."""
    return Measured(float(shared.inside))


@region_metric(
    "false_positive_pixels",
    label="FP pixels",
    summary="Highlighted pixels outside the area the experts drew.",
    higher_is_better=False,
    reference=_SAPORTA,
    is_count=True,
)
def false_positive_pixels(shared: Overlap) -> Measured:
    """The number of pixels in the region only."""
    return Measured(float(shared.region - shared.inside))


@region_metric(
    "false_negative_pixels",
    label="FN pixels",
    summary="Pixels of the experts' area that are not highlighted.",
    higher_is_better=False,
    reference=_SAPORTA,
    is_count=True,
)
def false_negative_pixels(shared: Overlap) -> Measured:
    """The number of pixels in the truth only."""
    return Measured(float(shared.truth - shared.inside))


@region_metric(
    "true_negative_pixels",
    label="TN pixels",
    summary="Pixels outside the experts' area that are not highlighted.",
    higher_is_better=True,
    reference=_SAPORTA,
    is_count=True,
)
def true_negative_pixels(shared: Overlap) -> Measured:
    """The number of pixels in neither region nor truth."""
    return Measured(float(shared.grid - shared.either))


@region_metric(
    "precision",
    label="Pixel precision",
    summary="The share of the region’s pixels that lie inside the outline.",
    higher_is_better=True,
    reference=_SAPORTA,
    unit="share",
)
def precision(shared: Overlap) -> Measured:
    """The share of the region that lies in the truth; NaN for an empty region."""
    return _share(shared.inside, shared.region, NO_REGION)


@region_metric(
    "recall",
    label="Pixel sensitivity",
    summary="The share of the outline’s pixels that the region covers.",
    higher_is_better=True,
    reference=_SAPORTA,
    unit="share",
)
def recall(shared: Overlap) -> Measured:
    """The share of the truth that lies in the region; NaN without truth."""
    return _share(shared.inside, shared.truth, NO_TRUTH)


@region_metric(
    "specificity",
    label="Pixel specificity",
    summary="The share of pixels outside the outline that the region spares.",
    higher_is_better=True,
    reference=_SAPORTA,
    unit="share",
)
def specificity(shared: Overlap) -> Measured:
    """The share of the pixels outside the truth that the region leaves out; NaN if the truth fills the image."""
    return _share(shared.grid - shared.either, shared.grid - shared.truth, NOTHING_OUTSIDE)


def _share(part: int, total: int, reason: str) -> Measured:
    return Measured(part / total) if total else undefined(reason)
