"""Whether a multi-modal map reflects the importance of the modalities, and how much of it lies in the lesion."""

import math
from itertools import permutations
from typing import NamedTuple

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
NO_CLEAR_PAIR = "no two modalities clearly differ in importance"
MOST_ORDERS = 8  # modalities whose orders are all tried; of more, some are drawn
UNKNOWN_IMPORTANCE = "the modalities' importance is not known"
SAME_SUMS = "the map has the same heat in every modality"
NO_MAP_HERE = "the map is 0 in this modality"
DRAWN_ORDERS = 20_000
Pairs = Float[np.ndarray, " pairs"]  # of modalities, the first with each later one, then the second
ROUNDING = 1e-6  # relative to the median: values this near count as equal to it
_JIN = "Jin et al. 2021, arXiv:2107.05047"
study_metric(
    "mi_correlation",
    study="modality",
    label="Modality correlation",
    summary="Do the modalities that count get the heat? Kendall’s τ between the modalities’ importances for the "
    "network and the sums of their heat, case by case: 1 is the same order, 0 none, −1 the reverse. Modalities whose "
    "importances do not clearly differ are tied: their heat does not matter.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference="after Jin et al. 2021, arXiv:2107.05047",
)
study_metric(
    "mi_correlation_published",
    study="modality",
    label="Modality correlation, every pair ranked",
    summary="The modality correlation as Jin et al. published it: it also ranks modalities whose importances may well "
    "be the same, so that part of it may be the order of chance.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "lesion_share",
    study="modality",
    label="Share in the lesion",
    summary="The share of all heat, over all modalities, that lies inside the lesion.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
    unit="share",
)
study_metric(
    "median_iou",
    study="modality",
    label="Overlap at the median (IoU)",
    summary="The overlap of the lesion with the hotter half of a map (from the median of its values that are not 0 "
    "on), over all modalities: 1 is a perfect match.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "modality_sum",
    study="modality",
    label="Share of the modality",
    summary="Which share of the whole map lies in one modality.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "inside_share",
    study="modality",
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
    signs, heat = _signs(importance), _signs(sums)
    if not signs.any():
        return undefined(SAME_IMPORTANCE)
    if not heat.any():
        return undefined(SAME_SUMS if sums.any() else NO_RELEVANCE)
    return Measured(float(signs @ heat) / math.sqrt(float(signs @ signs) * float(heat @ heat)))


def clear_correlation(signs: Pairs, sums: ByModality) -> Measured:
    """The concordant less the discordant ones of the pairs with a clear order, divided by their number.

    `signs` is 1 where the first of a pair is more important, −1 where it is less, 0 where that is not clear: the heat
    of such a pair does not matter. NaN if no pair is clear, or all modalities have the same heat. Where all are clear
    and have different heat, this is Kendall's τ (else Somers' d); it is 1 where every clear pair is in order.
    """
    if not signs.any():
        return undefined(NO_CLEAR_PAIR)
    heat = _signs(sums)
    if not heat.any():
        return undefined(SAME_SUMS if sums.any() else NO_RELEVANCE)
    return Measured(float(signs @ heat) / float(signs @ signs))


def _signs(values: ByModality) -> Pairs:
    # products of the signs of two such lists count concordant less discordant pairs
    return np.asarray(np.sign(values[:, None] - values)[np.triu_indices(len(values), 1)])


class ChanceOfOrder(NamedTuple):
    """What a fixed liking for modalities, whatever the network uses, gets by chance: shares of all orders of heat."""

    above_zero: float  # that agree in more of the clear pairs than they contradict
    all_pairs: float  # that agree in every clear pair
    orders: int


def chance_of_order(signs: Pairs, modalities: int, generator: np.random.Generator) -> ChanceOfOrder:
    """How often an order of the modalities agrees with the clear pairs by chance; NaN where no pair is clear.

    With four modalities of clear order, 9 of 24 orders (37.5 %) have a τ above 0, and one has them all right.
    """
    orders = (
        np.array(list(permutations(range(modalities))), float)
        if modalities <= MOST_ORDERS
        else generator.permuted(np.tile(np.arange(modalities, dtype=float), (DRAWN_ORDERS, 1)), axis=1)
    )
    if not signs.any():
        return ChanceOfOrder(math.nan, math.nan, len(orders))
    first, second = np.triu_indices(modalities, 1)
    agreement = np.sign(orders[:, first] - orders[:, second]) @ signs
    return ChanceOfOrder(float((agreement > 0).mean()), float((agreement == np.abs(signs).sum()).mean()), len(orders))


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
