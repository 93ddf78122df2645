import itertools

import numpy as np
import pytest

from heatcheck.maps.smooth import box_smooth, kernel_size


def random_map(*shape):
    return np.random.default_rng(3).random(shape, dtype=np.float32)


def brute_force_box(values, size):
    padded = np.pad(values.astype(np.float64), size, mode="reflect")
    smooth = np.empty(values.shape)
    for position in itertools.product(*map(range, values.shape)):
        starts = [p + size - size // 2 for p in position]
        smooth[position] = padded[tuple(slice(s, s + size) for s in starts)].mean()
    return smooth


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(20, 13), (7, 20, 8)])
def test_each_value_is_the_mean_of_a_box_mirrored_at_the_border(shape, size):
    values = random_map(*shape)
    np.testing.assert_allclose(box_smooth(values, size / 20), brute_force_box(values, size), atol=1e-6)


def test_box_is_a_fraction_of_the_longer_side():
    assert kernel_size((1500, 2000), 0.05) == 100
    assert kernel_size((2000, 1500), 0.05) == 100
    assert kernel_size((10, 10), 0.01) == 1


def test_fraction_of_zero_leaves_the_map_unchanged():
    values = random_map(6, 6)
    np.testing.assert_array_equal(box_smooth(values, 0.0), values)


@pytest.mark.parametrize("fraction", [-0.1, 1.5, float("nan")])
def test_fraction_beyond_the_image_is_refused(fraction):
    with pytest.raises(ValueError, match="fraction of the image's side"):
        box_smooth(random_map(6, 6), fraction)


@pytest.mark.parametrize("shape", [(200, 300), (12, 30, 20), (1, 30, 20)])
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.9, 1.0])
def test_smoothed_map_never_leaves_the_range_from_zero_to_one(shape, fraction):
    # spikes of very different heights: running sums over them do not return to exactly 0
    spikes = np.where(random_map(*shape) > 0.9, 10.0 ** (-20 * random_map(*shape[::-1]).T), 0).astype(np.float32)
    for values in (spikes, 1 - spikes):
        smoothed = box_smooth(values, fraction)
        assert smoothed.dtype == np.float32
        assert smoothed.min() >= 0
        assert smoothed.max() <= 1
