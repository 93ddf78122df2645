"""Statistics of several methods over several findings, with equal weight for every finding.

The columns of the totals are `ClusterTotals.joined` of values laid out method by method, each with all its findings.
"""

import numpy as np
from jaxtyping import Float

from heatcheck.stats.ratios import Totals, means, ratio


def macro_means(totals: Totals, groups: int) -> Float[np.ndarray, "*draws groups"]:
    """Each method's mean of its means per finding; `groups` is the number of methods."""
    column_means = means(totals)
    return np.asarray(column_means.reshape(*column_means.shape[:-1], groups, -1).mean(-1))


def mean_share(totals: Float[np.ndarray, "*draws columns"]) -> Float[np.ndarray, "*draws"]:
    """The mean of part / (part + rest): the first half of the columns are the parts, the second half the rests.

    With pixel counts: (true, false positives) is precision, (true positives, false negatives) recall, (true
    negatives, false positives) specificity, over all images.
    """
    parts, rests = np.split(totals, 2, axis=-1)
    return np.asarray(ratio(parts, parts + rests).mean(-1))
