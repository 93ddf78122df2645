"""Estimates filled in from statistical results, their reasons, and corrected p-values."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from heatcheck.core.records import Estimate
from heatcheck.stats.corrections import holm
from heatcheck.stats.regression import Fit
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import MeanEstimate
from heatcheck.stats.resampling.nested import NestedEstimate

_COLUMNS = frozenset(field.name for field in fields(Estimate))


def fill(
    estimate: Estimate, result: Interval | MeanEstimate | NestedEstimate | Fit, reason: str | None = None
) -> Estimate:
    """The estimate with every number of the result, and with its reason unless another one is passed."""
    numbers = {field.name: getattr(result, field.name) for field in fields(result) if field.name in _COLUMNS}
    return replace(estimate, **numbers | ({} if reason is None else {"reason": reason}))


def joined(*reasons: str) -> str:
    """The reasons that are not empty, in one line."""
    return "; ".join(filter(None, reasons))


def coverage(known: int, every: int, what: str = "findings") -> str:
    """What an estimate rests on, such as "over 3 of 5 findings"; empty if it rests on all."""
    return f"over {known} of {every} {what}" if known < every else ""


def corrected(tests: Sequence[Estimate], family: str) -> list[Estimate]:
    """The tests with p-values corrected for multiple testing (Holm)."""
    adjusted = holm(np.array([test.p_value for test in tests], float))
    return [replace(test, p_adjusted=float(p), family=family) for test, p in zip(tests, adjusted, strict=True)]
