"""The bootstrap of the CheXlocalize paper, draw for draw: for those who must compare with it.

Images are drawn, not patients, and the reported value is the mean of the replicates; `stats.resampling.bootstrap` does
neither.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

DRAWS = 1000
LOWER, UPPER = 24, 974  # places of the interval's ends among the sorted replicates
DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """One row of the paper's summary: the ends of the interval and the mean of the replicates, rounded."""

    lower: float
    mean: float
    upper: float


@dataclass(frozen=True, slots=True)
class Decrease:
    """One row of the paper's percentage decrease from the human readers; the interval is in per cent."""

    human: float
    saliency: float
    percent: float
    lower: float
    upper: float


def replicates(values: Float[np.ndarray, "images findings"]) -> Float[np.ndarray, "draws findings"]:
    """The mean of each finding over its defined values on each draw; one draw serves all findings.

    The images must be sorted by id: the draws are positions in that order.
    """
    if not len(values):
        return np.full((DRAWS, values.shape[1]), np.nan)
    # the paper's generator and seed; nothing else may use a global or legacy one
    generator = np.random.RandomState(0)
    defined = ~np.isnan(values)
    filled = np.hstack([np.where(defined, values, 0.0), defined])
    found = np.empty((DRAWS, filled.shape[1]))
    for draw in range(DRAWS):  # one at a time: all draws of many images would not fit into memory
        drawn = generator.randint(0, len(values), len(values))
        found[draw] = np.bincount(drawn, minlength=len(values)) @ filled
    sums, counts = np.hsplit(found, 2)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


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
    """How far each finding's mean falls short of the readers', in per cent of theirs."""
    ratios = np.round(_shortfall(human, saliency), DECIMALS)
    ordered = np.sort(ratios, axis=0)
    rows = []
    for column in range(human.shape[1]):
        ours, theirs = _mean(saliency[:, column]), _mean(human[:, column])
        percent = round((theirs - ours) / theirs * 100, DECIMALS) if theirs else np.nan
        ends = (round(float(ordered[place, column]) * 100, DECIMALS) for place in (LOWER, UPPER))
        rows.append(Decrease(theirs, ours, percent, *ends))
    return tuple(rows)


def average_decrease(
    rows: tuple[Decrease, ...],
    human: Float[np.ndarray, "draws findings"],
    saliency: Float[np.ndarray, "draws findings"],
) -> Decrease:
    """The row over all findings, whose rounding differs from the others'."""
    theirs = round(float(np.mean([row.human for row in rows])), DECIMALS)
    ours = round(float(np.mean([row.saliency for row in rows])), DECIMALS)
    percent = round((theirs - ours) / theirs * 100, DECIMALS) if theirs else np.nan
    ordered = np.sort(_shortfall(_row_means(human), _row_means(saliency)))
    ends = (round(float(ordered[place]) * 100, DECIMALS) for place in (LOWER, UPPER))
    return Decrease(theirs, ours, percent, *ends)


def _shortfall(human: np.ndarray, saliency: np.ndarray) -> np.ndarray:
    # a draw on which the readers score 0 is minus infinity in the paper, and sorts first; 0 by 0 sorts last
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((human - saliency) / human)


def _row_means(drawn: np.ndarray) -> np.ndarray:
    defined = ~np.isnan(drawn)
    counts = defined.sum(1)
    return np.divide(np.where(defined, drawn, 0).sum(1), counts, out=np.full(len(drawn), np.nan), where=counts > 0)


def _mean(column: np.ndarray) -> float:
    defined = column[~np.isnan(column)]
    return float(defined.mean()) if len(defined) else float("nan")
