"""Footnotes of a table: each reason is given once, however many cells it explains."""

import math
from dataclasses import dataclass, field

from heatcheck.core.records import Estimate


@dataclass
class Footnotes:
    """The reasons so far with their numbers, counted from 1."""

    reasons: dict[str, int] = field(default_factory=dict)

    def mark(self, reason: str) -> int:
        """The number of the footnote that says this; 0, which is none, when there is nothing to say."""
        return self.reasons.setdefault(reason, len(self.reasons) + 1) if reason else 0


def explained(estimate: Estimate) -> str:
    """Why the estimate, or only its interval, is missing; nothing when there is nothing to explain."""
    if math.isnan(estimate.value):
        return estimate.reason or "undefined, no reason recorded"
    return f"no interval: {estimate.reason}" if estimate.reason and lacks_interval(estimate) else estimate.reason


def lacks_interval(estimate: Estimate) -> bool:
    """Whether an end of the interval is undefined."""
    return math.isnan(estimate.low) or math.isnan(estimate.high)
