"""The bootstrap of the CheXlocalize paper, draw for draw, for comparison with its tables.

It resamples images, not patients, and reports the mean of the replicates; `stats.resampling.bootstrap` does neither.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heatcheck.stats.ratios import ratio

DRAWS = 1000
LOWER, UPPER = 24, 974  # positions of the interval's ends among the sorted replicates
DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """One row of the paper's summary: the interval and the mean of the replicates, rounded."""

    lower: float
    mean: float
    upper: float


@dataclass(frozen=True, slots=True)
class Decrease:
    """One row of the paper's table of decreases from the human readers to the maps; the interval is in per cent."""

    human: float
    saliency: float
    percent: float
    lower: float
    upper: float


def replicates(values: Float[np.ndarray, "images findings"]) -> Float[np.ndarray, "draws findings"]:
    """The mean of each finding over its defined values in each draw of images; all findings share the draws.

    The images must be sorted by id: the paper draws positions in that order.
    """
    if not len(values):
        return np.full((DRAWS, values.shape[1]), np.nan)
    # the paper's generator and seed; nothing else may use a legacy generator
    generator = np.random.RandomState(0)
    defined = ~np.isnan(values)
    filled = np.hstack([np.where(defined, values, 0.0), defined])
    totals = np.empty((DRAWS, filled.shape[1]))
    for draw in range(DRAWS):  # one at a time: all draws of many images would not fit into memory
        drawn = generator.randint(0, len(values), len(values))
        totals[draw] = np.bincount(drawn, minlength=len(values)) @ filled
    return ratio(*np.hsplit(totals, 2))


def summaries(drawn: Float[np.ndarray, "draws findings"]) -> tuple[Summary, ...]:
    """The interval and the mean of each finding's replicates; undefined replicates sort last."""
    ordered = np.sort(drawn, axis=0)
    return tuple(
        Summary(*(round(float(v), DECIMALS) for v in (column[LOWER], _mean(column), column[UPPER])))
        for column in ordered.T
    )


def decreases(
    human: Float[np.ndarray, "draws findings"], saliency: Float[np.ndarray, "draws findings"]
) -> tuple[Decrease, ...]:
    """By how much each finding's mean falls short of the human readers', in per cent of theirs."""
    ordered = np.sort(np.round(_shortfall(human, saliency), DECIMALS), axis=0)
    columns = zip(human.T, saliency.T, ordered.T, strict=True)
    return tuple(_decrease(_mean(readers), _mean(maps), shortfalls) for readers, maps, shortfalls in columns)


def average_decrease(
    rows: tuple[Decrease, ...],
    human: Float[np.ndarray, "draws findings"],
    saliency: Float[np.ndarray, "draws findings"],
) -> Decrease:
    """The row over all findings: as in the paper, means are rounded first, and shortfalls are not."""
    readers, maps = (
        round(float(np.mean(means)), DECIMALS)
        for means in ([row.human for row in rows], [row.saliency for row in rows])
    )
    return _decrease(readers, maps, np.sort(_shortfall(_row_means(human), _row_means(saliency))))


def _decrease(readers: float, maps: float, shortfalls: Float[np.ndarray, " draws"]) -> Decrease:
    """The row of two means, with the interval from sorted shortfalls."""
    percent = round((readers - maps) / readers * 100, DECIMALS) if readers else np.nan
    low, high = (round(float(shortfalls[position]) * 100, DECIMALS) for position in (LOWER, UPPER))
    return Decrease(readers, maps, percent, low, high)


def _shortfall(human: np.ndarray, saliency: np.ndarray) -> np.ndarray:
    # as in the paper: where the readers score 0, a draw is minus infinity and sorts first; 0 / 0 is NaN and sorts last
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((human - saliency) / human)


def _row_means(drawn: np.ndarray) -> np.ndarray:
    defined = ~np.isnan(drawn)
    return ratio(np.where(defined, drawn, 0).sum(1), defined.sum(1))


def _mean(column: np.ndarray) -> float:
    defined = column[~np.isnan(column)]
    return float(defined.mean()) if len(defined) else float("nan")
