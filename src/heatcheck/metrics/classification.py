"""Discrimination and calibration of a model's probabilities: scores of a data set, not of one case.

Labels are 1 present, 0 absent, NaN unknown; cases with an unknown label are left out.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import NO_LABEL, missing_class, undefined

study_metric(
    "auroc",
    label="AUROC",
    summary="The chance that the model gives a random image with the finding a higher probability than a random image"
    " without it: 1 is perfect, 0.5 is guessing.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference="Hanley and McNeil 1982, Radiology 143:29",
)
study_metric(
    "ece",
    label="Calibration error (ECE)",
    summary="How far, on average, the model’s stated probability is from how often the finding is really there: 0 is "
    "perfect.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference="Guo et al. 2017, ICML",
)

_MOST_PAIRS = 2**18  # of a case with and a case without the finding; a table of more would be too large

Cases = Float[np.ndarray, " cases"]
Classes = Float[np.ndarray, "cases classes"]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The cases whose probability lies in [low, high): predicted and observed frequency of the finding."""

    low: float
    high: float
    predicted: float  # mean probability
    observed: float  # share of cases with the finding
    n: int


def auroc(labels: Cases, probabilities: Cases) -> Measured:
    """The probability that a case with the finding is rated above one without it, ties counting half."""
    _known_cases(labels, probabilities)
    if reason := missing_class(labels):
        return undefined(reason)
    return Measured(float(weighted_auroc(labels, probabilities, np.ones(len(labels)))))


def weighted_auroc(
    labels: Cases, probabilities: Cases, weights: Float[np.ndarray, "*draws cases"]
) -> Float[np.ndarray, "*draws"]:
    """The AUROC of the weighted cases, for each set of weights; NaN where a class has no weight."""
    known = _known_cases(labels, probabilities)
    if weights.shape[-1] != len(labels):
        raise ValueError(f"weights need one entry per case along their last axis, got {weights.shape[-1]}")
    if not known.any():
        return np.full(weights.shape[:-1], np.nan)
    rated = probabilities[known]
    order = np.argsort(rated, kind="stable")
    by_rating = weights[..., np.flatnonzero(known)[order]]
    # cases with equal probability form a step: against each other they win half
    steps = np.flatnonzero(np.diff(rated[order], prepend=-np.inf))
    has_finding = labels[known][order] == 1
    present = np.add.reduceat(by_rating * has_finding, steps, axis=-1)
    absent = np.add.reduceat(by_rating * ~has_finding, steps, axis=-1)
    wins = (present * (np.cumsum(absent, axis=-1) - absent / 2)).sum(axis=-1)
    pairs = present.sum(axis=-1) * absent.sum(axis=-1)
    return np.asarray(np.divide(wins, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0))


def weighted_mean_auroc(
    labels: Cases, probabilities: Float[np.ndarray, "networks cases"], weights: Float[np.ndarray, "*draws cases"]
) -> Float[np.ndarray, "*draws"]:
    """The mean of several networks' `weighted_auroc` on the same cases, for each set of weights.

    Which case wins against which is the same in every draw and can be summed over the networks, which makes this about
    twenty times as fast. Weights must be whole numbers, as in a bootstrap.
    """
    known, *_ = (_known_cases(labels, by_network) for by_network in probabilities)  # checks all; the labels decide
    present, absent = (np.flatnonzero(known & (labels == label)) for label in (1, 0))
    if len(present) * len(absent) > _MOST_PAIRS:
        each = [weighted_auroc(labels, by_network, weights) for by_network in probabilities]
        return np.asarray(np.mean(each, axis=0))
    if weights.shape[-1] != len(labels):
        raise ValueError(f"weights need one entry per case along their last axis, got {weights.shape[-1]}")
    # single precision is exact: wins are halves of whole numbers, and their sums far below 2²³
    wins = np.zeros((len(present), len(absent)), np.float32)
    for by_network in probabilities:
        with_finding, without = by_network[present, None], by_network[absent]
        wins += (with_finding > without) + np.float32(0.5) * (with_finding == without)
    present_weights, absent_weights = (weights[..., cases].astype(np.float32) for cases in (present, absent))
    won = ((present_weights @ wins) * absent_weights).sum(-1, dtype=np.float64)
    pairs = present_weights.sum(-1, dtype=np.float64) * absent_weights.sum(-1, dtype=np.float64) * len(probabilities)
    return np.asarray(np.divide(won, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0))


def accuracy(labels: Classes, probabilities: Classes) -> Measured:
    """The share of cases whose most probable class (the first of equals) is right; unlabelled cases are left out."""
    if labels.shape != probabilities.shape or labels.ndim != 2:
        shapes = f"{labels.shape} and {probabilities.shape}"
        raise ValueError(f"labels and probabilities must be two tables of the same shape, got {shapes}")
    known = np.isin(labels, (0, 1)).all(1) & (labels.sum(1) == 1)
    if not known.any():
        return undefined(NO_LABEL)
    return Measured(float((labels.argmax(1) == probabilities.argmax(1))[known].mean()))


def expected_calibration_error(labels: Cases, probabilities: Cases, bins: int = 15) -> Measured:
    """The mean distance between predicted and observed frequency over the bins, weighted by their number of cases.

    Guo et al. 2017; the bins are those of `reliability_curve`.
    """
    curve = reliability_curve(labels, probabilities, bins)
    if not curve:
        return undefined(NO_LABEL)
    return Measured(sum(b.n * abs(b.predicted - b.observed) for b in curve) / sum(b.n for b in curve))


def reliability_curve(labels: Cases, probabilities: Cases, bins: int = 15) -> tuple[ReliabilityBin, ...]:
    """The non-empty bins of equal width, in order; a probability of exactly 1 has a bin of its own."""
    known = _known_cases(labels, probabilities)
    rated, present = probabilities[known], labels[known]
    if not np.all((rated >= 0) & (rated <= 1)):
        raise ValueError("calibration needs probabilities between 0 and 1, got others; pass probabilities, not logits")
    if bins < 1:
        raise ValueError(f"a reliability curve needs at least one bin, got {bins}")
    edges = np.append(np.linspace(0, 1, bins + 1), 1.0)
    index = np.searchsorted(edges[:-1], rated, side="right") - 1
    return tuple(
        ReliabilityBin(
            float(edges[i]),
            float(edges[i + 1]),
            float(rated[index == i].mean(dtype=np.float64)),
            float(present[index == i].mean(dtype=np.float64)),
            int(np.count_nonzero(index == i)),
        )
        for i in np.unique(index)
    )


def _known_cases(labels: Cases, probabilities: Cases) -> np.ndarray:
    if labels.shape != probabilities.shape or labels.ndim != 1:
        shapes = f"{labels.shape} and {probabilities.shape}"
        raise ValueError(f"labels and probabilities must be two lists of the same length, got {shapes}")
    known = np.asarray(~np.isnan(labels))
    if not np.isin(labels[known], (0, 1)).all():
        raise ValueError("labels must be 1 (present), 0 (absent) or NaN (unknown), got another number")
    if np.isnan(probabilities[known]).any():
        raise ValueError("a case with a known label has no probability (NaN); leave it out or record it as failed")
    return known
