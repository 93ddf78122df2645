"""Whether a model relies on what a map calls salient: is it still right when those voxels are taken away first?

The area under the curve of being right, as the most salient voxels go step by step, beside that of random voxels, of
which as many go. No model is needed here: whoever has one asks for the voxels of each step and tells how it did.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import undefined

NO_ANSWER = "the model gave no answer at some step"
STEPS = 10
RANDOM_ORDERS = 15
_JIN = "Jin et al. 2021, arXiv:2107.05047"
study_metric(
    "aupc",
    label="Right while voxels go",
    summary="How long the model stays right while the voxels that the map calls most important are taken away: the "
    "lower, the more it needed them.",
    higher_is_better=False,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "delta_aupc",
    label="Faithfulness (ΔAUPC)",
    summary="How much sooner the network goes wrong when the hottest voxels are taken away first than when random "
    "ones are: above 0, the map marks what the network uses.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
ModalMap = Float[np.ndarray, "channel *space"]
Voxels = Bool[np.ndarray, "channel *space"]
Curve = Float[np.ndarray, " points"]


@dataclass(frozen=True, slots=True)
class Removal:
    """Above which value voxels go at each step, and which share of the head's voxels is gone then."""

    thresholds: Float[np.ndarray, " steps"]
    shares: Curve  # the first is 0: nothing is gone

    def voxels(self, values: ModalMap, head: Mask) -> Iterator[Voxels]:
        """The voxels that are gone after each step; a single channel stands for all modalities."""
        for threshold in self.thresholds:
            yield head & (values >= threshold)


def removal(values: ModalMap, head: Mask, steps: int = STEPS) -> Removal:
    """The steps in which a map's positive voxels inside the head go, the highest first and as many in each.

    Thresholds are quantiles of the positive values. Voxels of one value go together: of a map of few values more may
    go in a step. Background does not count: there is nothing to take away.
    """
    if values.shape[1:] != head.shape:
        raise ValueError(f"map and head must share one grid, got {values.shape[1:]} and {head.shape}")
    inside = values[:, head]
    positive = inside[inside > 0]
    if not positive.size:
        return Removal(np.full(steps, np.inf), np.zeros(steps + 1))
    places = positive.size - np.ceil(np.arange(1, steps + 1) * (positive.size / steps) - 1e-9).astype(int)
    ordered = np.sort(positive)
    thresholds = ordered[np.maximum(places, 0)]
    gone = positive.size - np.searchsorted(ordered, thresholds, side="left")
    return Removal(thresholds, np.concatenate([[0], gone / inside.size]))


def random_shares(steps: int = STEPS) -> Curve:
    """The shares of the head's voxels at which random orders are measured: closer together near 0.

    Most maps call few voxels important, so the first per cents are where a method is compared.
    """
    return (np.arange(steps + 1) / steps) ** 2


def random_voxels(head: Mask, channels: int, shares: Curve, generator: np.random.Generator) -> Iterator[Voxels]:
    """The voxels of the head that are gone at each share but the first, in one random order over all channels."""
    drawn = generator.random((channels, *head.shape), np.float32)
    for share in shares[1:]:
        yield head & (drawn < share)


def aupc(right: Curve) -> Measured:
    """The area under the curve, by trapezoids over steps of equal width: 1 where the model is right to the end.

    `right` has a value before the first step, too.
    """
    if len(right) < 2:
        raise ValueError(f"a curve needs at least two points, got {len(right)}")
    if np.isnan(right).any():
        return undefined(NO_ANSWER)
    return Measured(float(np.mean((right[1:] + right[:-1]) / 2)))


def delta_aupc(right: Curve, gone: Curve, random_right: Curve, shares: Curve) -> Measured:
    """By how much the area of random orders exceeds the map's; 0 for a map without a positive voxel.

    `gone` are the shares of the map's own steps, and `random_right` is the mean over random orders at `shares`. It is
    read, between its points by a straight line, where as many voxels are gone as at the map's own steps: so a map of
    few voxels is not called faithless because little was taken away.
    """
    if len(right) != len(gone):
        raise ValueError(f"every step needs the share that is gone, got {len(right)} steps and {len(gone)} shares")
    own, by_chance = aupc(right), aupc(np.interp(gone, shares, random_right))
    if own.reason or by_chance.reason:
        return undefined(NO_ANSWER)
    return Measured(by_chance.value - own.value)
