"""Modality-specific feature importance: how well a map marks the lesion in each modality, weighted by importance.

A map has a plane or volume per modality, or one for all. Only its positive values count.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import Measured
from heatcheck.metrics.grids import require_modalities
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import undefined

NO_WEIGHTS = "the importance of the modalities is equal or unknown"
NONE_IMPORTANT = "no modality has an importance above 0"
WeightRule = Literal["min_max", "positive"]
ByModality = Float[np.ndarray, " modality"]
study_metric(
    "msfi",
    study="modality",
    label="MSFI",
    summary="Modality-specific feature importance: the share of a modality’s heat that lies inside the lesion, "
    "averaged over modalities by how much each counts for the network. 1 means that all heat of the "
    "modalities that count lies on the lesion. It does not see how heat is shared between modalities: the "
    "modality correlation does.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference="Jin et al. 2021, arXiv:2107.05047",
)


class ModalitySums(NamedTuple):
    """The sum of a map over each modality, and over the modality's mask."""

    sums: ByModality
    inside: ByModality


def sums_of(values: Float[np.ndarray, "channel *space"], masks: Bool[np.ndarray, "modality *space"]) -> ModalitySums:
    """The sums of a map's positive values per modality and inside its mask; a single channel serves all modalities."""
    if masks.dtype != np.bool_:
        raise ValueError(f"the lesions must be masks of booleans, got {masks.dtype}; compare them with 0 first")
    require_modalities(values, masks)
    planes = [_positive(channel) for channel in values]
    totals = [float(plane.sum(dtype=np.float64)) for plane in planes]
    if not np.isfinite(totals).all():
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; check the method that made it")
    if len(planes) == 1:
        planes, totals = planes * len(masks), totals * len(masks)
    inside = [plane[mask].sum(dtype=np.float64) for plane, mask in zip(planes, masks, strict=True)]
    return ModalitySums(np.array(totals), np.array(inside, float))


def _positive(channel: Float[np.ndarray, "*space"]) -> Float[np.ndarray, "*space"]:
    low = float(channel.min(initial=0))
    if low == -np.inf:
        raise ValueError("a map must hold finite numbers only, got minus infinity; check the method that made it")
    return channel if low >= 0 else np.maximum(channel, 0)  # NaN stays NaN, for the caller to detect


def weights_of(importance: ByModality, rule: WeightRule) -> ByModality:
    """The weight of each modality in MSFI, given its importance to the model.

    `min_max` scales the importances to the range 0 to 1, as published: the least important modality then has weight 0
    however important it is. `positive` takes them as they are, with 0 for negative ones. All NaN if the importances
    are equal or one is unknown; all 0 if none is above 0 and the rule is `positive`.
    """
    low, high = importance.min(), importance.max()
    if not high > low:  # also if one is NaN
        return np.full(importance.shape, np.nan)
    return np.asarray((importance - low) / (high - low) if rule == "min_max" else np.maximum(importance, 0))


def msfi(sums: ByModality, inside: ByModality, weights: ByModality) -> Measured:
    """The weighted mean over modalities of the share of the map that lies inside the mask; NaN without weights.

    Σ w·(inside / sum) / Σ w. A modality in which the map is 0 everywhere has share 0: it marks nothing there. How the
    map is distributed over the modalities does not matter; `mi_correlation` measures that.
    """
    if np.isnan(weights).any():
        return undefined(NO_WEIGHTS)
    if (weights < 0).any():
        raise ValueError(f"weights must not be negative, got {weights.min():g}; compute them with weights_of")
    if not weights.any():
        return undefined(NONE_IMPORTANT)
    shares = np.divide(inside, sums, out=np.zeros(sums.shape), where=sums > 0)
    return Measured(float(weights @ shares / weights.sum()))
