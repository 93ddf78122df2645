import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from heatcheck.metrics.classification import weighted_auroc
from heatcheck.stats.ratios import decreases_from_first, differences_from_first, first_share, means
from heatcheck.stats.resampling import clusters
from heatcheck.stats.resampling.bca import NO_PATIENT, ONE_PATIENT, ONE_VALUE, _acceleration
from heatcheck.stats.resampling.bootstrap import bca_from_case_weights, bca_from_weights, bca_interval, mean_estimates
from heatcheck.stats.resampling.clusters import MOST_GROUPS, cluster_totals

DRAWS = 400


def macro_mean(totals):
    """The mean of the columns' means."""
    return means(totals).mean(-1, keepdims=True)


def generator(seed=0):
    return np.random.default_rng(seed)


def cohort(seed=0, n=60, columns=3, patients=25):
    draw = generator(seed)
    return draw.beta(1, 3, (n, columns)), draw.integers(0, patients, n)


def bounds(intervals):
    return np.array([(i.low, i.high) for i in intervals])


def test_interval_of_independent_cases_is_that_of_scipy_on_the_same_draws():
    values = generator(1).exponential(size=40)
    judge = stats.bootstrap((values,), np.mean, n_resamples=DRAWS, method="BCa", rng=generator(7)).confidence_interval
    totals = cluster_totals(values[:, None], np.arange(40)).joined
    (interval,) = bca_interval(totals, means, DRAWS, generator(7))
    assert interval.value == pytest.approx(values.mean())
    assert (interval.low, interval.high) == pytest.approx((judge.low, judge.high), rel=1e-9)


def test_interval_of_hits_with_many_ties_is_that_of_scipy_on_the_same_draws():
    hits = (generator(2).random(50) < 0.3).astype(float)
    judge = stats.bootstrap((hits,), np.mean, n_resamples=DRAWS, method="BCa", rng=generator(3)).confidence_interval
    (interval,) = bca_interval(cluster_totals(hits[:, None], np.arange(50)).joined, means, DRAWS, generator(3))
    assert (interval.low, interval.high) == pytest.approx((judge.low, judge.high), rel=1e-9)


def test_interval_of_the_area_under_the_curve_is_that_of_scipy_on_the_same_draws():
    labels = np.tile([0.0, 1.0], 20)
    probabilities = np.round(generator(4).random(40) * 0.7 + labels * 0.3, 1)
    judge = stats.bootstrap(
        (labels, probabilities),
        roc_auc_score,
        n_resamples=100,
        method="BCa",
        rng=generator(5),
        paired=True,
        vectorized=False,
    ).confidence_interval
    statistic = partial(weighted_auroc, labels, probabilities)
    (interval,) = bca_from_case_weights(statistic, np.arange(40), 100, generator(5))
    assert interval.value == pytest.approx(roc_auc_score(labels, probabilities))
    assert (interval.low, interval.high) == pytest.approx((judge.low, judge.high), rel=1e-9)


def test_all_images_of_a_patient_are_drawn_together():
    values, patients = cohort(n=30, columns=1, patients=8)
    names = np.unique(patients)
    drawn = generator(6).integers(0, len(names), (DRAWS, len(names)))
    replicates = [np.concatenate([values[patients == names[i], 0] for i in row]).mean() for row in drawn]
    (interval,) = bca_interval(cluster_totals(values, patients).joined, means, DRAWS, generator(6))
    jackknife = np.array([values[patients != name, 0].mean() for name in names])
    deviations = jackknife.mean() - jackknife
    acceleration = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
    higher = np.round(replicates, 12) - np.round(values.mean(), 12)
    bias = stats.norm.ppf(np.mean((higher < 0) + (higher == 0) / 2))  # a draw of every patient once ties
    z = bias + stats.norm.ppf([0.025, 0.975])
    expected = np.quantile(replicates, stats.norm.cdf(bias + z / (1 - acceleration * z)))
    assert (interval.low, interval.high) == pytest.approx(tuple(expected))


def test_second_copy_of_every_image_adds_no_certainty():
    values, _ = cohort()
    once = mean_estimates(values, np.arange(60), DRAWS, generator())
    twice = mean_estimates(np.tile(values, (2, 1)), np.tile(np.arange(60), 2), DRAWS, generator())
    np.testing.assert_allclose(bounds(twice), bounds(once), rtol=1e-12)


def test_columns_are_compared_on_the_same_draws():
    values, patients = cohort(columns=1)
    noise = generator(9).uniform(-1e-6, 1e-6, values.shape)
    shifted = np.hstack([values, values + 0.1 + noise])
    (interval,) = bca_interval(cluster_totals(shifted, patients).joined, differences_from_first, DRAWS, generator())
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.1, 0.1, 0.1), abs=1e-6)
    halved = np.hstack([values, values / 2 + noise])
    (interval,) = bca_interval(cluster_totals(halved, patients).joined, decreases_from_first, DRAWS, generator())
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.5, 0.5, 0.5), abs=1e-5)


