import numpy as np

from heatcheck.stats.ratios import decreases_from_first, differences_from_first, first_share, means

# three columns with the means 0.5, 0.25 and 0.75: sums, then counts
TOTALS = np.array([2.0, 2.0, 1.5, 4.0, 8.0, 2.0])


def test_statistics_worked_by_hand():
    np.testing.assert_array_equal(means(TOTALS), [0.5, 0.25, 0.75])
    np.testing.assert_array_equal(differences_from_first(TOTALS), [-0.25, 0.25])
    np.testing.assert_array_equal(decreases_from_first(TOTALS), [0.5, -0.5])
    assert first_share(np.array([3.0, 1.0])) == 0.75


def test_statistics_serve_many_draws_at_once():
    draws = np.stack([TOTALS, 2 * TOTALS, TOTALS])[None]
    for statistic in (means, differences_from_first, decreases_from_first, first_share):
        values = statistic(draws)
        assert values.shape == (1, 3, *statistic(TOTALS).shape)
        np.testing.assert_array_equal(values[0, 1], statistic(TOTALS))


def test_ratios_without_a_denominator_are_undefined_and_the_others_are_not():
    np.testing.assert_array_equal(means(np.array([0.0, 1.0, 0.0, 2.0])), [np.nan, 0.5])
    assert np.isnan(decreases_from_first(np.array([0.0, 1.0, 2.0, 2.0]))).all()
    assert np.isnan(first_share(np.zeros(2)))
