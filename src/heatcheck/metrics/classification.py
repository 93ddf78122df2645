"""Discrimination and calibration of a model's probabilities: scores of a data set, not of one case.

Labels are 1 present, 0 absent, NaN unknown; cases with an unknown label are left out.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.special import gammaincinv

from heatcheck.core.findings import known_cases
from heatcheck.core.records import Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import NO_LABEL, missing_class, undefined

study_metric(
    "auroc",
    study="localization",
    label="AUROC",
    summary="The chance that the model gives a random image with the finding a higher probability than a random image"
    " without it: 1 is perfect, 0.5 is guessing.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference="Hanley and McNeil 1982, Radiology 143:29",
)
study_metric(
    "ece",
    study="localization",
    label="Calibration error (ECE)",
    summary="How far, on average, the model’s stated probability is from how often the finding is really there: 0 is "
    "perfect.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference="Guo et al. 2017, ICML",
)

_MOST_EXACT = 2000  # cases of a bin whose number of findings is summed exactly; that of more is nearly normal

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


@dataclass(frozen=True, slots=True)
class ChanceError:
    """The expected calibration error that a perfectly calibrated model would have on the same cases."""

    mean: float
    high: float  # not exceeded in 95 % of data sets, or at the level asked for


def auroc(labels: Cases, probabilities: Cases) -> Measured:
    """The probability that a case with the finding is rated above one without it, ties counting half."""
    known_cases(labels, probabilities)
    if reason := missing_class(labels):
        return undefined(reason)
    return Measured(float(weighted_auroc(labels, probabilities, np.ones(len(labels)))))


def weighted_auroc(
    labels: Cases, probabilities: Cases, weights: Float[np.ndarray, "*draws cases"]
) -> Float[np.ndarray, "*draws"]:
    """The AUROC of the weighted cases, for each set of weights; NaN where a class has no weight."""
    known = known_cases(labels, probabilities)
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


def calibration_error_by_chance(
    labels: Cases, probabilities: Cases, patients: Shaped[np.ndarray, " cases"], bins: int = 15, level: float = 0.95
) -> ChanceError:
    """The expected calibration error of a perfectly calibrated model with these probabilities; NaN without a label.

    Observed frequencies differ from the predicted ones even if these are right, and distances do not cancel: the fewer
    the cases, the larger the error of a perfect model. Where cases of a patient are alike, they count as fewer; the
    labels serve only to estimate how much. The mean is exact for independent cases, the limit that of a gamma
    distribution with the error's mean and variance.
    """
    known = known_cases(labels, probabilities)
    if not known.any():
        return ChanceError(math.nan, math.nan)
    chances = probabilities[known].astype(np.float64)
    _, index = np.unique(_bin_index(chances, bins), return_inverse=True)
    _, codes = np.unique(np.asarray(patients)[known], return_inverse=True)
    covariance = _bin_covariance(chances, index, codes, _residual_correlation(labels[known] - chances, codes))
    mean = 0.0
    for number, variance in enumerate(np.diag(covariance)):
        in_bin = chances[index == number]
        independent = float(np.sum(in_bin * (1 - in_bin)))
        if independent > 0:
            mean += _mean_distance(in_bin) * math.sqrt(variance / independent)
    spread = float(_distance_covariance(covariance).sum())
    shape = mean**2 / spread if spread > 0 else math.inf
    high = mean / shape * float(gammaincinv(shape, level)) if 0 < shape < math.inf else mean
    return ChanceError(mean / len(chances), high / len(chances))


def reliability_curve(labels: Cases, probabilities: Cases, bins: int = 15) -> tuple[ReliabilityBin, ...]:
    """The non-empty bins of equal width, in order; a probability of exactly 1 has a bin of its own."""
    known = known_cases(labels, probabilities)
    rated, present = probabilities[known], labels[known]
    index = _bin_index(rated, bins)
    edges = np.append(np.linspace(0, 1, bins + 1), 1.0)
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


def _bin_index(probabilities: Cases, bins: int) -> Int[np.ndarray, " cases"]:
    """The bin of each probability; bins have equal width, and exactly 1 has a bin of its own."""
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise ValueError("calibration needs probabilities between 0 and 1, got others; pass probabilities, not logits")
    if bins < 1:
        raise ValueError(f"a reliability curve needs at least one bin, got {bins}")
    return np.asarray(np.searchsorted(np.linspace(0, 1, bins + 1), probabilities, side="right") - 1)


def _residual_correlation(residuals: Cases, patients: Int[np.ndarray, " cases"]) -> float:
    """The correlation of two cases of a patient: their mean product over the mean square, between 0 and 1."""
    centred = residuals - residuals.mean()  # a model that is too high everywhere does not make cases alike
    sizes = np.bincount(patients)
    pairs, squares = float(np.sum(sizes * (sizes - 1))), float(centred @ centred)
    if not (pairs and squares):
        return 0.0
    products = float(np.sum(np.bincount(patients, centred) ** 2)) - squares
    return min(max(products / pairs / (squares / len(centred)), 0.0), 1.0)


def _bin_covariance(
    chances: Cases, index: Int[np.ndarray, " cases"], patients: Int[np.ndarray, " cases"], correlation: float
) -> Float[np.ndarray, "bins bins"]:
    """Covariances of the numbers of findings per bin, any two cases of a patient being equally correlated."""
    deviations, bins = np.sqrt(chances * (1 - chances)), int(index.max()) + 1
    cells = np.bincount(patients * bins + index, deviations, (int(patients.max()) + 1) * bins).reshape(-1, bins)
    apart = np.bincount(index, deviations**2)
    return np.asarray(correlation * cells.T @ cells + (1 - correlation) * np.diag(apart))


def _distance_covariance(covariance: Float[np.ndarray, "bins bins"]) -> Float[np.ndarray, "bins bins"]:
    """Covariances of the absolute values of normal variables with mean 0."""
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    r = np.clip(np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0), -1, 1)
    return np.asarray(scale * 2 / math.pi * (np.sqrt(1 - r**2) + r * np.arcsin(r) - 1))


def _mean_distance(chances: Cases) -> float:
    """The mean distance between the number of findings and its expectation, each case with its own chance."""
    if len(chances) > _MOST_EXACT:
        return math.sqrt(2 / math.pi * float(np.sum(chances * (1 - chances))))
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, [1 - chance, chance])
    return float(distribution @ np.abs(np.arange(len(distribution)) - float(chances.sum())))
