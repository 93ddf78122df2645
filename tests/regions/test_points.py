import numpy as np
import pytest

from heatcheck.regions.points import peaks


@pytest.mark.parametrize("shape", [(5, 7), (3, 5, 7)])
def test_single_maximum_is_the_only_peak(shape):
    raw = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    tied = peaks(raw)
    assert tied.sum() == 1
    assert tied.ravel()[raw.argmax()]


def test_tied_maxima_are_all_peaks():
    raw = np.array([[1.0, 4.0, 2.0], [4.0, 0.0, 4.0]])
    np.testing.assert_array_equal(peaks(raw), [[False, True, False], [True, False, True]])


def test_constant_map_peaks_everywhere():
    assert peaks(np.full((3, 4), -2.0)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_map_without_a_finite_maximum_is_refused(bad):
    with pytest.raises(ValueError, match="finite numbers only"):
        peaks(np.array([[0.0, bad]]))
