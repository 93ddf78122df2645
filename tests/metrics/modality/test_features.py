import numpy as np
import pytest
from scipy.stats import spearmanr

from heatcheck.metrics.modality.features import agreements, concentration, small_copy


def test_a_small_copy_has_means_over_blocks_and_one_channel_for_every_modality():
    values = np.arange(2 * 128 * 128, dtype=float).reshape(2, 128, 128)
    small = small_copy(values, 2)
    assert small.shape == (2, 64, 64)
    assert small[1, 3, 5] == pytest.approx(values[1, 6:8, 10:12].mean())
    assert small.mean() == pytest.approx(values.mean())
    one = small_copy(np.ones((1, 30, 30, 50)), 4)
    assert one.shape == (4, 24, 24, 24)
    assert (one == 1).all()


def test_concentration_is_the_share_of_the_hottest_tenth():
    flat, spot = np.ones((2, 10, 10)), np.zeros((2, 10, 10))
    spot[0, :2] = 5.0  # 20 of 200 positions
    assert concentration(flat) == pytest.approx(0.1)
    assert concentration(spot) == 1.0
    assert concentration(np.zeros((2, 10, 10))) == 0.1
    half = flat.copy()
    half[0, :2] = 9.0  # 180 of 360
    assert concentration(half) == pytest.approx(0.5)


def test_agreement_is_the_mean_rank_correlation_with_the_others():
    generator = np.random.default_rng(1)
    a, b, c = generator.random((3, 2, 6, 6))
    found = agreements({"a": a, "b": b, "c": c})
    with_b, with_c = (spearmanr(a.ravel(), other.ravel()).statistic for other in (b, c))
    assert found["a"] == pytest.approx((with_b + with_c) / 2)
    assert agreements({"a": a, "same": 3 * a + 1})["a"] == pytest.approx(1)
    assert agreements({"a": a, "flat": np.ones((2, 6, 6))}) == {"a": 0, "flat": 0}
    assert np.isnan(agreements({"a": a})["a"])
