"""Correlations by hand, against SciPy, and what their intervals know of patients."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from heatcheck.stats import correlation
from heatcheck.stats.correlation import FEW_ROWS, correlations
from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.clusters import resampled_weights


def correlated(values, patients=None, draws=200, seed=1):
    patients = np.arange(len(values)) if patients is None else patients
    return correlations(np.asarray(values, float), patients, draws, np.random.default_rng(seed))


def test_both_correlations_by_hand():
    # about their means: −1, 0, 1 and −2, −1, 3, so 5 / √(2 · 14); the order agrees without an exception
    both = correlated([[1, 0], [2, 1], [3, 5]])
    assert both.pearson[0].value == pytest.approx(5 / math.sqrt(28))
    assert both.spearman[0].value == pytest.approx(1)
    assert (both.n_cases, both.n_patients, both.n_undefined) == (3, 3, 0)


@pytest.mark.parametrize("digits", [1, 12])
def test_every_pair_of_columns_is_as_scipy_has_it(digits):
    generator = np.random.default_rng(2)
    values = np.round(
        generator.normal(size=(300, 1)) + generator.normal(size=(300, 4)), digits
    )  # with and without ties
    values[5, 1] = values[9, 3] = np.nan
    both = correlated(values)
    known = values[~np.isnan(values).any(1)]
    for (i, j), pearson, spearman in zip(combinations(range(4), 2), both.pearson, both.spearman, strict=True):
        assert pearson.value == pytest.approx(stats.pearsonr(known[:, i], known[:, j])[0], rel=1e-9)
        assert spearman.value == pytest.approx(stats.spearmanr(known[:, i], known[:, j])[0], rel=1e-9)
    assert (both.n_cases, both.n_undefined) == (298, 2)


def test_a_draw_is_the_correlation_of_the_rows_that_were_drawn():
    generator = np.random.default_rng(3)
    patients = generator.integers(0, 12, 80)
    values = np.round(generator.normal(size=(80, 1)) + generator.normal(size=(80, 2)), 1)
    codes = np.unique(patients, return_inverse=True)[1]
    totals, of_totals = correlation._products(values, codes, 12)
    of_weights = correlation._rank_correlations(values, codes)
    for weights in next(iter(resampled_weights(12, 5, generator))):
        drawn = np.repeat(values, weights[codes].astype(int), axis=0)
        assert of_totals(weights @ totals)[0] == pytest.approx(stats.pearsonr(*drawn.T)[0])
        assert of_weights(weights)[0] == pytest.approx(stats.spearmanr(*drawn.T)[0])


def test_ranks_of_many_rows_share_steps_and_hardly_change(monkeypatch):
    generator = np.random.default_rng(4)
    values = generator.normal(size=(3000, 1)) + generator.normal(size=(3000, 2))
    wanted = stats.spearmanr(*values.T)[0]
    patients = np.arange(3000) % 50

    def both():
        drawn = correlation._rank_correlations(values, patients)(np.ones(50))[0]
        return drawn, correlated(values, patients, draws=20).spearman[0].value

    assert both() == pytest.approx((wanted, wanted), rel=1e-4)
    monkeypatch.setattr(correlation, "MOST_STEPS", 10)
    coarse, exact = both()
    assert coarse != pytest.approx(wanted, rel=1e-4)
    assert coarse == pytest.approx(wanted, rel=0.03)
    assert exact == pytest.approx(wanted, rel=1e-9)  # only draws are ranked in steps


def test_rows_that_repeat_their_patient_do_not_make_the_interval_narrower():
    generator = np.random.default_rng(5)
    values = generator.normal(size=(40, 1)) + generator.normal(size=(40, 2))
    once = correlated(values, draws=500)
    often = correlated(np.tile(values, (5, 1)), np.tile(np.arange(40), 5), draws=500)
    for kind in ("pearson", "spearman"):
        one, five = getattr(once, kind)[0], getattr(often, kind)[0]
        assert (one.low, one.high) == pytest.approx((five.low, five.high), abs=1e-9)
        assert one.low < one.value < one.high


@pytest.mark.slow
def test_intervals_hold_the_truth_about_as_often_as_they_say():
    generator = np.random.default_rng(6)
    held = {"pearson": 0, "spearman": 0}
    truth = {"pearson": 0.5, "spearman": 6 / math.pi * math.asin(0.25)}  # of two normal variables
    for _ in range(100):
        common = generator.normal(size=(60, 1))
        patients = np.repeat(np.arange(60), 2)
        values = np.repeat(common + generator.normal(size=(60, 2)), 2, axis=0)
        both = correlated(values, patients, draws=200)
        for kind in held:
            one = getattr(both, kind)[0]
            held[kind] += one.low <= truth[kind] <= one.high
    assert min(held.values()) >= 87  # of 95; rows taken for independent would hold it in about 83


def test_what_has_no_correlation_says_why():
    assert correlated([[1, 2], [2, 1]]).pearson[0].reason == FEW_ROWS
    assert correlated(np.full((9, 2), np.nan)).spearman[0].reason == FEW_ROWS
    constant = correlated(np.stack([np.full(9, 0.1), np.arange(9.0)], 1))
    assert [constant.pearson[0].reason, constant.spearman[0].reason] == [NO_VALUE, NO_VALUE]
    assert math.isnan(constant.spearman[0].value)
    alone = correlated([[1, 0], [2, 1], [3, 5]], np.zeros(3))
    assert alone.pearson[0].reason == ONE_PATIENT
    assert alone.spearman[0].value == pytest.approx(1)


class UnfilledMemory:
    """numpy, whose new arrays hold signalling NaN until they are filled: to compute with it is a warning."""

    def __getattr__(self, name):
        return self.empty_of if name == "empty" else getattr(np, name)

    @staticmethod
    def empty_of(shape):
        return np.full(shape, 0x7FF0000000000001, np.uint64).view(float)


def test_memory_that_nobody_filled_takes_no_part(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(12, 3))
    expected = correlations(rows, np.arange(12), 50, np.random.default_rng(0))
    monkeypatch.setattr(correlation, "np", UnfilledMemory())
    assert correlations(rows, np.arange(12), 50, np.random.default_rng(0)) == expected
