import numpy as np
import pytest

from heatcheck.regions.fixed import fixed_region
from heatcheck.regions.otsu import otsu_region
from heatcheck.regions.rule import RegionRule, region_of

RAMP = np.linspace(0, 1, 11, dtype=np.float32).reshape(1, 11).repeat(3, axis=0)


def test_fixed_threshold_keeps_what_lies_strictly_above_it():
    values = np.array([[0.0, 0.5], [0.75, 1.0]], dtype=np.float32)
    np.testing.assert_array_equal(fixed_region(values, 0.5), [[False, False], [True, True]])
    np.testing.assert_array_equal(fixed_region(values, 0.0), [[False, True], [True, True]])


def test_fixed_threshold_neither_fills_holes_nor_drops_specks():
    values = np.ones((5, 9), dtype=np.float32)
    values[2, 2] = 0
    values[:, 5:] = 0
    values[2, 7] = 1
    np.testing.assert_array_equal(fixed_region(values, 0.3), values == 1)


def test_fixed_threshold_works_on_volumes():
    volume = np.stack([RAMP, RAMP[:, ::-1]])
    np.testing.assert_array_equal(fixed_region(volume, 0.55), volume > 0.55)


def test_rule_selects_the_way_to_a_region():
    np.testing.assert_array_equal(region_of(RAMP, RegionRule("otsu")), otsu_region(RAMP))
    np.testing.assert_array_equal(region_of(RAMP, RegionRule(0.8)), RAMP > 0.8)
    assert otsu_region(RAMP).sum() != (RAMP > 0.8).sum()


def test_map_that_was_not_prepared_is_refused_with_the_step_to_take():
    with pytest.raises(ValueError, match=r"call maps\.prepare first"):
        region_of(RAMP * 3, RegionRule(0.5))


@pytest.mark.parametrize("threshold", [-0.1, 1.0, float("nan"), "otzu"])
def test_impossible_threshold_is_refused(threshold):
    with pytest.raises(ValueError, match="threshold must be 'otsu' or a number"):
        RegionRule(threshold)


@pytest.mark.parametrize("smooth", [-0.1, 1.5, float("nan")])
def test_impossible_smoothing_is_refused(smooth):
    with pytest.raises(ValueError, match="fraction of the image's side"):
        RegionRule("otsu", smooth)


def test_smoothing_with_a_fixed_threshold_is_refused():
    with pytest.raises(ValueError, match="'otsu' only"):
        RegionRule(0.5, smooth=0.05)


def test_map_with_channels_or_targets_is_refused():
    with pytest.raises(ValueError, match="2D or 3D"):
        region_of(np.zeros((2, 2, 4, 4), dtype=np.float32), RegionRule())
