import numpy as np
import pytest

from heatcheck.triggers.ink import Layer, Stroke, curve, drawn, stamp_of


@pytest.mark.parametrize("width", [1.0, 2.0, 5.0])
def test_a_line_covers_its_length_times_its_width(width):
    coverage = drawn([Stroke(np.array([[20.0, 10.0], [20.0, 90.0]]), width)], (40, 100))
    assert coverage.sum(0)[20:80] == pytest.approx(width, abs=0.3)  # lines are drawn on a grid of quarter pixels
    assert coverage.sum() == pytest.approx(80 * width + np.pi * width**2 / 4, rel=0.3)


def test_a_line_may_grow_thinner():
    coverage = drawn([Stroke(np.array([[20.0, 10], [20, 50], [20, 90]]), np.array([6.0, 2.0]))], (40, 100))
    across = coverage.sum(0)
    assert across[30] == pytest.approx(6, abs=0.5)
    assert across[70] == pytest.approx(2, abs=0.5)


def test_a_curve_goes_through_its_points():
    points = np.array([[0.0, 0.0], [5.0, 2.0], [6.0, 8.0]])
    path = curve(points, 21)
    assert np.allclose(path[[0, 10, 20]], points)


def test_the_last_layer_lies_on_top_with_its_coverage():
    image = np.full((1, 1, 4), 0.5, np.float32)
    under, over = np.array([[0, 1, 1, 0.05]], np.float32), np.array([[0, 0, 0.5, 0]], np.float32)
    stamp = stamp_of(image, Layer(under, 0.0), Layer(over, 1.0))
    assert stamp.box == (slice(0, 1), slice(1, 3))  # a twentieth of a pixel is not visible
    assert stamp.on(image).tolist() == [[[0.5, 0.0, 0.5, 0.5]]]


def test_invisible_ink_still_takes_its_most_covered_pixel():
    coverage = np.array([[0.01, 0.03, 0.02]], np.float32)
    assert stamp_of(np.zeros((1, 1, 3), np.float32), Layer(coverage, 1.0)).box == (slice(0, 1), slice(1, 2))
