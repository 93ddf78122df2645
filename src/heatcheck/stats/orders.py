"""The order of several means when not every pair is clearly apart: places with a range, and how two orders agree.

Both ranges follow from intervals of all pairwise differences that hold together: where those do, so do these
(Mogstad et al. 2024, Review of Economic Studies 91:476). They are wide where few pairs are clear, never too narrow.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from heatcheck.stats.ranks import FEW_METHODS
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.spearman import ranks

Pairs = Int[np.ndarray, " pairs"]  # in the order of `combinations`: 1 where the first is higher, −1 where it is lower


@dataclass(frozen=True, slots=True)
class Order:
    """Means, the highest first in rank, and which pairs of them are clearly apart."""

    means: Float[np.ndarray, " methods"]
    clear: Pairs  # 0 where it is not clear which of the two is higher

    def __post_init__(self) -> None:
        pairs = math.comb(len(self.means), 2)
        if len(self.clear) != pairs:
            raise ValueError(f"{len(self.means)} means have {pairs} pairs, got {len(self.clear)}")

    @property
    def places(self) -> list[Interval]:
        """The place of each mean, 1 for the highest; its range leaves room for every pair that is not clear."""
        above, below = np.zeros(len(self.means), int), np.zeros(len(self.means), int)
        for (one, other), sign in zip(combinations(range(len(self.means)), 2), self.clear.tolist(), strict=True):
            if sign:
                higher, lower = (one, other) if sign > 0 else (other, one)
                above[lower] += 1
                below[higher] += 1
        places = ranks(-self.means)
        return [
            Interval(float(place), float(1 + over), float(len(places) - under), "")
            for place, over, under in zip(places, above, below, strict=True)
        ]

    @property
    def signs(self) -> Pairs:
        """Which of each pair is higher, clearly or not; 0 where both are equal."""
        first, second = np.triu_indices(len(self.means), 1)
        return np.sign(self.means[first] - self.means[second]).astype(int)


def agreement_of_orders(one: Order, other: Order) -> Interval:
    """Kendall's τ of two orders of the same methods: concordant less discordant pairs, as a share of all pairs.

    A pair that is not clear in both orders may count either way, which is the range. Equal means count 0.
    """
    if len(one.means) != len(other.means):
        raise ValueError(f"both orders need the same methods, got {len(one.means)} and {len(other.means)}")
    if len(one.means) < 3:
        return Interval(math.nan, math.nan, math.nan, FEW_METHODS)
    pairs = len(one.clear)
    known = one.clear * other.clear
    value = float((one.signs * other.signs).sum()) / pairs
    not_clear = float((known == 0).sum()) / pairs
    middle = float(known.sum()) / pairs
    return Interval(value, middle - not_clear, middle + not_clear, "")
