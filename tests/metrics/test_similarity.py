import math

import numpy as np
import pytest
from scipy.stats import pearsonr
from skimage.metrics import structural_similarity

from heatcheck.core.errors import UnknownNameError
from heatcheck.metrics.registry import METRIC_FACTS, Needs
from heatcheck.metrics.similarity import NO_CONTRAST, RECOMMENDED, TOO_SMALL, similarities

ALL = (*RECOMMENDED, "mutual_information_paper")


def stretched(values):
    return (values - values.min()) / (values.max() - values.min())


def some_maps(shape, count=3, seed=0):
    """Maps that have something to do with each other, of several scales."""
    generator = np.random.default_rng(seed)
    shared = generator.random(shape)
    maps = [generator.random(shape) + number * shared for number in range(count)]
    return (np.array(maps) * np.array([1, 50, 1e-3])[:count].reshape(-1, *[1] * len(shape)) - 2).astype(np.float32)


def test_correlation_and_one_window_worked_by_hand():
    """Already between 0 and 1: means 1/2 and 1/2, variances 1/4 and 1/8, covariance 1/8."""
    maps = np.array([[[0, 0], [1, 1]], [[0, 0.5], [0.5, 1]]], np.float32)
    result = similarities(maps, ["cross_correlation", "ssim_global"])
    assert result.of("cross_correlation", 0, 1).value == pytest.approx((1 / 8) / math.sqrt((1 / 4) * (1 / 8)))
    assert result.of("ssim_global", 0, 1).value == pytest.approx((2 / 8 + 0.0009) / (3 / 8 + 0.0009))


@pytest.mark.parametrize("shape", [(20, 31), (9, 8, 11)])
def test_measures_are_those_of_scipy_and_scikit_image(shape):
    maps = some_maps(shape)
    result = similarities(maps)
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        a, b = (stretched(maps[number].astype(np.float64)) for number in (one, other))
        assert result.of("cross_correlation", one, other).value == pytest.approx(pearsonr(a.ravel(), b.ravel())[0])
        judge = structural_similarity(
            a, b, win_size=7, data_range=1, gaussian_weights=False, use_sample_covariance=True
        )
        assert result.of("ssim", one, other).value == pytest.approx(judge, abs=1e-9)


def test_one_window_is_the_papers_formula():
    maps = some_maps((20, 31))
    a, b = (stretched(maps[number].astype(np.float64)) for number in (1, 2))
    shared = np.mean((a - a.mean()) * (b - b.mean()))
    expected = (2 * a.mean() * b.mean() + 0.01**2) * (2 * shared + 0.03**2)
    expected /= (a.mean() ** 2 + b.mean() ** 2 + 0.01**2) * (a.var() + b.var() + 0.03**2)
    assert similarities(maps).of("ssim_global", 1, 2).value == pytest.approx(expected)


@pytest.mark.parametrize("name", ALL)
def test_measure_is_symmetric_and_does_not_depend_on_scale_and_shift(name):
    maps = np.round(some_maps((24, 24)), 2).astype(np.float64)
    values = similarities(maps, [name]).values[name]
    np.testing.assert_allclose(values, values.T, atol=1e-14)
    moved = maps * np.array([4, 0.5, 8]).reshape(3, 1, 1) + 16
    np.testing.assert_allclose(similarities(moved, [name]).values[name], values, atol=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_measures_of_a_pair_do_not_depend_on_the_maps_and_measures_beside_it(name):
    maps = some_maps((24, 24))
    alone = similarities(maps[1:], [name]).values[name]
    np.testing.assert_allclose(similarities(maps, ALL).values[name][1:, 1:], alone, atol=1e-14)


def test_equal_maps_are_as_alike_as_can_be():
    twice = np.repeat(some_maps((24, 24))[1:2], 2, axis=0) * np.array([1, 2]).reshape(2, 1, 1)
    result = similarities(twice, ALL)
    for name in ("normalised_mutual_information", "cross_correlation", "ssim", "ssim_global"):
        np.testing.assert_allclose(result.values[name], 1, atol=1e-9)
    unlike = similarities(some_maps((24, 24)))
    for name in RECOMMENDED:
        assert result.values[name][0, 1] > unlike.values[name][1, 2] > unlike.values[name][0, 1]


def test_independent_noise_shares_nothing_once_chance_is_taken_out():
    """The null's own spread is √(2·31²)/2n = 0.0013 nats for 128×128 pixels."""
    generator = np.random.default_rng(7)
    maps = np.concatenate([generator.random((4, 128, 128)), generator.standard_normal((4, 128, 128))])
    result = similarities(maps, ["mutual_information", "normalised_mutual_information"])
    pairs = np.triu_indices(8, 1)
    beyond = result.values["mutual_information"][pairs]
    assert np.abs(beyond).max() < 5 * 0.0014
    assert abs(beyond.mean()) < 4 * 0.0014 / math.sqrt(len(beyond))
    assert np.abs(result.values["normalised_mutual_information"][pairs]).max() < 0.003
    assert beyond.min() < 0 < beyond.max()


def test_256_levels_as_published_find_one_and_a_half_nats_in_independent_noise():
    maps = np.random.default_rng(7).random((3, 128, 128))
    values = similarities(maps, ["mutual_information_paper"]).values["mutual_information_paper"]
    assert values[np.triu_indices(3, 1)] == pytest.approx(1.53, abs=0.02)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_map_without_contrast_is_alike_to_nothing_and_says_why(value):
    maps = some_maps((24, 24))
    maps[1] = value
    result = similarities(maps, ALL)
    without = similarities(maps[[0, 2]], ALL)
    for name in ALL:
        assert result.of(name, 0, 1).reason == result.of(name, 1, 1).reason == NO_CONTRAST
        assert math.isnan(result.of(name, 0, 1).value)
        assert result.of(name, 0, 2) == without.of(name, 0, 1)
    assert result.flat == (False, True, False)


def test_maps_smaller_than_a_window_have_no_ssim_and_say_why():
    result = similarities(some_maps((6, 30)))
    assert result.of("ssim", 0, 1).reason == TOO_SMALL
    assert result.of("ssim_global", 0, 1).reason == ""


def test_only_maps_without_contrast_leave_everything_undefined():
    result = similarities(np.ones((2, 8, 8), np.float32), ALL)
    assert all(np.isnan(values).all() for values in result.values.values())


def test_wrong_input_is_refused_in_one_sentence():
    with pytest.raises(UnknownNameError, match="'sim'; did you mean 'ssim'"):
        similarities(some_maps((8, 8)), ["sim"])
    with pytest.raises(ValueError, match=r"a stack of 2D or 3D maps, got shape \(8, 8\)"):
        similarities(np.ones((8, 8), np.float32))
    with pytest.raises(ValueError, match="finite numbers only"):
        similarities(np.full((2, 8, 8), np.nan, np.float32))


def test_maps_are_left_as_they_were_and_every_measure_is_explained():
    maps = some_maps((8, 8)).astype(np.float64)
    before = maps.copy()
    similarities(maps, ALL)
    np.testing.assert_array_equal(maps, before)
    assert {name for name, facts in METRIC_FACTS.items() if facts.needs is Needs.MAPS} == set(ALL)
