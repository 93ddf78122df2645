"""What a map looks like without the truth: how concentrated its heat is, and how far other methods' maps agree with it.

Both are taken on a small copy of the map, so that a fine-grained map and a coarse one can be compared. A small copy of
several modalities has one more axis, the first.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from scipy.stats import rankdata
from torch.nn import functional

from heatcheck.core.records import Map
from heatcheck.metrics.undefined import is_empty

CONCENTRATION, AGREEMENT = "concentration", "agreement"
HOTTEST = 0.1  # of the positions
_SIDE, _VOLUME_SIDE = 64, 24  # the most positions along an axis of a small copy, in 2D and in 3D


def small_copy(values: Map) -> Map:
    """The map's means over blocks, on a grid of at most 64 × 64, in a volume 24 × 24 × 24."""
    most = _SIDE if values.ndim == 2 else _VOLUME_SIDE
    sides = [min(side, most) for side in values.shape]
    grid = torch.from_numpy(np.ascontiguousarray(values, np.float32))[None, None]
    if values.ndim == 2:
        pooled = functional.adaptive_avg_pool2d(grid, (sides[0], sides[1]))
    else:
        pooled = functional.adaptive_avg_pool3d(grid, (sides[0], sides[1], sides[2]))
    small: Map = pooled[0, 0].numpy()
    return small


def concentration(small: Map) -> float:
    """The share of the heat above the map's minimum that the hottest tenth of the positions holds.

    0.1 is a map without any hot spot, such as an empty one; 1 has all its heat there.
    """
    if is_empty(small):
        return HOTTEST
    heat = np.sort((small - small.min()).ravel().astype(np.float64))[::-1]
    count = max(1, round(HOTTEST * heat.size))
    return float(heat[:count].sum() / heat.sum())


def agreements(maps: Mapping[str, Map]) -> dict[str, float]:
    """For each method, the mean rank correlation (Spearman) of its map with those of the others, not below 0.

    An empty map has no order and agrees with none (0); one method alone has nobody to agree with (NaN).
    """
    if len(maps) < 2:
        return dict.fromkeys(maps, math.nan)
    ranks = np.stack([rankdata(small.ravel()) for small in maps.values()])
    ranks -= ranks.mean(1, keepdims=True)
    norms = np.linalg.norm(ranks, axis=1)
    flat = np.array([is_empty(small) for small in maps.values()]) | (norms == 0)
    units = np.where(flat[:, None], 0.0, ranks / np.where(norms > 0, norms, 1.0)[:, None])
    similar = np.maximum(units @ units.T, 0.0)
    np.fill_diagonal(similar, 0.0)
    return dict(zip(maps, np.minimum(similar.sum(1) / (len(maps) - 1), 1.0).tolist(), strict=True))
