"""Intervals of rates, such as the share of hits: they stay within 0 and 1 and exist where every patient is a hit."""

import numpy as np
from jaxtyping import Float
from scipy.special import betaincinv, stdtrit

from heatcheck.stats.resampling.bca import NO_PATIENT, ONE_PATIENT, Interval
from heatcheck.stats.resampling.bootstrap import LEVEL

_ROUNDING = 1e-9  # rates this near to 0 or 1 are meant to be 0 or 1

PatientValues = Float[np.ndarray, " patients"]


def rate_interval(sums: PatientValues, counts: PatientValues, level: float = LEVEL) -> Interval:
    """The share of hits over all cases, from each patient's sum of hits and number of cases.

    Clopper and Pearson's interval for the number of independent cases that would know the rate as well as these do,
    fewer where the cases of a patient agree, and fewer still where few patients say how much they agree (Korn and
    Graubard 1998, Survey Methodology 24:193). If all or none are hits, agreement cannot be seen, and every patient
    counts as one case. A hit may be a share of one, as where tied peaks share it.
    """
    sums, counts = _patients_with_cases(sums, counts)
    if not len(counts):
        return Interval(np.nan, reason=NO_PATIENT)
    value = float(sums.sum() / counts.sum())
    if len(counts) == 1:
        return Interval(value, reason=ONE_PATIENT)
    return Interval(value, *_limits(sums, counts, level))


def rate_difference_interval(
    first: PatientValues, second: PatientValues, counts: PatientValues, level: float = LEVEL
) -> Interval:
    """The first rate less the second, of two kinds of hits on the same cases.

    The distances from each rate to its limits are combined as standard errors are (MOVER: Zou and Donner 2008, Stat
    Med 27:1693), which an interval from resampling cannot replace where few patients differ. If none differs, the data
    cannot say how rarely one would: the interval then reaches to the largest share of differing patients that would
    still stay unseen often enough. (MOVER would need a correlation: 1 would claim certainty, 0 is twice as wide.)
    """
    (first, counts), (second, _) = _patients_with_cases(first, counts), _patients_with_cases(second, counts)
    patients = len(counts)
    if not patients:
        return Interval(np.nan, reason=NO_PATIENT)
    rates = first.sum() / counts.sum(), second.sum() / counts.sum()
    value = float(rates[0] - rates[1])
    if patients == 1:
        return Interval(value, reason=ONE_PATIENT)
    if np.allclose(first, second, rtol=0, atol=_ROUNDING):
        unseen = 1 - ((1 - level) / 2) ** (1 / patients)
        return Interval(value, -unseen, unseen)
    correlation = _correlation(first - rates[0] * counts, second - rates[1] * counts)
    # estimated from few patients; as it stands, intervals of methods that nearly always agree were far too short
    correlation *= 1 - 2 / patients
    (low_1, high_1), (low_2, high_2) = (_limits(sums, counts, level) for sums in (first, second))
    below = _joined(rates[0] - low_1, high_2 - rates[1], correlation)
    above = _joined(high_1 - rates[0], rates[1] - low_2, correlation)
    return Interval(value, value - below, value + above)


def _patients_with_cases(sums: PatientValues, counts: PatientValues) -> tuple[PatientValues, PatientValues]:
    if sums.shape != counts.shape or sums.ndim != 1:
        raise ValueError(f"sums and counts must be two lists of the same length, got {sums.shape} and {counts.shape}")
    if not np.all((sums >= 0) & (sums <= counts * (1 + _ROUNDING))):
        raise ValueError("sums must lie between 0 and their count, got others; pass sums of values from 0 to 1")
    has_case = counts > 0
    return sums[has_case].astype(float), counts[has_case].astype(float)


def _limits(sums: PatientValues, counts: PatientValues, level: float) -> tuple[float, float]:
    """Korn and Graubard's limits for at least two patients."""
    patients, cases = len(counts), float(counts.sum())
    value = float(sums.sum()) / cases
    if min(value, 1 - value) < _ROUNDING:
        value = float(round(value))
        size = float(patients)
    else:
        residuals = (sums - value * counts) / cases
        variance = float(residuals @ residuals) * patients / (patients - 1)
        independent = value * (1 - value)
        # patients who agree by chance, or shares of hits, must not count as more than their cases
        size = independent / variance if independent < variance * cases else cases
        size *= float(stdtrit(cases - 1, (1 + level) / 2) / stdtrit(patients - 1, (1 + level) / 2)) ** 2
    return clopper_pearson(value, size, level)


def clopper_pearson(value: float, size: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's limits of a rate among a number of independent cases, which need not be whole."""
    hits, tail = value * size, (1 - level) / 2
    low = float(betaincinv(hits, size - hits + 1, tail)) if value > 0 else 0.0
    high = float(betaincinv(hits + 1, size - hits, 1 - tail)) if value < 1 else 1.0
    return low, high


def _correlation(first: PatientValues, second: PatientValues) -> float:
    """The correlation of two lists of influences; 0 if one of them does not vary, as at a rate of 0 or 1."""
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale > 0 else 0.0


def _joined(first: float, second: float, correlation: float) -> float:
    """The length of the difference of two correlated deviations."""
    return float(np.sqrt(max(first**2 + second**2 - 2 * correlation * first * second, 0.0)))
