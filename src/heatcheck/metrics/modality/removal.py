"""Faithfulness: whether a model goes wrong sooner when the voxels that a map calls important are removed first.

The area under the curve of correct answers while the most important voxels are removed step by step, compared with the
removal of as many random voxels. No model is needed here: the caller removes the voxels of each step and reports
whether the model was right.
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
    study="modality",
    label="Right while voxels go",
    summary="How long the model stays right while the voxels that the map calls most important are taken away: the "
    "lower, the more it needed them.",
    higher_is_better=False,
    needs=Needs.MODALITIES,
    reference=_JIN,
)
study_metric(
    "delta_aupc",
    study="modality",
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
    """The threshold at or above which voxels are removed at each step, and the share of the head removed by then."""

    thresholds: Float[np.ndarray, " steps"]
    shares: Curve  # the first is 0, before any step

    def voxels(self, values: ModalMap, head: Mask) -> Iterator[Voxels]:
        """The voxels removed after each step; a single channel serves all modalities."""
        for threshold in self.thresholds:
            yield head & (values >= threshold)


def removal(values: ModalMap, head: Mask, steps: int = STEPS) -> Removal:
    """The steps that remove a map's positive voxels inside the head, highest first and as many in each step.

    Thresholds are quantiles of the positive values. Voxels of equal value are removed together, so a map with few
    values may lose more in a step. Background is ignored: there is nothing to remove.
    """
    if values.shape[1:] != head.shape:
        raise ValueError(f"map and head must share one grid, got {values.shape[1:]} and {head.shape}")
    inside = values[:, head]
    positive = inside[inside > 0]
    if not positive.size:
        return Removal(np.full(steps, np.inf), np.zeros(steps + 1))
    # index of the lowest value removed at each step; 1e-9 keeps rounding from adding a voxel to a whole number
    lowest = positive.size - np.ceil(np.arange(1, steps + 1) * (positive.size / steps) - 1e-9).astype(int)
    ordered = np.sort(positive)
    thresholds = ordered[np.maximum(lowest, 0)]
    removed = positive.size - np.searchsorted(ordered, thresholds, side="left")
    return Removal(thresholds, np.concatenate([[0], removed / inside.size]))


def random_shares(steps: int = STEPS) -> Curve:
    """The shares of the head's voxels at which random orders are tested: closer together near 0.

    Most maps call few voxels important, so methods are compared at the first few per cent.
    """
    return (np.arange(steps + 1) / steps) ** 2


def random_voxels(head: Mask, channels: int, shares: Curve, generator: np.random.Generator) -> Iterator[Voxels]:
    """The voxels of the head removed at each share but the first, in one random order over all channels."""
    drawn = generator.random((channels, *head.shape), np.float32)
    for share in shares[1:]:
        yield head & (drawn < share)


def aupc(right: Curve) -> Measured:
    """The area under the curve, by trapezoids over steps of equal width: 1 if the model is right to the end.

    `right` also has a value before the first step.
    """
    if len(right) < 2:
        raise ValueError(f"a curve needs at least two points, got {len(right)}")
    if np.isnan(right).any():
        return undefined(NO_ANSWER)
    return Measured(float(np.mean((right[1:] + right[:-1]) / 2)))


def delta_aupc(right: Curve, gone: Curve, random_right: Curve, shares: Curve) -> Measured:
    """The area of random orders less that of the map; 0 for a map without a positive voxel.

    `gone` are the shares removed at the map's steps, and `random_right` is the mean over random orders at `shares`. It
    is interpolated linearly at the shares of the map's steps, so that both areas refer to equally many voxels: a map
    with few positive voxels does not look unfaithful only because little was removed.
    """
    if len(right) != len(gone):
        raise ValueError(f"every step needs the share removed, got {len(right)} steps and {len(gone)} shares")
    by_map, by_chance = aupc(right), aupc(np.interp(gone, shares, random_right))
    if by_map.reason or by_chance.reason:
        return undefined(NO_ANSWER)
    return Measured(by_chance.value - by_map.value)
