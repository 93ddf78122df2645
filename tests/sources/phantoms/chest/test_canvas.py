import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatcheck.sources.phantoms.chest.canvas import Canvas, ChestPose, blob, curve, smooth, stroke

SQUARE = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
poses = st.builds(
    ChestPose,
    rotation=st.floats(-0.3, 0.3),
    shift=st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)),
    scale=st.floats(0.8, 1.2),
)


@settings(deadline=None, max_examples=40)
@given(pose=poses, height=st.integers(8, 60), width=st.integers(8, 60))
def test_frame_coordinates_of_a_pixel_lead_back_to_it(pose, height, width):
    canvas = Canvas((height, width), pose)
    x, y = canvas.frame
    assert x.shape == y.shape == (height, width)
    columns, rows = canvas.pixels(np.stack([x.ravel(), y.ravel()], 1)).T
    np.testing.assert_allclose(rows.reshape(height, width), np.mgrid[0:height, 0:width][0], atol=1e-3)
    np.testing.assert_allclose(columns.reshape(height, width), np.mgrid[0:height, 0:width][1], atol=1e-3)


def test_middle_of_the_frame_is_the_middle_of_the_image_whatever_its_format():
    for shape in [(32, 32), (40, 61), (97, 50)]:
        column, row = Canvas(shape).pixels(np.zeros((1, 2)))[0]
        assert (row, column) == ((shape[0] - 1) / 2, (shape[1] - 1) / 2)


def test_frame_spans_the_height_so_that_a_wide_film_shows_more_and_stretches_nothing():
    narrow, wide = Canvas((80, 60)).exact(SQUARE), Canvas((80, 100)).exact(SQUARE)
    np.testing.assert_array_equal(narrow, wide[:, 20:80])


def test_exact_mask_has_the_area_of_its_outline():
    share = Canvas((400, 400)).exact(SQUARE).mean()
    assert share == pytest.approx(0.25, rel=0.02)


def test_soft_coverage_lies_between_0_and_1_and_agrees_with_the_exact_mask_away_from_the_edge():
    canvas = Canvas((100, 100))
    coverage, inside = canvas.soft(SQUARE, blur=0.02), canvas.exact(SQUARE)
    assert coverage.min() >= 0
    assert coverage.max() <= 1
    assert (coverage[inside] > 0.3).all()
    assert coverage[50, 50] == pytest.approx(1)
    assert coverage[5, 5] == 0


def test_overlapping_outlines_are_covered_once():
    canvas = Canvas((60, 60))
    both = canvas.soft(SQUARE, SQUARE + 0.25)
    assert both.max() == 1
    assert both[35, 35] == both[17, 17] == both[50, 50] == 1
    assert both[17, 50] == 0


def test_blur_keeps_the_mean_and_lowers_the_contrast():
    canvas = Canvas((64, 64))
    plane = canvas.soft(SQUARE)
    blurred = canvas.blurred(plane, 0.1)
    assert blurred.mean() == pytest.approx(plane.mean(), rel=0.01)
    assert np.abs(np.diff(blurred)).max() < 0.3 * np.abs(np.diff(plane)).max()


def test_texture_shows_the_same_grain_at_any_size():
    small = Canvas((64, 64)).texture(np.random.default_rng(1), 9)
    large = Canvas((192, 192)).texture(np.random.default_rng(1), 9)
    assert np.corrcoef(small.ravel(), large[1::3, 1::3].ravel())[0, 1] > 0.99
    assert 0.4 < small.std() < 1.6
    assert abs(small.mean()) < 0.5


def test_smoothing_rounds_the_corners_and_stays_inside_them():
    outline = smooth([tuple(corner) for corner in SQUARE])
    assert len(outline) == 4 * 2**3
    assert np.abs(outline).max() <= 0.5
    assert not (np.abs(outline) == 0.5).all(1).any()


def test_stroke_has_the_width_it_is_given():
    path = np.array([(-0.5, 0.0), (0.0, 0.0), (0.5, 0.0)])
    outline = stroke(path, 0.2)
    assert set(np.round(outline[:, 1], 9)) == {-0.1, 0.1}
    widening = stroke(path, np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(sorted(np.abs(widening[:, 1])), [0.05, 0.05, 0.1, 0.1, 0.15, 0.15])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=5))
def test_curve_passes_through_its_points(points):
    path = curve(points, samples=8 * (len(points) - 1) + 1)
    np.testing.assert_allclose(path[::8], points, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.02, 0.3))
def test_blob_surrounds_its_centre_within_the_limits_of_its_bumps(seed, radius):
    outline = blob(np.random.default_rng(seed), (0.3, -0.2), (radius, radius))
    distance = np.linalg.norm(outline - (0.3, -0.2), axis=1) / radius
    assert distance.min() >= 0.4 - 1e-9
    assert distance.max() <= 1.6 + 1e-9


def test_blob_depends_on_its_generator_alone():
    first, again, other = (blob(np.random.default_rng(seed), (0, 0), (0.1, 0.2)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_several_lines_drawn_at_once_equal_those_drawn_one_by_one():
    paths = np.random.default_rng(0).standard_normal((3, 9, 2)).cumsum(1)
    for width in (0.2, np.linspace(0.1, 0.3, 9)):
        together = stroke(paths, width)
        for path, outline in zip(paths, together, strict=True):
            np.testing.assert_array_equal(outline, stroke(path, width))


def test_outline_of_a_line_encloses_its_area():
    path = np.stack([np.linspace(-0.5, 0.5, 9), np.zeros(9)], 1)
    assert Canvas((200, 200)).exact(stroke(path, 0.2)).sum() == pytest.approx(100 * 20, rel=0.1)
