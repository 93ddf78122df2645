"""Estimates filled with the numbers of a result, the words of their reasons, and p-values corrected together."""

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


def fill(blank: Estimate, found: Interval | MeanEstimate | NestedEstimate | Fit, reason: str | None = None) -> Estimate:
    """The blank with every number that the result has, and with its reason unless another one is given."""
    numbers = {field.name: getattr(found, field.name) for field in fields(found) if field.name in _COLUMNS}
    return replace(blank, **numbers | ({} if reason is None else {"reason": reason}))


def joined(*reasons: str) -> str:
    """The reasons that say something, in one line."""
    return "; ".join(filter(None, reasons))


def coverage(known: int, every: int, what: str = "findings") -> str:
    """How many of all an estimate rests on, such as "over 3 of 5 findings"; nothing where it rests on all."""
    return f"over {known} of {every} {what}" if known < every else ""


def corrected(tests: Sequence[Estimate], family: str) -> list[Estimate]:
    """The tests with their p-values corrected for one another."""
    adjusted = holm(np.array([test.p_value for test in tests], float))
    return [replace(test, p_adjusted=float(p), family=family) for test, p in zip(tests, adjusted, strict=True)]
