"""Temperature scaling: one number that makes a model's probabilities as sure as they deserve (Guo et al. 2017)."""

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from heatcheck.core.records import Measured

ONE_CLASS = "needs cases with and without the finding"
WRONG_WAY = "the logits rate cases without the finding above those with it, so no temperature helps"
NO_ERROR = "every logit is on the right side, so colder is always better"

_STEPS = 200


def fitted_temperature(labels: Float[np.ndarray, " cases"], logits: Float[np.ndarray, " cases"]) -> Measured:
    """The temperature T at which the probabilities σ(logit / T) make the labels most likely.

    Labels are 1 present, 0 absent, NaN unknown; unknown ones are left out. In 1 / T the log-likelihood has one hill,
    so its top is where the slope is 0: Newton's steps find it, halving the bracket where a step would leave it.
    """
    known = ~np.isnan(labels)
    truth, rated = labels[known] == 1, np.asarray(logits[known], np.float64)
    if not np.isfinite(rated).all():
        raise ValueError("logits of cases with a known label must be finite; leave the others out")
    if truth.all() or not truth.any():
        return Measured(np.nan, ONE_CLASS)
    margins = np.where(truth, rated, -rated)  # how far each logit lies on the right side of 0
    farthest = float(np.abs(margins).max())
    if margins.sum() <= 1e-12 * farthest:
        return Measured(np.nan, WRONG_WAY)
    if margins.min() >= -1e-12 * farthest:
        return Measured(np.nan, NO_ERROR)
    return Measured(farthest / _sharpness(margins / farthest))


def _sharpness(margins: Float[np.ndarray, " cases"]) -> float:
    """1 / T for margins up to 1: where the summed slope Σ margin · σ(−margin · sharpness) falls through 0."""
    low, high = 0.0, 1.0
    while _slope(margins, high) > 0:
        low, high = high, 2 * high
    sharpness = (low + high) / 2
    for _ in range(_STEPS):
        slope = _slope(margins, sharpness)
        low, high = (sharpness, high) if slope > 0 else (low, sharpness)
        wrong = expit(-margins * sharpness)
        bend = float(np.sum(margins**2 * wrong * (1 - wrong)))
        step = sharpness + slope / bend if bend > 0 else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - sharpness) <= 1e-13 * sharpness:
            break
        sharpness = following
    return float(sharpness)


def _slope(margins: Float[np.ndarray, " cases"], sharpness: float) -> float:
    return float(np.sum(margins * expit(-margins * sharpness)))


def tempered(
    logits: Float[np.ndarray, " cases"], temperatures: Float[np.ndarray, " cases"]
) -> Float[np.ndarray, " cases"]:
    """The probability of each case at its temperature."""
    return np.asarray(expit(np.asarray(logits, np.float64) / temperatures))