def test_one_draw_serves_several_statistics():
    values, patients = cohort()
    totals = cluster_totals(values, patients).joined
    together = bca_interval(
        totals,
        lambda t: np.concatenate([means(t), differences_from_first(t), macro_mean(t)], axis=-1),
        DRAWS,
        generator(),
    )
    alone = [bca_interval(totals, s, DRAWS, generator()) for s in (means, differences_from_first, macro_mean)]
    assert together == sum(alone, ())
    assert len(together) == 6


def test_weights_and_totals_lead_to_the_same_interval():
    values, patients = cohort()
    totals = cluster_totals(values, patients).joined
    by_weights = bca_from_weights(lambda w: means(w @ totals), len(totals), DRAWS, generator())
    np.testing.assert_allclose(bounds(by_weights), bounds(bca_interval(totals, means, DRAWS, generator())), rtol=1e-12)


def test_case_counts_as_often_as_its_patient():
    values, patients = cohort(columns=1)

    def weighted_mean(weights):
        return (weights @ values[:, 0]) / weights.sum(axis=-1)

    by_cases = bca_from_case_weights(weighted_mean, patients, DRAWS, generator())
    by_totals = bca_interval(cluster_totals(values, patients).joined, means, DRAWS, generator())
    np.testing.assert_allclose(bounds(by_cases), bounds(by_totals), rtol=1e-12)


def test_pixel_counts_give_an_interval_for_precision_over_all_images():
    counts = generator(8).integers(0, 1000, (30, 2)).astype(float)
    (interval,) = bca_interval(counts, first_share, DRAWS, generator())
    assert interval.value == pytest.approx(counts[:, 0].sum() / counts.sum())
    assert interval.low < interval.value < interval.high


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([-3.0, -0.5, 0.25, 20.0]), st.floats(-5, 5))
def test_interval_moves_and_scales_with_the_values(seed, factor, shift):
    values, patients = cohort(seed, n=20, columns=1, patients=9)
    (before,) = bca_interval(cluster_totals(values, patients).joined, means, 200, generator())
    (after,) = bca_interval(cluster_totals(factor * values + shift, patients).joined, means, 200, generator())
    expected = sorted([factor * before.low + shift, factor * before.high + shift])
    assert [after.low, after.high] == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_order_of_the_cases_does_not_matter(seed):
    values, patients = cohort(seed)
    order = generator(seed).permutation(len(values))
    shuffled = mean_estimates(values[order], patients[order], 100, generator())
    np.testing.assert_allclose(bounds(shuffled), bounds(mean_estimates(values, patients, 100, generator())), rtol=1e-9)


