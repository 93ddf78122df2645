"""Intervals of the AUROC where patients have several images, in time n log n (Obuchowski 1997, Biometrics 53:567)."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from scipy.special import expit, logit, stdtrit

from heatcheck.core.findings import known_cases
from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.clusters import Clusters, cluster_codes
from heatcheck.stats.resampling.studentised import FEWEST_PATIENTS

FEW_POSITIVE = "fewer than two patients with the finding"
FEW_NEGATIVE = "fewer than two patients without the finding"
FEW_OF_A_KIND = f"fewer than {FEWEST_PATIENTS} patients with or without the finding"
_PRIOR_PATIENTS = 3  # by how many patients' worth an estimated variance is drawn towards Hanley and McNeil's

Cases = Float[np.ndarray, " cases"]


@dataclass(frozen=True, slots=True)
class ClusteredAuroc:
    """An AUROC with its interval, and what comparisons of models and means over findings need."""

    interval: Interval
    influences: Float[np.ndarray, " patients"]  # of each patient, in sorted order; they sum to 0
    takes_part: Bool[np.ndarray, " patients"]  # False for a patient without a known label
    error: float  # Obuchowski's standard error: 0 if no case is on the wrong side
    freedom: float  # Satterthwaite's degrees of freedom, from the patients with and those without the finding


@dataclass(frozen=True, slots=True)
class _Class:
    """The cases of one class: how far each patient's sum of ratings against the other class is from the mean."""

    deviations: Float[np.ndarray, " patients"]  # over the number of cases
    counts: Int[np.ndarray, " patients"]

    @property
    def n_patients(self) -> int:
        return int(np.count_nonzero(self.counts))

    @property
    def size(self) -> float:
        """How many patients with one case each would say as much: fewer than there are if cases are uneven."""
        return float(self.counts.sum() ** 2 / np.sum(self.counts**2))

    @property
    def variance(self) -> float:
        return float(self.deviations @ self.deviations) * self.n_patients / (self.n_patients - 1)

    def spread(self, shape: float) -> float:
        """The variance over Hanley and McNeil's, drawn towards 1; exactly 1 if no case is on the wrong side."""
        relative = self.variance * self.size / shape if shape > 0 else 1.0
        degrees = self.n_patients - 1
        return (degrees * relative + _PRIOR_PATIENTS) / (degrees + _PRIOR_PATIENTS)


def clustered_auroc(labels: Cases, probabilities: Cases, patients: Clusters, level: float = LEVEL) -> ClusteredAuroc:
    """The AUROC of cases labelled 1, 0 or NaN (unknown: left out), with an interval that draws whole patients.

    Few positive patients say little about the variance, and least where by luck all are rated high: a t-interval on
    the logit scale lies above the truth too often. So the variance is drawn towards that of Hanley and McNeil (1982,
    Radiology 143:29), and the interval holds every AUROC x from which the estimate is no further than t standard
    errors, with the error that x would have (Newcombe 2006, Stat Med 25:559). The logit interval is joined to it. With
    perfect separation the error is Hanley and McNeil's for as many patients.
    """
    known = _known(labels, probabilities, patients)
    codes = cluster_codes(patients)
    n_patients = int(codes.max(initial=-1)) + 1
    codes, present = codes[known], labels[known] == 1
    takes_part = np.bincount(codes, minlength=n_patients) > 0
    counts = [np.bincount(codes[rows], minlength=n_patients) for rows in (present, ~present)]
    if not (present.any() and (~present).any()):
        reason = FEW_NEGATIVE if present.any() else FEW_POSITIVE
        return ClusteredAuroc(Interval(math.nan, reason=reason), np.zeros(n_patients), takes_part, math.nan, math.nan)
    shares = _shares_won(present, probabilities[known])
    value = float(shares[present].mean())
    deviations = [
        (np.bincount(codes[rows], shares[rows], n_patients) - value * number) / number.sum()
        for rows, number in zip((present, ~present), counts, strict=True)
    ]
    influences = np.asarray(deviations[0] + deviations[1])
    if min(map(np.count_nonzero, counts)) < 2:
        reason = FEW_POSITIVE if np.count_nonzero(counts[0]) < 2 else FEW_NEGATIVE
        return ClusteredAuroc(Interval(value, reason=reason), influences, takes_part, math.nan, math.nan)
    classes = [_Class(*each) for each in zip(deviations, counts, strict=True)]
    alone = classes[0].variance + classes[1].variance
    # patients with cases of both classes: what they share may widen or narrow
    shared = 2 * float(deviations[0] @ deviations[1]) * takes_part.sum() / (takes_part.sum() - 1)
    freedom = _satterthwaite([(each.variance, each.n_patients - 1) for each in classes])
    error = math.sqrt(max(alone + shared, 0.0))
    # half at least, since errors that cancel are believed only in part
    factor = max(1 + shared / alone, 0.5) if alone > 0 else 1.0
    interval = Interval(value, *_limits(value, classes, factor, level))
    return ClusteredAuroc(interval, influences, takes_part, error, freedom)


