"""Modality-specific feature importance: whether a map finds the feature in each modality, the important ones above all.

A map has a plane or volume for each modality, or one for all. Only its positive values count.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import undefined

NO_WEIGHTS = "the modalities' importance is the same for all, or not known"
NONE_IMPORTANT = "no modality has an importance above 0"
WeightRule = Literal["min_max", "positive"]
ByModality = Float[np.ndarray, " modality"]
study_metric(
    "msfi",
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
    """How much of a map lies in each modality, and how much of that inside the modality's mask."""

    sums: ByModality
    inside: ByModality


def sums_of(values: Float[np.ndarray, "channel *space"], masks: Bool[np.ndarray, "modality *space"]) -> ModalitySums:
    """The positive sums of a map in each modality, and inside its mask; a single channel stands for all modalities."""
    if masks.dtype != np.bool_:
        raise ValueError(f"the lesions must be masks of booleans, got {masks.dtype}; compare them with 0 first")
    if values.shape[1:] != masks.shape[1:] or len(values) not in {1, len(masks)}:
        raise ValueError(
            f"map and lesions must share one grid, with one channel or one a modality, got {values.shape} and "
            f"{masks.shape}; resize the map to the image first"
        )
    planes = [_positive(channel) for channel in values]
    totals = [float(plane.sum(dtype=np.float64)) for plane in planes]
    if not np.isfinite(totals).all():
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; look at the method that made it")
    shared = len(planes) == 1
    inside = [planes[0 if shared else m][mask].sum(dtype=np.float64) for m, mask in enumerate(masks)]
    return ModalitySums(np.array(totals * len(masks) if shared else totals), np.array(inside, float))


def _positive(channel: Float[np.ndarray, "*space"]) -> Float[np.ndarray, "*space"]:
    low = float(channel.min(initial=0))
    if low == -np.inf:
        raise ValueError("a map must hold finite numbers only, got minus infinity; look at the method that made it")
    return channel if low >= 0 else np.maximum(channel, 0)  # NaN is not above 0, so it stays and is found


def weights_of(importance: ByModality, rule: WeightRule) -> ByModality:
    """How much each modality weighs in MSFI, given how important it is to the model.

    `min_max` stretches the importances between 0 and 1, as published: the least important modality then weighs 0
    however important it is. `positive` takes them as they are, negative ones as 0. All NaN where every importance is
    the same or one is not known; all 0 where none is above 0 and the rule is `positive`.
    """
    low, high = importance.min(), importance.max()
    if not high > low:  # NaN, too
        return np.full(importance.shape, np.nan)
    return np.asarray((importance - low) / (high - low) if rule == "min_max" else np.maximum(importance, 0))


def msfi(sums: ByModality, inside: ByModality, weights: ByModality) -> Measured:
    """The weighted mean over modalities of the share of the map that lies inside the mask; NaN without weights.

    Σ w·(inside / sum) / Σ w. A modality in which the map is 0 everywhere has share 0: it found nothing there. How the
    map is shared out between modalities does not matter; `mi_correlation` tells that.
    """
    if np.isnan(weights).any():
        return undefined(NO_WEIGHTS)
    if (weights < 0).any():
        raise ValueError(f"weights must not be negative, got {weights.min():g}; make them with weights_of")
    if not weights.any():
        return undefined(NONE_IMPORTANT)
    shares = np.divide(inside, sums, out=np.zeros(sums.shape), where=sums > 0)
    return Measured(float(weights @ shares / weights.sum()))
