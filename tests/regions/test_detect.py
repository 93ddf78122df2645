import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from heatcheck.core.errors import UnknownNameError
from heatcheck.regions.detect import PRESETS, DetectionRule, _smoothed, detected_box, preset_rule

PLAIN = DetectionRule(smooth=0)
integers = st.integers(-4, 4).map(float)
planes = arrays(np.float32, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=integers)
volumes = arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)), elements=integers)
rules = st.builds(
    DetectionRule, st.sampled_from([0.0, 0.8, 2.0]), st.sampled_from([0.0, 0.15, 0.5, 0.9]), part=st.just("largest")
)


def map_of(*rows):
    return np.array(rows, np.float32)


def box(rows, columns):
    return (slice(*rows), slice(*columns))


def slow_box(values, rule):
    """`detected_box` pixel by pixel: SciPy smooths, and parts are grown from their first pixels."""
    evidence = np.maximum(values, 0).astype(np.float64)
    if evidence.max() == 0:
        return None
    smooth = ndimage.gaussian_filter(evidence, rule.smooth, mode="reflect") if rule.smooth else evidence
    limit = rule.threshold * smooth.max()
    # rounding decides about values on the threshold
    if np.any(np.isclose(smooth, limit, rtol=1e-5, atol=1e-6 * smooth.max()) & (smooth > 0)) and rule.smooth:
        return "undecided"
    free = {tuple(map(int, position)) for position in np.argwhere(smooth > limit)}
    parts = []
    while free:
        part, reached = [], [min(free)]
        free.discard(reached[0])
        while reached:
            position = reached.pop()
            part.append(position)
            near = {other for other in free if max(abs(a - b) for a, b in zip(position, other, strict=True)) <= 1}
            free -= near
            reached.extend(near)
        parts.append(sorted(part))
    sums = [sum(smooth[position] for position in part) for part in parts]
    if rule.smooth and any(
        len(a) == len(b) and math.isclose(sums[i], sums[j], rel_tol=1e-4)
        for i, a in enumerate(parts)
        for j, b in enumerate(parts[:i])
    ):
        return "undecided"
    best = max(range(len(parts)), key=lambda number: (len(parts[number]), round(sums[number], 9), -number))
    lines = zip(*parts[best], strict=True)
    return tuple(slice(min(line), max(line) + 1) for line in lines)


def test_box_worked_by_hand():
    values = map_of(
        [0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],  # touches the one above at its corner: one part of three
        [0, 0, 1, 0, 9, 0],  # the maximum is a part of two only
        [0, 0, 0, 0, 9, 0],
    )
    assert detected_box(values, DetectionRule(0, 0.1)) == box((1, 4), (1, 3))
    assert detected_box(values, DetectionRule(0, 0.2)) == box((3, 5), (4, 5))
    assert detected_box(values, DetectionRule(0, 0.1, part="all")) == box((1, 5), (1, 5))


def test_a_pixel_exactly_at_the_threshold_is_not_above_it():
    values = map_of([20, 3, 0], [0, 0, 0])
    assert detected_box(values, DetectionRule(0, 0.15)) == box((0, 1), (0, 1))
    a_little_more = map_of([20, 3.000001, 0], [0, 0, 0])
    assert detected_box(a_little_more, DetectionRule(0, 0.15)) == box((0, 1), (0, 2))
    assert detected_box(values, DetectionRule(0, 0.0)) == box((0, 1), (0, 2))


def test_the_larger_part_wins_then_more_evidence_then_the_first():
    rule = DetectionRule(0, 0.15)
    assert detected_box(map_of([9, 0, 3, 3]), rule) == box((0, 1), (2, 4))
    assert detected_box(map_of([3, 3, 0, 9, 3]), rule) == box((0, 1), (3, 5))
    assert detected_box(map_of([9, 3, 0, 3, 9]), rule) == box((0, 1), (0, 2))


def test_the_first_of_equals_is_the_one_whose_first_pixel_comes_first():
    values = map_of([0, 0, 0, 0, 1], [1, 0, 0, 1, 0], [1, 0, 0, 0, 0])
    assert detected_box(values, PLAIN) == box((0, 2), (3, 5))


def test_evidence_against_counts_as_zero_and_does_not_cancel_its_neighbours():
    values = np.zeros((40, 40), np.float32)
    values[20:24, 20:24] = 1
    alone = detected_box(values, DetectionRule(2.0))
    values[20:24, 24:30] = -50
    assert detected_box(values, DetectionRule(2.0)) == alone
    assert detected_box(values, PLAIN) == box((20, 24), (20, 24))


