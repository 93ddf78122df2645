"""Every finding counts the same."""

import numpy as np
import pytest

from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.macro import macro_decreases, macro_differences, macro_means, macro_weighted

NAN = np.nan
# two methods, two findings: columns are (first f, first g, second f, second g)
VALUES = np.array([[1.0, NAN, 0.0, NAN], [1.0, NAN, 1.0, NAN], [1.0, 0.5, 0.5, 0.25]])


def totals():
    return cluster_totals(VALUES, np.array(["a", "a", "b"])).joined.sum(0)


def test_macro_means_by_hand():
    np.testing.assert_allclose(macro_means(totals(), 2), [(1 + 0.5) / 2, (0.5 + 0.25) / 2])


def test_differences_and_decreases_are_from_the_first_method():
    np.testing.assert_allclose(macro_differences(totals(), 2), [-0.375])
    np.testing.assert_allclose(macro_decreases(totals(), 2), [0.5])


def test_a_decrease_from_nothing_is_undefined():
    values = np.array([[0.0, 0.3], [0.0, 0.5]])
    assert np.isnan(macro_decreases(cluster_totals(values, np.array([1, 2])).joined.sum(0), 2)).all()


def test_many_draws_at_once_equal_each_alone():
    rows = np.stack([totals(), 2 * totals() + 1])
    np.testing.assert_allclose(macro_means(rows, 2)[1], macro_means(rows[1], 2))


def test_weighted_values_sum_to_the_macro_mean():
    generator = np.random.default_rng(0)
    values = np.where(generator.random((50, 4)) < 0.5, np.nan, generator.random((50, 4)))
    assert np.nansum(macro_weighted(values)) == pytest.approx(np.nanmean(values, axis=0).mean())


def test_a_case_without_any_value_has_no_weight():
    assert np.isnan(macro_weighted(np.array([[NAN, NAN], [1.0, NAN]]))).tolist() == [True, False]