def auroc_difference(labels: Cases, first: Cases, second: Cases, patients: Clusters, level: float = LEVEL) -> Interval:
    """The AUROC of the first ratings less that of the second, of the same cases, with whole patients drawn.

    Obuchowski's variance of the difference with Student's t; none where fewer than `FEWEST_PATIENTS` patients have the
    finding or have not.
    """
    known = _known(labels, first, patients) & _known(labels, second, patients)
    codes, present = cluster_codes(np.asarray(patients)[known]), labels[known] == 1
    n_patients = int(codes.max(initial=-1)) + 1
    numbers = [np.bincount(codes[rows], minlength=n_patients) for rows in (present, ~present)]
    if not (present.any() and (~present).any()):
        return Interval(math.nan, reason=FEW_NEGATIVE if present.any() else FEW_POSITIVE)
    gained = _shares_won(present, first[known]) - _shares_won(present, second[known])
    value = float(gained[present].mean())
    classes = [
        _Class((np.bincount(codes[rows], gained[rows], n_patients) - value * number) / number.sum(), number)
        for rows, number in zip((present, ~present), numbers, strict=True)
    ]
    if min(each.n_patients for each in classes) < FEWEST_PATIENTS:
        return Interval(value, reason=FEW_OF_A_KIND)
    shared = 2 * float(classes[0].deviations @ classes[1].deviations) * n_patients / (n_patients - 1)
    alone = classes[0].variance + classes[1].variance
    if alone == 0:
        return Interval(value, reason=ONE_VALUE)
    error = math.sqrt(max(alone + shared, alone / 2))  # errors that cancel are believed only in part
    freedom = _satterthwaite([(each.variance, each.n_patients - 1) for each in classes])
    reach = error * float(stdtrit(freedom, (1 + level) / 2))
    return Interval(value, max(value - reach, -1.0), min(value + reach, 1.0))


def _known(labels: Cases, probabilities: Cases, patients: Clusters) -> Bool[np.ndarray, " cases"]:
    if np.shape(patients) != labels.shape:
        raise ValueError(f"every case needs a patient, got {labels.shape} labels and {np.shape(patients)} patients")
    return known_cases(labels, probabilities)


def _shares_won(present: Bool[np.ndarray, " cases"], probabilities: Cases) -> Cases:
    """For each case the share of the other class that lies on the right side of it, ties counting half."""
    _, step, sizes = np.unique(probabilities, return_inverse=True, return_counts=True)
    positive = np.bincount(step, present, len(sizes))
    negative = sizes - positive
    negative_below = np.cumsum(negative) - negative / 2
    positive_above = positive.sum() - np.cumsum(positive) + positive / 2
    return np.where(present, negative_below[step] / negative.sum(), positive_above[step] / positive.sum())


def _satterthwaite(parts: list[tuple[float, float]]) -> float:
    """The degrees of freedom of a sum of variances, each with its own; those of the smallest if all are 0."""
    total = sum(variance for variance, _ in parts)
    if not total > 0:
        return min(degrees for _, degrees in parts)
    return float(total**2 / sum(variance**2 / degrees for variance, degrees in parts))


def _hanley_mcneil(value: float) -> tuple[float, float]:
    """The variance of a case's share won, for positive and for negative cases: Q₁ − A² and Q₂ − A²."""
    return value**2 * (1 - value) / (1 + value), value * (1 - value) ** 2 / (2 - value)


def _limits(value: float, classes: list[_Class], factor: float, level: float) -> tuple[float, float]:
    # the larger of the two serves both classes: which of them varies more is for the data to say
    spreads = [each.spread(max(_hanley_mcneil(value))) / each.size for each in classes]
    degrees = [each.n_patients - 1 + _PRIOR_PATIENTS for each in classes]
    reach = float(stdtrit(_satterthwaite(list(zip(spreads, degrees, strict=True))), (1 + level) / 2))
    pairs = classes[0].size * classes[1].size

    def error(auroc: float) -> float:
        by_class = _hanley_mcneil(auroc)
        both = max(auroc * (1 - auroc) - sum(by_class), 0.0) / pairs  # Hanley and McNeil's term for single pairs
        return reach * math.sqrt(max(by_class) * sum(spreads) * factor + both)

    low = float(brentq(lambda x: value - x - error(x), 0, _inside(value))) if value > 0 else 0.0
    high = float(brentq(lambda x: x - value - error(x), _inside(value), 1)) if value < 1 else 1.0
    if 0 < value < 1:
        half = error(value) / (value * (1 - value))
        low, high = min(low, float(expit(logit(value) - half))), max(high, float(expit(logit(value) + half)))
    return low, high


def _inside(value: float) -> float:
    """The value, or one so near to 0 or 1 that errors there are larger than the distance."""
    return min(max(value, 1e-9), 1 - 1e-9)
