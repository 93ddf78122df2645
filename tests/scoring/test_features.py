"""What a map looks like, by hand and against scipy."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from heatcheck.core.records import Case, CaseKey
from heatcheck.metrics.features import agreements, concentration, small_copy
from heatcheck.scoring.features import feature_rows
from heatcheck.studies.localization.vocabulary import MAP_FEATURES


def test_heat_without_a_hot_spot_has_a_tenth_in_its_hottest_tenth():
    assert concentration(np.full((10, 10), 0.7, np.float32)) == 0.1
    one = np.zeros((10, 10), np.float32)
    one[3, 4] = 5
    assert concentration(one) == 1
    ramp = np.arange(100, dtype=np.float32).reshape(10, 10)
    assert concentration(ramp) == pytest.approx(sum(range(90, 100)) / sum(range(100)))
    assert concentration(ramp + 50) == pytest.approx(concentration(ramp))  # the minimum is no heat


def test_agreement_is_the_mean_rank_correlation_with_the_others():
    generator = np.random.default_rng(0)
    one = generator.random((8, 9))
    maps = {"one": one, "alike": np.exp(3 * one), "noisy": one + 0.5 * generator.random((8, 9)), "flat": one * 0}
    found = agreements(maps)
    noisy = spearmanr(one.ravel(), maps["noisy"].ravel()).statistic
    assert found["one"] == pytest.approx((1 + noisy + 0) / 3)  # an empty map agrees with none
    assert found["flat"] == 0
    assert agreements({"one": one, "opposite": -one}) == {"one": 0, "opposite": 0}
    assert math.isnan(agreements({"one": one})["one"])


@pytest.mark.parametrize("shape", [(200, 130), (20, 30), (40, 30, 26)])
def test_a_small_copy_keeps_the_mean_and_the_shape_of_small_maps(shape):
    values = np.random.default_rng(1).random(shape).astype(np.float32)
    small = small_copy(values)
    most = 64 if len(shape) == 2 else 24
    assert small.shape == tuple(min(side, most) for side in shape)
    assert small.mean() == pytest.approx(values.mean(), abs=0.01)


@pytest.mark.parametrize(("label", "rows"), [(1.0, 4), (0.0, 4), (math.nan, 0), (-1.0, 0)])
def test_answers_that_may_be_right_or_wrong_have_features(label, rows):
    case = Case(CaseKey("c", "p", {"f": label}), np.zeros((1, 4, 4), np.float32), {})
    maps = {"a": np.eye(4, dtype=np.float32), "b": np.ones((4, 4), np.float32)}
    found = list(feature_rows(case, "f", maps, "model"))
    assert len(found) == rows
    assert {row.metric for row in found} <= set(MAP_FEATURES)


def test_the_concentration_of_several_modalities_is_the_share_of_the_hottest_tenth():
    flat, spot = np.ones((2, 10, 10)), np.zeros((2, 10, 10))
    spot[0, :2] = 5.0  # 20 of 200 positions
    assert concentration(flat) == pytest.approx(0.1)
    assert concentration(spot) == 1.0
    assert concentration(np.zeros((2, 10, 10))) == 0.1
    half = flat.copy()
    half[0, :2], half[1, 0, 0] = 9.0, 0.0
    assert concentration(half) == pytest.approx(180 / (180 + 179))


def test_the_agreement_of_several_modalities_is_the_mean_rank_correlation_with_the_others():
    generator = np.random.default_rng(1)
    a, b, c = generator.random((3, 2, 6, 6))
    found = agreements({"a": a, "b": b, "c": c})
    with_b, with_c = (spearmanr(a.ravel(), other.ravel()).statistic for other in (b, c))
    assert found["a"] == pytest.approx((max(with_b, 0) + max(with_c, 0)) / 2)
    assert agreements({"a": a, "same": 3 * a + 1})["a"] == pytest.approx(1)
    assert agreements({"a": a, "flat": np.ones((2, 6, 6))}) == {"a": 0, "flat": 0}
    assert np.isnan(agreements({"a": a})["a"])
