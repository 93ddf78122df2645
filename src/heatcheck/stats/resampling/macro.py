"""Intervals of shares over one finding or several, with equal weight for every finding."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from heatcheck.stats.resampling.bca import NO_PATIENT, NO_VALUE, Interval
from heatcheck.stats.resampling.studentised import (
    Linearised,
    linearised_macro,
    linearised_ratios,
    studentised_intervals,
    t_intervals,
)


def mean_share_interval(
    parts: Float[np.ndarray, "patients findings"],
    wholes: Float[np.ndarray, "patients findings"],
    draws: int,
    generator: np.random.Generator,
) -> Interval:
    """The mean over findings of part / whole, each summed over patients; its limits lie between 0 and 1.

    With pixel counts: (true positives, these and false positives) is precision, (true positives, these and false
    negatives) recall, (true negatives, these and false positives) specificity, over all images.
    """
    if not len(parts):
        return Interval(np.nan, reason=NO_PATIENT)
    if not wholes.sum(0).all():
        return Interval(np.nan, reason=NO_VALUE)
    return share_intervals(linearised_ratios(parts, wholes), parts.shape[1], draws, generator)[0]


def share_intervals(
    by_finding: Linearised, findings: int, draws: int, generator: np.random.Generator
) -> tuple[Interval, ...]:
    """The intervals of means over findings of values between 0 and 1, laid out as `linearised_macro` expects them.

    One finding has the interval that it has by itself.
    """
    intervals = (
        studentised_intervals(by_finding, draws, generator)
        if findings == 1
        else t_intervals(linearised_macro(by_finding, findings))
    )
    # NaN stays NaN
    return tuple(
        replace(each, low=float(np.clip(each.low, 0, 1)), high=float(np.clip(each.high, 0, 1))) for each in intervals
    )