def test_generator_alone_decides_the_draws():
    values, patients = cohort()
    first, again, other = (mean_estimates(values, patients, DRAWS, generator(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_wider_level_gives_a_wider_interval():
    values, patients = cohort(columns=1)
    (narrow,) = mean_estimates(values, patients, DRAWS, generator(), level=0.8)
    (wide,) = mean_estimates(values, patients, DRAWS, generator(), level=0.99)
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_estimate_says_what_it_rests_on():
    values = np.array([[0.2, np.nan], [0.4, 0.1], [np.nan, 0.3], [0.9, 0.5]])
    first, second = mean_estimates(values, np.array(["a", "a", "b", "c"]), DRAWS, generator())
    assert first.value == pytest.approx(0.5)
    assert (first.n_cases, first.n_patients, first.n_undefined) == (3, 2, 1)
    assert second.value == pytest.approx(0.3)
    assert (second.n_cases, second.n_patients, second.n_undefined) == (3, 3, 1)


def test_patients_without_a_defined_value_take_no_part():
    values, patients = cohort()
    values[np.isin(patients, [0, 3, 4, 11])] = np.nan
    kept = ~np.isnan(values[:, 0])
    everyone = mean_estimates(values, patients, DRAWS, generator())
    fewer = mean_estimates(values[kept], patients[kept], DRAWS, generator())
    np.testing.assert_array_equal(bounds(everyone), bounds(fewer))


def test_interval_of_a_column_does_not_depend_on_the_columns_beside_it():
    values, patients = cohort(columns=4)
    values[::3, 1] = np.nan
    values[patients < 9, 2] = np.nan
    together = mean_estimates(values, patients, DRAWS, generator())
    alone = [mean_estimates(values[:, [i]], patients, DRAWS, generator())[0] for i in range(4)]
    np.testing.assert_allclose(bounds(together), bounds(alone), rtol=1e-12)
    assert [e.n_patients for e in together] == [e.n_patients for e in alone]
    assert len({e.n_patients for e in together}) > 1


def test_one_patient_has_a_mean_and_no_interval():
    (estimate,) = mean_estimates(np.array([[0.2], [0.4]]), np.array(["a", "a"]), DRAWS, generator())
    assert estimate.value == pytest.approx(0.3)
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)
    assert estimate.reason == ONE_PATIENT
    assert bca_from_weights(np.sum, 1, DRAWS, generator())[0].reason == ONE_PATIENT


def test_column_without_a_defined_value_has_nothing_but_a_reason():
    (estimate,) = mean_estimates(np.full((3, 1), np.nan), np.arange(3), DRAWS, generator())
    assert math.isnan(estimate.value)
    assert (estimate.n_cases, estimate.n_patients, estimate.n_undefined) == (0, 0, 3)
    assert estimate.reason == NO_PATIENT


def test_no_cases_at_all_are_no_error():
    (estimate,) = mean_estimates(np.empty((0, 1)), np.array([], dtype=str), DRAWS, generator())
    assert estimate.reason == NO_PATIENT
    assert mean_estimates(np.empty((3, 0)), np.arange(3), DRAWS, generator()) == ()


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1.0, -7.7])
@pytest.mark.parametrize("patients", [np.arange(3), np.arange(41) // 3])
def test_values_that_are_all_the_same_have_a_mean_and_no_interval(constant, patients):
    (estimate,) = mean_estimates(np.full((len(patients), 1), constant), patients, DRAWS, generator())
    assert estimate.value == pytest.approx(constant)
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)
    assert estimate.reason == ONE_VALUE


def test_finding_that_most_draws_miss_has_a_macro_mean_without_an_interval():
    values, _ = cohort(n=20, columns=2)
    values[1:, 1] = np.nan  # a draw misses the one patient with this finding in 36 of 100 cases
    (interval,) = bca_interval(cluster_totals(values, np.arange(20)).joined, macro_mean, DRAWS, generator())
    assert math.isfinite(interval.value)
    assert math.isnan(interval.low)
    assert "draws" in interval.reason


def test_finding_that_few_draws_miss_keeps_its_interval():
    values, _ = cohort(n=20, columns=2)
    values[5:, 1] = np.nan  # missed by 3 draws of 1000
    (interval,) = bca_interval(cluster_totals(values, np.arange(20)).joined, macro_mean, DRAWS, generator())
    assert interval.low < interval.value < interval.high
    assert not interval.reason


def test_given_totals_are_left_as_they_were():
    values, patients = cohort()
    totals = cluster_totals(values, patients).joined
    before = totals.copy()
    bca_interval(totals, means, DRAWS, generator())
    np.testing.assert_array_equal(totals, before)


def rated_patients(n, seed=0):
    """Labels and probabilities of patients with one or two images each."""
    draw = generator(seed)
    patients = np.concatenate([np.arange(n), draw.permutation(n)[: n // 3]])
    labels = (draw.random(len(patients)) < 0.1).astype(float)
    return labels, draw.random(len(patients)) ** 2 * 0.6 + labels * 0.3, patients


def test_jackknife_in_groups_leads_to_the_interval_of_the_full_one(monkeypatch):
    labels, probabilities, patients = rated_patients(3000)
    statistic = partial(weighted_auroc, labels, probabilities)
    (grouped,) = bca_from_case_weights(statistic, patients, DRAWS, generator())
    monkeypatch.setattr(clusters, "MOST_GROUPS", 3000)
    (full,) = bca_from_case_weights(statistic, patients, DRAWS, generator())
    assert grouped != full
    assert grouped.value == full.value
    assert (grouped.low, grouped.high) == pytest.approx((full.low, full.high), abs=0.01 * (full.high - full.low))


def test_acceleration_of_groups_is_that_of_single_patients():
    influence = generator(3).exponential(size=3000)  # skewed: the acceleration is 2 / (6 √3000) = 0.0061
    left_out = np.concatenate([w @ influence / w.sum(1) for w in clusters.left_out_weights(3000, generator())])
    singly = (influence.sum() - influence) / 2999
    assert len(left_out) == MOST_GROUPS
    assert _acceleration(singly) == pytest.approx(0.0061, rel=0.15)
    assert _acceleration(left_out) == pytest.approx(_acceleration(singly), rel=0.15)


def test_sets_of_weights_do_not_grow_with_the_number_of_patients():
    set_sizes = []

    def statistic(weights):
        set_sizes.append(int(np.prod(weights.shape[:-1])))
        return weights[..., 0] / weights.sum(-1)

    for n in (300, 3000, 30_000):
        set_sizes.clear()
        bca_from_weights(statistic, n, 10, generator())
        assert sum(set_sizes) == 1 + 10 + min(n, MOST_GROUPS)
