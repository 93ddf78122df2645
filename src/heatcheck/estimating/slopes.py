"""Slopes of scores on features: intervals that hold together, and the slope that matters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heatcheck.core.records import Estimate
from heatcheck.estimating.estimates import fill
from heatcheck.stats.regression import Fit

_LEVEL = 0.95
_USUAL_RANGE = (10, 90)  # percentiles: what a feature usually ranges over
ALL_POSSIBLE = "so few patients decide the slope that its interval would hold every possible change"


@dataclass(frozen=True, slots=True)
class Slope:
    """A fitted slope that is not yet corrected for the others."""

    template: Estimate  # with everything but the numbers
    fit: Fit
    largest: float = math.inf  # the largest change of the score that is possible, in either direction

    @property
    def row(self) -> Estimate:
        """The slope with an interval of its own."""
        return self._within(fill(self.template, self.fit))

    def at_level(self, level: float) -> Estimate:
        """The slope with an interval of another level."""
        return self._within(fill(self.template, self.fit.at_level(level)))

    def _within(self, row: Estimate) -> Estimate:
        """The row with its interval cut at what is possible; with none where nothing possible would lie outside."""
        if row.low <= -self.largest and row.high >= self.largest:
            return replace(row, low=math.nan, high=math.nan, p_value=math.nan, reason=ALL_POSSIBLE)
        most = max(self.largest, abs(row.value))  # a feature that hardly varies has slopes beyond the range
        return replace(row, low=max(-most, row.low), high=min(most, row.high)) if row.low <= row.high else row


def corrected_slopes(slopes: Sequence[Slope], family: str) -> list[Estimate]:
    """The slopes with intervals that hold together and p-values to match (Bonferroni).

    The fits of one family differ in their rows and their models, so no draw is common to them.
    """
    tests = sum(not math.isnan(slope.fit.p_value) for slope in slopes)
    rows = []
    for slope in slopes:
        if math.isnan(slope.fit.p_value):
            rows.append(replace(slope.row, family=family))
            continue
        row = slope.at_level(1 - (1 - _LEVEL) / tests)
        p_adjusted = math.nan if math.isnan(row.p_value) else min(1.0, tests * row.p_value)
        rows.append(replace(row, p_adjusted=p_adjusted, family=family))
    return rows


def usual_range(feature: np.ndarray) -> float:
    """From the 10th to the 90th percentile of a feature; 1, its whole range, where it hardly varies."""
    known = feature[~np.isnan(feature)]
    low, high = np.percentile(known, _USUAL_RANGE) if known.size else (math.nan, math.nan)
    return float(high - low) if high > low else 1.0
