"""Temperature scaling: one number that calibrates the confidence of a model (Guo et al. 2017)."""

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from heatcheck.core.records import Measured

ONE_CLASS = "needs cases with and without the finding"
WRONG_WAY = "the logits rate cases without the finding above those with it, so no temperature helps"
NO_ERROR = "every logit is on the right side, so colder is always better"

_STEPS = 200


def fitted_temperature(labels: Float[np.ndarray, " cases"], logits: Float[np.ndarray, " cases"]) -> Measured:
    """The temperature T that maximizes the likelihood of the labels under the probabilities σ(logit / T).

    Labels are 1 present, 0 absent, NaN unknown; unknown ones are left out.
    """
    known = ~np.isnan(labels)
    truth, rated = labels[known] == 1, np.asarray(logits[known], np.float64)
    if not np.isfinite(rated).all():
        raise ValueError(
            "logits of cases with a known label must be finite, got NaN or infinity; leave these cases out"
        )
    if truth.all() or not truth.any():
        return Measured(np.nan, ONE_CLASS)
    margins = np.where(truth, rated, -rated)  # how far each logit lies on the right side of 0
    largest = float(np.abs(margins).max())
    # the slope of the log-likelihood at 1/T = 0 is half the sum of the margins: if not positive, the best T is infinite
    if margins.sum() <= 1e-12 * largest:
        return Measured(np.nan, WRONG_WAY)
    if margins.min() >= -1e-12 * largest:
        return Measured(np.nan, NO_ERROR)
    return Measured(largest / _sharpness(margins / largest))


def _sharpness(margins: Float[np.ndarray, " cases"]) -> float:
    """1 / T for margins up to 1: the zero of the slope Σ margin · σ(−margin · sharpness) of the log-likelihood."""
    # the log-likelihood is concave in 1 / T: Newton's steps find the zero, bisection wherever a step would leave the
    # bracket
    low, high = 0.0, 1.0
    while _slope(margins, high) > 0:
        low, high = high, 2 * high
    sharpness = (low + high) / 2
    for _ in range(_STEPS):
        slope = _slope(margins, sharpness)
        low, high = (sharpness, high) if slope > 0 else (low, sharpness)
        wrong = expit(-margins * sharpness)
        curvature = float(np.sum(margins**2 * wrong * (1 - wrong)))
        newton = sharpness + slope / curvature if curvature > 0 else low
        improved = newton if low < newton < high else (low + high) / 2
        if abs(improved - sharpness) <= 1e-13 * sharpness:
            break
        sharpness = improved
    return float(sharpness)


def _slope(margins: Float[np.ndarray, " cases"], sharpness: float) -> float:
    return float(np.sum(margins * expit(-margins * sharpness)))


def calibrated_probabilities(
    logits: Float[np.ndarray, " cases"], temperatures: Float[np.ndarray, " cases"]
) -> Float[np.ndarray, " cases"]:
    """The probability of each case at its temperature."""
    return np.asarray(expit(np.asarray(logits, np.float64) / temperatures))
