"""Statistics of several methods over several findings, in which every finding counts the same.

The totals' columns are `ClusterTotals.joined` of values laid out method by method, each with all its findings.
"""

import numpy as np
from jaxtyping import Float

from heatcheck.stats.ratios import Totals, Values, means


def macro_means(totals: Totals, groups: int) -> Float[np.ndarray, "*draws groups"]:
    """Each method's mean over the findings' means."""
    each = means(totals)
    return np.asarray(each.reshape(*each.shape[:-1], groups, -1).mean(-1))


def macro_differences(totals: Totals, groups: int) -> Values:
    """Each later method's macro mean less the first one's."""
    each = macro_means(totals, groups)
    return np.asarray(each[..., 1:] - each[..., :1])


def macro_decreases(totals: Totals, groups: int) -> Values:
    """How far each later method's macro mean falls short of the first one's, as a fraction of the first's."""
    each = macro_means(totals, groups)
    first = np.broadcast_to(each[..., :1], each[..., 1:].shape)
    return np.asarray(np.divide(first - each[..., 1:], first, out=np.full(first.shape, np.nan), where=first != 0))


def macro_weighted(values: Float[np.ndarray, "cases findings"]) -> Float[np.ndarray, " cases"]:
    """One number per case such that their sum is the macro mean of the columns; NaN for a case without any value."""
    defined = ~np.isnan(values)
    weights = 1 / (np.maximum(defined.sum(0), 1) * max(1, int(defined.any(0).sum())))
    summed = np.where(defined, values * weights, 0).sum(1)
    return np.where(defined.any(1), summed, np.nan)


def mean_share(totals: Float[np.ndarray, "*draws columns"]) -> Float[np.ndarray, "*draws"]:
    """The parts' shares, averaged: the first half of the columns are the parts, the second half what is left of each.

    With pixel counts: (true, false positives) is precision, (true positives, false negatives) recall, (true
    negatives, false positives) specificity, over all images.
    """
    parts, rests = np.split(totals, 2, axis=-1)
    whole = parts + rests
    shares = np.divide(parts, whole, out=np.full(whole.shape, np.nan), where=whole != 0)
    return np.asarray(shares.mean(-1))
