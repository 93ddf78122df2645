"""Means of scores that weigh their parts by something that was estimated from the same patients.

The modality correlation and MSFI of a case are such scores: weighted sums of parts (the pairs of modalities, or the
shares of heat inside the lesions), with weights that follow from the importances of the modalities to the network. The
importances come from the same patients. Here patients are drawn, the importances move with them, and the weights are
computed anew in every draw. With weights that never change, this is the studentised bootstrap of a mean.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.resampling.bca import NO_PATIENT, NO_VALUE, ONE_PATIENT, Interval
from heatcheck.stats.resampling.studentised import (
    FEW_PATIENTS,
    FEWEST_PATIENTS,
    LEVEL,
    SimultaneousIntervals,
    draw_limits,
    two_sided_p,
)

_ROUNDING = 1e-12  # relative size below which a difference is rounding


@dataclass(frozen=True, slots=True)
class PartSums:
    """The sums of one score's parts over the cases of each patient, and the number of these cases."""

    sums: Float[np.ndarray, "patients parts"]
    counts: Float[np.ndarray, " patients"]  # 0 for a patient without a defined score


@dataclass(frozen=True, slots=True)
class DrawnWeights:
    """The weights of the parts for each network, and in every draw; and how often each patient is drawn."""

    weights: Float[np.ndarray, "networks parts"]
    drawn: Float[np.ndarray, "draws networks parts"]  # NaN where a draw has no weights
    times: Float[np.ndarray, "draws patients"]
    networks: Int[np.ndarray, " patients"]  # the network that a patient's cases belong to
    cancel: bool = True  # whether errors of the weights of several networks cancel in a mean


def as_deviations(weights: DrawnWeights) -> DrawnWeights:
    """The weights of scores that are known as such: 1 for the score, and for its parts what a draw adds to a weight."""
    networks, draws = len(weights.weights), len(weights.drawn)
    fixed = np.hstack([np.ones((networks, 1)), np.zeros(weights.weights.shape)])
    added = np.concatenate([np.ones((draws, networks, 1)), weights.drawn - weights.weights], axis=2)
    return replace(weights, weights=fixed, drawn=added)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A mean, and the values that it might have had with other patients, which are as far from it on the other side."""

    value: float
    values: Float[np.ndarray, " draws"]
    n_cases: int
    n_patients: int
    influences: Float[np.ndarray, " patients"]  # of those who take part, with the weights as they are

    @property
    def error(self) -> float:
        """Half the width of the middle 68 % of the values."""
        low, high = np.quantile(self.values, (0.1587, 0.8413), method="nearest")
        return float(high - low) / 2 if math.isfinite(high - low) else math.inf

    @property
    def reason(self) -> str:
        """Why there is no interval; empty where there is one."""
        if not self.n_patients:
            return NO_PATIENT
        if math.isnan(self.value):
            return NO_VALUE
        if self.n_patients < FEWEST_PATIENTS:
            return ONE_PATIENT if self.n_patients == 1 else FEW_PATIENTS
        spread = np.nanmax(np.abs(self.values - self.value))
        return "" if spread > _ROUNDING * max(abs(self.value), 1e-6) else ONE_VALUE


def drawn_mean(parts: PartSums, weights: DrawnWeights) -> Drawn:
    """The mean of a score over cases, with the values that it takes when patients and weights are drawn.

    A draw moves the mean twice: its weights are those of drawn importances, and given these, patients are drawn, the
    deviation divided by its own error (see `studentised`).
    """
    kept = (parts.counts > 0) & ~np.isnan(weights.weights[weights.networks]).any(1)
    sums, counts, networks = parts.sums[kept], parts.counts[kept], weights.networks[kept]
    n, total = int(kept.sum()), float(parts.counts[kept].sum())
    if not n:
        return Drawn(math.nan, np.full(len(weights.times), math.nan), 0, 0, np.zeros(0))
    scores = np.einsum("pk,pk->p", weights.weights[networks], sums)
    value = float(scores.sum() / total)
    influences = (scores - value * counts) / total
    if n < FEWEST_PATIENTS:
        return Drawn(value, np.full(len(weights.times), math.nan), round(total), n, influences)
    moved = np.where(np.isnan(weights.drawn), weights.weights, weights.drawn)  # a draw without weights changes none
    drawn = np.empty((len(moved), n))
    for network in np.unique(networks):
        of = networks == network
        drawn[:, of] = moved[:, network] @ sums[of].T
    by_network = np.stack([drawn[:, networks == network].sum(1) for network in np.unique(networks)], 1) / total
    values = by_network.sum(1)
    drawn -= values[:, None] * counts
    drawn /= total
    centre = values if weights.cancel else _at_worst(by_network)
    return Drawn(value, centre - _deviations(drawn, weights.times[:, kept]), round(total), n, influences)


def _at_worst(by_network: Float[np.ndarray, "draws networks"]) -> Float[np.ndarray, " draws"]:
    """The sum over networks, as if all had their low values in the same draws and their high values in the same.

    An order that is wrong by chance makes the score of every network smaller, not that of one smaller and of another
    larger: such errors do not cancel, and independent draws would make as if they did. One network stays as it is.
    """
    rank = np.argsort(np.argsort(by_network.sum(1), kind="stable"), kind="stable")
    return np.asarray(np.sort(by_network, axis=0).sum(1)[rank])


def _deviations(
    influences: Float[np.ndarray, "draws patients"], times: Float[np.ndarray, "draws patients"]
) -> Float[np.ndarray, " draws"]:
    """How far each draw moves the mean: the deviation by its own error, times the error of the mean."""
    n, squares = influences.shape[1], influences**2
    all_squares = squares.sum(1)
    moved = np.einsum("dp,dp->d", times, influences)
    variance = np.maximum(np.einsum("dp,dp->d", times, squares) - moved**2 / n, 0) * n / (n - 1)
    flat = variance <= _ROUNDING * all_squares
    # a draw of one patient alone has no spread: it says that the mean could be anywhere on that side
    by_error = np.where(flat, np.where(np.abs(moved) <= _ROUNDING, 0.0, np.copysign(np.inf, moved)),
                        moved / np.sqrt(np.where(flat, 1, variance)))  # fmt: skip
    error = np.sqrt(all_squares * n / (n - 1))
    return np.where(by_error == 0, 0.0, by_error * error)


def drawn_interval(drawn: Drawn, level: float = LEVEL) -> Interval:
    """The interval of one mean by itself, with equal tails."""
    if drawn.reason:
        return Interval(drawn.value, reason=drawn.reason)
    low, high = draw_limits(drawn.values, drawn.values, level)
    return Interval(drawn.value, float(low), float(high))


def simultaneous_drawn(family: list[Drawn], level: float = LEVEL) -> SimultaneousIntervals:
    """Intervals of several means of the same draws that hold together, and p-values corrected for one another.

    The largest deviation of all means, each in units of its own error, is the yardstick of each (max-T), above and
    below apart: an interval excludes 0 where its corrected p is small.
    """
    intervals = [Interval(each.value, reason=each.reason) for each in family]
    p_values, p_adjusted = np.full((2, len(family)), np.nan)
    usable = [i for i, each in enumerate(family) if not each.reason and math.isfinite(each.error)]
    if usable:
        scaled = np.stack([(family[i].values - family[i].value) / family[i].error for i in usable])
        lowest, highest = scaled.min(0), scaled.max(0)
        low, high = draw_limits(lowest, highest, level)
        for i, column in zip(usable, scaled, strict=True):
            value, error = family[i].value, family[i].error
            intervals[i] = Interval(value, value + float(low) * error, value + float(high) * error)
            zero = -value / error
            p_values[i] = two_sided_p((column >= zero).sum(), (column <= zero).sum(), len(column))
            p_adjusted[i] = two_sided_p((highest >= zero).sum(), (lowest <= zero).sum(), len(column))
    return SimultaneousIntervals(tuple(intervals), p_values, p_adjusted)