@pytest.mark.parametrize("sigma", [0.0, 1.0, 2.0, 4.0])
def test_the_border_does_not_weaken_a_trigger_in_the_corner(sigma):
    """A trigger at the border is detected like half of one twice its size."""
    corner, inside = np.zeros((48, 48), np.float32), np.zeros((96, 96), np.float32)
    corner[40:, 40:] = 1
    inside[40:56, 40:56] = 1
    rows, columns = detected_box(inside, DetectionRule(sigma))
    assert detected_box(corner, DetectionRule(sigma)) == box((rows.start, 48), (columns.start, 48))
    np.testing.assert_allclose(_smoothed(corner, sigma), _smoothed(inside, sigma)[:48, :48], atol=1e-6)
    assert _smoothed(corner, sigma).sum() == pytest.approx(64, rel=1e-5)


def test_a_square_of_uniform_evidence_grows_by_smoothing_as_worked_by_hand():
    """Far inside, the profile is Φ: 15 % lies 1.036 σ outside the edge, so that each side gains 2 px at σ = 2."""
    values = np.zeros((100, 100), np.float32)
    values[30:60, 40:70] = 1
    assert detected_box(values, DetectionRule(2.0)) == box((28, 62), (38, 72))


@pytest.mark.parametrize("of", ["maximum", "range"])
@pytest.mark.parametrize("part", ["largest", "all"])
@pytest.mark.parametrize("value", [0.0, -2.0])
def test_a_map_without_evidence_has_no_box(of, part, value):
    assert detected_box(np.full((5, 6), value, np.float32), DetectionRule(2.0, 0.15, of, part)) is None


def test_a_constant_positive_map_is_all_box_by_its_maximum_and_none_by_its_range():
    values = np.full((5, 6), 0.3, np.float32)
    assert detected_box(values, DetectionRule()) == box((0, 5), (0, 6))
    assert detected_box(values, DetectionRule(0, 0.9, "range", "all")) is None


def test_the_range_starts_at_the_lowest_value():
    values = map_of([-1, -1, -1], [-1, 0, -1], [-1, 1, 0.8])
    assert detected_box(values, DetectionRule(0, 0.85, "range", "all")) == box((2, 3), (1, 3))
    assert detected_box(values, DetectionRule(0, 0.9, "range", "all")) == box((2, 3), (1, 2))
    assert detected_box(values + 7, DetectionRule(0, 0.85, "range", "all")) == box((2, 3), (1, 3))


@settings(deadline=None)
@given(st.one_of(planes, volumes), rules)
@example(map_of([1, 0, 1], [0, 0, 0], [1, 0, 1]), PLAIN)
def test_box_equals_that_of_a_slow_search(values, rule):
    expected = slow_box(values, rule)
    if expected != "undecided":
        assert detected_box(values, rule) == expected


@settings(deadline=None)
@given(planes, st.sampled_from([0.3, 1.0, 2.5]))
def test_smoothing_equals_scipys(values, sigma):
    expected = ndimage.gaussian_filter(values, sigma, mode="reflect")
    np.testing.assert_allclose(_smoothed(values, sigma), expected, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1.0, 1e30])
def test_scale_does_not_move_the_box(scale):
    values = np.random.default_rng(3).random((30, 30)) ** 4
    for rule in (DetectionRule(), preset_rule("thresholded", "lime")):
        assert detected_box((values * scale).astype(np.float64), rule) == detected_box(values, rule)


def test_presets_have_the_published_thresholds():
    assert sorted(PRESETS) == ["gradcam15", "thresholded"]
    assert preset_rule("gradcam15", "lime") == DetectionRule(2.0, 0.15, "maximum", "largest")
    by_method = {name: preset_rule("thresholded", name) for name in ("gradient", "guided_backprop", "guided_grad_cam")}
    assert [rule.threshold for rule in by_method.values()] == [0.5, 0.8, 0.75]
    assert preset_rule("thresholded", "occlusion") == DetectionRule(0, 0.9, "range", "all")
    with pytest.raises(UnknownNameError, match="unknown detection preset 'gradcam'; did you mean 'gradcam15'"):
        preset_rule("gradcam", "lime")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smooth": -1}, "number of pixels, 0 or more, got -1"),
        ({"smooth": math.inf}, "got inf"),
        ({"threshold": 1.0}, "share from 0 to below 1, got 1.0"),
        ({"threshold": math.nan}, "got nan"),
        ({"of": "mean"}, "`of` of a detection rule must be 'maximum' or 'range', got 'mean'"),
        ({"part": "first"}, "`part` of a detection rule must be 'largest' or 'all', got 'first'"),
    ],
)
def test_an_impossible_rule_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DetectionRule(**settings)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_map_with_values_that_are_not_finite_is_refused(value):
    values = np.ones((4, 4), np.float32)
    values[1, 2] = value
    with pytest.raises(ValueError, match="finite numbers only"):
        detected_box(values, DetectionRule())


def test_a_line_is_refused_and_the_given_map_is_not_changed():
    with pytest.raises(ValueError, match="2D or 3D map"):
        detected_box(np.ones(5, np.float32), PLAIN)
    values = map_of([-1, 0, 2], [3, 1, 0])
    before = values.copy()
    detected_box(values, DetectionRule())
    np.testing.assert_array_equal(values, before)
