"""Whether a multi-modal map reflects the importance of the modalities, and how much of it lies in the lesion."""

import math

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import Measured
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.grids import require_modalities
from heatcheck.metrics.modality.msfi import ByModality, ModalitySums
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import NO_RELEVANCE, NO_TRUTH, undefined

UNINFORMATIVE = "uninformative by construction: the method makes one map for all modalities"
SAME_IMPORTANCE = "every modality has the same importance"
UNKNOWN_IMPORTANCE = "the modalities' importance is not known"
SAME_SUMS = "the map has the same heat in every modality"
NO_MAP_HERE = "the map is 0 in this modality"
ROUNDING = 1e-6  # relative to the median: values this near count as equal to it
_JIN = "Jin et al. 2021, arXiv:2107.05047"
study_metric(
    "mi_correlation",
    label="Modality correlation",
    summary="Do the modalities that count get the heat? Kendall’s τ between the modalities’ importances for the "
    "network and the sums of their heat, case by case: 1 is the same order, 0 none, −1 the reverse (the MI "
    "correlation of Jin et al.).",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "lesion_share",
    label="Share in the lesion",
    summary="The share of all heat, over all modalities, that lies inside the lesion.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
    unit="share",
)
study_metric(
    "median_iou",
    label="Overlap at the median (IoU)",
    summary="The overlap of the lesion with the hotter half of a map (from the median of its values that are not 0 "
    "on), over all modalities: 1 is a perfect match.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "modality_sum",
    label="Share of the modality",
    summary="Which share of the whole map lies in one modality.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "inside_share",
    label="Share in the modality's lesion",
    summary="Which share of one modality's map lies inside the lesion as that modality shows it.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)


def mi_correlation(importance: ByModality, sums: ByModality) -> Measured:
    """Kendall's τ-b of the modalities' importance and their share of the map; NaN if either is constant.

    (concordant − discordant pairs) / √(pairs untied in one × pairs untied in the other).
    """
    if np.isnan(importance).any():
        return undefined(UNKNOWN_IMPORTANCE)
    # the sign of the difference of each pair, 0 for ties: products of signs count concordant less discordant pairs
    x, y = (np.sign(values[:, None] - values)[np.triu_indices(len(values), 1)] for values in (importance, sums))
    if not x.any():
        return undefined(SAME_IMPORTANCE)
    if not y.any():
        return undefined(SAME_SUMS if sums.any() else NO_RELEVANCE)
    return Measured(float(x @ y) / math.sqrt(float(x @ x) * float(y @ y)))


def lesion_share(sums: ByModality, inside: ByModality) -> Measured:
    """The share of the map that lies inside the masks; NaN for a map that is 0 everywhere."""
    total = float(sums.sum())
    return Measured(float(inside.sum()) / total) if total > 0 else undefined(NO_RELEVANCE)


def modality_sum(sums: ByModality) -> tuple[Measured, ...]:
    """The share of the map that lies in each modality; NaN for a map that is 0 everywhere."""
    total = float(sums.sum())
    return tuple(Measured(float(part) / total) if total > 0 else undefined(NO_RELEVANCE) for part in sums)


def inside_share(sums: ByModality, inside: ByModality) -> tuple[Measured, ...]:
    """The share of each modality's map that lies inside its mask; NaN where that map is 0 everywhere."""
    pairs = zip(inside.tolist(), sums.tolist(), strict=True)
    return tuple(Measured(part / total) if total > 0 else undefined(NO_MAP_HERE) for part, total in pairs)


def median_iou(values: Float[np.ndarray, "channel *space"], masks: Bool[np.ndarray, "modality *space"]) -> Measured:
    """Intersection over union of the masks and the region at or above the median of the map's positive values.

    All modalities together; a single channel serves all of them. The region includes the median itself, up to rounding:
    otherwise a map with one positive value, such as the mask, would have no region. A map that is 0 everywhere scores
    0. NaN if all masks are empty.
    """
    require_modalities(values, masks)
    lesion = pixels_in(masks)
    if not lesion:
        return undefined(NO_TRUTH)
    positive = values[values > 0]
    if not len(positive):
        return Measured(0.0)
    region = values >= float(np.median(positive)) * (1 - ROUNDING)
    shared = pixels_in(region & masks)
    region_size = pixels_in(region) * (len(masks) // len(values))  # a single channel counts once per modality
    return Measured(shared / (lesion + region_size - shared))


def uniform_sums(head: Bool[np.ndarray, "*space"], masks: Bool[np.ndarray, "modality *space"]) -> ModalitySums:
    """The sums of the floor: a map that is 1 on the whole head in every modality.

    There may be one head for all modalities or one per modality.
    """
    heads = np.broadcast_to(head, masks.shape)
    sums = [pixels_in(in_head) for in_head in heads]
    inside = [pixels_in(in_head & mask) for in_head, mask in zip(heads, masks, strict=True)]
    return ModalitySums(np.array(sums, float), np.array(inside, float))
