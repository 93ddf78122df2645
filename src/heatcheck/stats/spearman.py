"""Rank correlation of a score with a feature."""

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.special import stdtr

from heatcheck.stats.regression import SAME_FEATURE, SAME_SCORE, Fit

FEW_CASES = "fewer than four cases"
PERFECT = "the order agrees without an exception, which has no interval"


def spearman(feature: Float[np.ndarray, " rows"], scores: Float[np.ndarray, " rows"]) -> Fit:
    """Spearman's rank correlation with Fisher's interval and a t-test against 0, as if all rows were independent.

    The interval is tanh(atanh r ± 1.96 / √(n − 3)); there is none where |r| is 1 or n at most 3.
    """
    defined = ~(np.isnan(feature) | np.isnan(scores))
    n = int(np.count_nonzero(defined))
    counts = Fit(n_cases=n, n_undefined=len(feature) - n)
    if n <= 3:
        return replace(counts, reason=FEW_CASES)
    x, y = ranks(feature[defined]), ranks(scores[defined])
    x, y = x - x.mean(), y - y.mean()
    for centred, reason in ((x, SAME_FEATURE), (y, SAME_SCORE)):
        if not centred.any():
            return replace(counts, reason=reason)
    r = float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))
    if abs(r) > 1 - 1e-12:
        return replace(counts, value=math.copysign(1, r), reason=PERFECT)
    reach = 1.96 / math.sqrt(n - 3)
    low, high = (math.tanh(math.atanh(r) + shift) for shift in (-reach, reach))
    t = r * math.sqrt((n - 2) / ((1 - r) * (1 + r)))
    return replace(counts, value=r, low=low, high=high, p_value=2 * float(stdtr(n - 2, -abs(t))))


def ranks(values: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """The rank of each value from 1; equal values share the mean of their ranks."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[index])
