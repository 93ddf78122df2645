"""The best threshold or cutoff on validation data: curves over a grid, and their first maximum."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.stats.ratios import ratio

CUTOFFS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # the grid on which a probability cutoff is tuned
Keeps = Literal["from the cutoff", "above the cutoff"]


@dataclass(frozen=True, slots=True)
class FullSlice:
    """One finding on every case: the overlap of map and truth, the probability, and whether there is a truth."""

    ious: Float[np.ndarray, " cases"]  # NaN where map and truth are both empty
    probabilities: Float[np.ndarray, " cases"]
    marked: Bool[np.ndarray, " cases"]


def mean_curve(values: Float[np.ndarray, "cases grid"]) -> Float[np.ndarray, " grid"]:
    """The mean of each column over its defined values; NaN where it has none."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(0), defined.sum(0))


def cutoff_curve(cases: FullSlice, cutoffs: Sequence[float], keeps: Keeps) -> Float[np.ndarray, " cutoffs"]:
    """The mean overlap for each cutoff, if regions of cases with a lower probability are emptied.

    An emptied region scores 0 where there is a truth, and is undefined where there is none: nothing was missed.
    """
    emptied = np.where(cases.marked, 0.0, np.nan)
    grid = np.asarray(cutoffs, float)
    probabilities = cases.probabilities[:, None]
    kept = probabilities >= grid if keeps == "from the cutoff" else probabilities > grid
    return mean_curve(np.where(kept, cases.ious[:, None], emptied[:, None]))


def first_best(grid: Sequence[float], curve: Float[np.ndarray, " grid"]) -> float:
    """The grid value at the first maximum of the curve; NaN if the curve is undefined everywhere."""
    return float(grid[int(np.nanargmax(curve))]) if np.isfinite(curve).any() else float("nan")
