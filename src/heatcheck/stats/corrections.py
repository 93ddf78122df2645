"""Corrections of p-values for multiple testing."""

import numpy as np
from jaxtyping import Float


def holm(p_values: Float[np.ndarray, " tests"]) -> Float[np.ndarray, " tests"]:
    """The p-values after Holm's step-down correction, in their order; undefined ones stay NaN and do not count.

    Holm 1979, Scandinavian Journal of Statistics 6:65.
    """
    defined = np.flatnonzero(~np.isnan(p_values))
    if not np.all((p_values[defined] >= 0) & (p_values[defined] <= 1)):
        raise ValueError("p-values must lie between 0 and 1, or be NaN where a test is undefined")
    order = defined[np.argsort(p_values[defined], kind="stable")]
    stepped = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(p_values.shape, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted
