import numpy as np

from heatcheck.maps.keep import half_precision


def test_tiny_and_huge_values_survive_half_precision():
    values = np.array([[-2.0, 1.0], [0.5, 0.0]], np.float32)
    for scale in (1e-12, 1.0, 1e20):
        kept = half_precision(values * np.float32(scale))
        assert kept.dtype == np.float16
        np.testing.assert_allclose(kept, values / 2, atol=1e-3)


def test_a_map_of_zeros_stays_zero():
    assert not half_precision(np.zeros((3, 3), np.float32)).any()
