"""What a map of several modalities looks like without the truth: how concentrated it is, and how far maps agree.

Both are taken on a small copy of the map, so that a fine-grained map and a coarse one can be compared.
"""

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

HOTTEST = 0.1  # of the positions
SIDE, VOLUME_SIDE = 64, 24  # the most positions along an axis of a small copy, in 2D and in 3D
ModalMap = Float[np.ndarray, "modality *space"]


def small_copy(values: Float[np.ndarray, "channel *space"], modalities: int) -> ModalMap:
    """The map's means over blocks, on at most 64 × 64 or 24 × 24 × 24 positions; one channel stands for all."""
    most = SIDE if values.ndim == 3 else VOLUME_SIDE
    for axis in range(1, values.ndim):
        side = values.shape[axis]
        if side > most:
            starts = np.arange(most) * side // most
            shape = [1] * values.ndim
            shape[axis] = most
            lengths = np.diff(np.append(starts, side)).reshape(shape)
            values = np.add.reduceat(values, starts, axis) / lengths
    return np.asarray(np.broadcast_to(values, (modalities, *values.shape[1:])), np.float64)


def concentration(small: ModalMap) -> float:
    """The share of the heat that the hottest tenth of the positions of all modalities holds.

    0.1 is a map without any hot spot, such as an empty one; 1 has all its heat there.
    """
    heat = np.sort(np.maximum(small, 0).ravel())[::-1]
    total = float(heat.sum())
    return float(heat[: max(1, round(HOTTEST * heat.size))].sum()) / total if total > 0 else HOTTEST


def agreements(maps: Mapping[str, ModalMap]) -> dict[str, float]:
    """For each method, the mean rank correlation (Spearman) of its map with those of the others.

    A map that is the same everywhere has no order and agrees with none (0); one method alone has nobody to agree with.
    """
    if len(maps) < 2:
        return dict.fromkeys(maps, math.nan)
    ranks = np.stack([rankdata(small.ravel()) for small in maps.values()])
    ranks -= ranks.mean(1, keepdims=True)
    norms = np.linalg.norm(ranks, axis=1, keepdims=True)
    units = np.divide(ranks, norms, out=np.zeros_like(ranks), where=norms > 0)
    alike = units @ units.T
    np.fill_diagonal(alike, 0.0)
    return dict(zip(maps, (alike.sum(1) / (len(maps) - 1)).tolist(), strict=True))
