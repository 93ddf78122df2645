"""Statistics of totals: each maps totals[..., columns] to one or several numbers, for many draws at once.

Undefined ratios are NaN. For means and what follows from them, the columns are `ClusterTotals.joined`: all sums, then
all counts.
"""

import numpy as np
from jaxtyping import Float

Totals = Float[np.ndarray, "*draws columns"]
Values = Float[np.ndarray, "*draws values"]


def means(totals: Totals) -> Values:
    """The mean of each column."""
    sums, counts = np.split(totals, 2, axis=-1)
    return ratio(sums, counts)


def differences_from_first(totals: Totals) -> Values:
    """Each later column's mean less the first column's."""
    column_means = means(totals)
    return np.asarray(column_means[..., 1:] - column_means[..., :1])


def decreases_from_first(totals: Totals) -> Values:
    """How far each later column's mean falls short of the first column's, as a fraction of the first's.

    Unstable where the first mean is near 0: report the difference with it.
    """
    column_means = means(totals)
    first = column_means[..., :1]
    return ratio(first - column_means[..., 1:], first)


def first_share(totals: Totals) -> Float[np.ndarray, "*draws"]:
    """The first column's total over the total of all columns.

    With pixel counts: (true, false positives) is precision, (true positives, false negatives) recall, (true
    negatives, false positives) specificity over all images.
    """
    return ratio(totals[..., 0], totals.sum(axis=-1))


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The quotient, element by element; NaN where the denominator is 0."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    return np.asarray(np.divide(numerator, denominator, out=np.full(shape, np.nan), where=denominator != 0))
