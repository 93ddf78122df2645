"""Bias-corrected and accelerated intervals from bootstrap replicates (Efron 1987)."""

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from heatcheck.core.records import ONE_VALUE

ONE_PATIENT = "one patient"
NO_PATIENT = "no patient"
NO_VALUE = "undefined on these cases"


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval; `reason` says why the value or the interval is NaN."""

    value: float
    low: float = math.nan
    high: float = math.nan
    reason: str = ""
    p_at_zero: float = field(default=math.nan, compare=False)  # of the value 0, where the interval is one of `bca`


def bca(
    value: float, replicates: Float[np.ndarray, " draws"], jackknife: Float[np.ndarray, " groups"], level: float
) -> Interval:
    """The interval of one statistic, given its value on the data, on each draw and without each group of patients.

    Draws on which the statistic is undefined are left out. If they are more than the share 1 − level that the interval
    cuts off, they could fill either tail, and there is no interval. Nor is there one when all draws agree, as when
    three patients of three are hits: an interval of no width would claim certainty.
    """
    if math.isnan(value):
        return Interval(value, reason=NO_VALUE)
    undefined = np.count_nonzero(np.isnan(replicates))
    if undefined > (1 - level) * len(replicates):
        return Interval(value, reason=f"undefined in {undefined} of {len(replicates)} draws")
    defined = replicates[~np.isnan(replicates)]
    # sums taken in another order differ in the last bits: without this, ties with the value would fall to either side
    defined = np.where(np.isclose(defined, value, rtol=1e-12, atol=1e-14), value, defined)
    if np.all(defined == defined[0]):
        return Interval(value, reason=ONE_VALUE)
    bias, acceleration = _bias(value, defined), _acceleration(jackknife)
    shifted = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    # in an extreme tail the denominator would pass through 0 and change sign
    denominator = np.maximum(1 - acceleration * shifted, 1e-9)
    low, high = np.quantile(defined, ndtr(bias + shifted / denominator))
    return Interval(value, float(low), float(high), p_at_zero=_p_at_zero(defined, bias, acceleration))


def _p_at_zero(replicates: Float[np.ndarray, " draws"], bias: float, acceleration: float) -> float:
    """The two-sided p-value of the value 0: an interval of the level 1 − p has one of its ends there.

    With draws on one side of 0 only it is that of half a draw on the other, the finest share that they can resolve.
    """
    last = len(replicates) - 1
    below, upto = np.count_nonzero(replicates < 0), np.count_nonzero(replicates <= 0)
    if upto > below:  # draws that are 0: the position nearest to the middle makes p largest
        position = float(np.clip(last / 2, below, upto - 1))
    elif 0 < below <= last:
        before, after = replicates[replicates < 0].max(), replicates[replicates > 0].min()
        position = below - 1 + float(before / (before - after))
    else:
        position = 0.0 if below == 0 else float(last)
    finest = 0.5 / len(replicates)
    away = float(ndtri(min(max(position / last, finest), 1 - finest))) - bias
    # an end whose normal quantile is z lies at bias + (bias + z) / (1 - acceleration (bias + z)); solved for z
    tail = float(ndtr(away / max(1 + acceleration * away, 1e-9) - bias))
    return 2 * min(tail, 1 - tail)


def _bias(value: float, replicates: Float[np.ndarray, " draws"]) -> float:
    below = np.count_nonzero(replicates < value) + np.count_nonzero(replicates == value) / 2
    # if all draws lay on one side, the quantile would be infinite; half a draw is the finest share they can resolve
    share = min(max(below, 0.5), len(replicates) - 0.5) / len(replicates)
    return float(ndtri(share))


def _acceleration(jackknife: Float[np.ndarray, " groups"]) -> float:
    """Efron's acceleration; the same formula whether single patients or groups of about equal size were left out.

    Leaving out a group moves the statistic by the sum V of its patients' influences u, up to a factor that cancels.
    Influences sum to 0 and groups are random, so the cross terms vanish: on average ΣV² and ΣV³ over the groups equal
    Σu² and Σu³ over the patients, up to a relative error of about 1 / groups. No further scaling is needed: in the
    form skewness / (6 √n), groups of h patients have a skewness smaller by √h, and there are n / h of them.
    Efron and Narasimhan 2020, J Comput Graph Stat 29:608 (their `bcajack` does the same for m < n groups).
    """
    defined = jackknife[~np.isnan(jackknife)]
    deviations = defined.mean() - defined if len(defined) else defined
    spread = np.sum(deviations**2)
    return float(np.sum(deviations**3) / (6 * spread**1.5)) if spread > 0 else 0.0
