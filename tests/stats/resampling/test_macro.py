"""Every finding counts the same."""

import numpy as np

from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.macro import macro_means

NAN = np.nan
# two methods, two findings: columns are (first f, first g, second f, second g)
VALUES = np.array([[1.0, NAN, 0.0, NAN], [1.0, NAN, 1.0, NAN], [1.0, 0.5, 0.5, 0.25]])


def totals():
    return cluster_totals(VALUES, np.array(["a", "a", "b"])).joined.sum(0)


def test_macro_means_by_hand():
    np.testing.assert_allclose(macro_means(totals(), 2), [(1 + 0.5) / 2, (0.5 + 0.25) / 2])


def test_many_draws_at_once_equal_each_alone():
    rows = np.stack([totals(), 2 * totals() + 1])
    np.testing.assert_allclose(macro_means(rows, 2)[1], macro_means(rows[1], 2))
