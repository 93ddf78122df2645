"""Statistics of several methods over several findings, with equal weight for every finding.

The columns of the totals are `ClusterTotals.joined` of values laid out method by method, each with all its findings.
"""

import numpy as np
from jaxtyping import Float

from heatcheck.stats.ratios import Totals, Values, means, ratio


def macro_means(totals: Totals, groups: int) -> Float[np.ndarray, "*draws groups"]:
    """Each method's mean of its means per finding; `groups` is the number of methods."""
    column_means = means(totals)
    return np.asarray(column_means.reshape(*column_means.shape[:-1], groups, -1).mean(-1))


def macro_differences(totals: Totals, groups: int) -> Values:
    """Each later method's macro mean less that of the first."""
    by_method = macro_means(totals, groups)
    return np.asarray(by_method[..., 1:] - by_method[..., :1])


def macro_decreases(totals: Totals, groups: int) -> Values:
    """How far each later method's macro mean falls short of the first method's, as a fraction of the first's."""
    by_method = macro_means(totals, groups)
    first = by_method[..., :1]
    return ratio(first - by_method[..., 1:], first)


def macro_weighted(values: Float[np.ndarray, "cases findings"]) -> Float[np.ndarray, " cases"]:
    """One number per case, whose sum over all cases is the macro mean of the columns; NaN for a case without values."""
    defined = ~np.isnan(values)
    weights = 1 / (np.maximum(defined.sum(0), 1) * max(1, int(defined.any(0).sum())))
    summed = np.where(defined, values * weights, 0).sum(1)
    return np.where(defined.any(1), summed, np.nan)


def mean_share(totals: Float[np.ndarray, "*draws columns"]) -> Float[np.ndarray, "*draws"]:
    """The mean of part / (part + rest): the first half of the columns are the parts, the second half the rests.

    With pixel counts: (true, false positives) is precision, (true positives, false negatives) recall, (true
    negatives, false positives) specificity, over all images.
    """
    parts, rests = np.split(totals, 2, axis=-1)
    return np.asarray(ratio(parts, parts + rests).mean(-1))
