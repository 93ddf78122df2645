import itertools
import math

import numpy as np
import pytest
from scipy.stats import bootstrap

from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT, ONE_VALUE
from heatcheck.stats.resampling.cells import Design, cell_totals, drawn_means, macro
from heatcheck.stats.resampling.nested import NO_SEED, ONE_SEED, nested_means, variance_components


def laid_out(table):
    """Values by seed and patient, or by group, seed and patient, as one column with its design."""
    values = np.asarray(table, float)
    values = values[None] if values.ndim == 2 else values
    group, seed, patient = (index.ravel() for index in np.indices(values.shape))
    return values.reshape(-1, 1), Design(seed, patient, group)


def estimate(table, draws=400, seed=0, **settings):
    values, design = laid_out(table)
    return nested_means(values, design, draws, np.random.default_rng(seed), **settings)[0]


def crossed(generator, of_seed, of_image, rest, shape=(5, 60)):
    """Values whose true mean is 0: each seed and each image has its own effect, and each value an error."""
    errors = rest * generator.standard_normal(shape)
    return of_seed * generator.standard_normal((shape[0], 1)) + of_image * generator.standard_normal(shape[1]) + errors


def test_means_worked_by_hand():
    """Seed 7 has one image, seed 8 three: each seed counts the same. The second group has seed 8 only."""
    values = np.array([[1.0], [0.0], [0.5], [1.0], [0.25]])
    seeds, patients = np.array([7, 8, 8, 8, 8]), np.array(["a", "a", "b", "c", "a"])
    groups = np.array(["corner", "corner", "corner", "corner", "text"])
    complete = nested_means(values, Design(seeds, patients, groups), 100, np.random.default_rng(0))[0]
    assert complete.value == ((1 + (0 + 0.5 + 1) / 3) / 2 + 0.25) / 2
    assert (complete.n_cases, complete.n_patients, complete.n_seeds, complete.n_undefined) == (5, 3, 2, 0)
    plain = nested_means(values[:4], Design(seeds[:4], patients[:4]), 100, np.random.default_rng(0))[0]
    assert plain.value == (1 + 0.5) / 2


def test_draws_are_all_ways_to_take_two_seeds_and_two_images_with_replacement():
    table = np.array([[0.0, 1.0], [10.0, 31.0]])
    values, design = laid_out(table)
    totals = cell_totals(values, design)
    generator = np.random.default_rng(0)
    seeds = np.array(list(itertools.product([0, 1], repeat=2)))
    expected = sorted(table[np.ix_(s, p)].mean() for s in seeds for p in seeds)
    n = 8000
    means = drawn_means(totals, n, generator)
    weights = np.eye(2)[generator.integers(0, 2, (n, 2))].sum(1)
    drawn = np.sort(macro(means, weights, totals.cells)[:, 0])
    np.testing.assert_allclose(np.unique(drawn.round(9)), np.unique(np.round(expected, 9)))
    assert drawn.mean() == pytest.approx(np.mean(expected), abs=4 * np.std(expected) / math.sqrt(n))
    assert drawn.std() == pytest.approx(np.std(expected), rel=0.03)


def test_components_are_those_of_a_two_way_analysis_of_variance():
    table = crossed(np.random.default_rng(3), 1, 2, 1, (4, 9))
    components = variance_components(cell_totals(*laid_out(table)))[0]
    rows, columns = table.mean(1, keepdims=True), table.mean(0, keepdims=True)
    mean_squares = {
        "seeds": 9 * np.sum((rows - table.mean()) ** 2) / 3,
        "patients": 4 * np.sum((columns - table.mean()) ** 2) / 8,
        "rest": np.sum((table - rows - columns + table.mean()) ** 2) / (3 * 8),
    }
    for name, square in mean_squares.items():
        assert getattr(components, name) == pytest.approx(square / table.size)
    assert components.total == pytest.approx((sum(mean_squares.values()) - 2 * mean_squares["rest"]) / table.size)


def test_components_of_balanced_groups_are_those_of_their_means():
    table = np.random.default_rng(3).random((3, 4, 9))
    together, apart = (
        variance_components(cell_totals(*laid_out(table)))[0],
        variance_components(cell_totals(*laid_out(table.mean(0))))[0],
    )
    for name in ("seeds", "patients", "rest", "n_seeds", "n_patients"):
        assert getattr(together, name) == pytest.approx(getattr(apart, name))


def test_interval_of_one_seed_is_scipys_percentile_interval_over_images():
    values = np.random.default_rng(5).exponential(size=300)
    judge = bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1))
    result = estimate(values[None], draws=4000)
    width = judge.confidence_interval.high - judge.confidence_interval.low
    assert result.low == pytest.approx(judge.confidence_interval.low, abs=0.05 * width)
    assert result.high == pytest.approx(judge.confidence_interval.high, abs=0.05 * width)
    assert result.note == ONE_SEED
    assert estimate(np.random.default_rng(5).random((2, 30))).note == ""


@pytest.mark.parametrize(("of_seed", "of_image"), [(1.0, 0.3), (0.3, 1.0), (0.0, 3.0)])
def test_intervals_of_five_seeds_hold_the_truth_as_often_as_they_say(of_seed, of_image):
    """200 rounds tell 0.95 from 0.89 (four deviations); drawing images anew for each seed gives 0.61 in the last."""
    generator = np.random.default_rng(8)
    held = 0
    for _ in range(200):
        result = estimate(crossed(generator, of_seed, of_image, 0.5, (5, 40)), 250, int(generator.integers(2**32)))
        held += result.low <= 0 <= result.high
    assert 0.89 <= held / 200 <= 0.995


def test_three_seeds_that_differ_much_give_a_wide_interval_rather_than_a_wrong_one():
    generator = np.random.default_rng(9)
    held = 0
    for _ in range(200):
        result = estimate(crossed(generator, 1.0, 0.1, 0.1, (3, 20)), 250, int(generator.integers(2**32)))
        held += result.low <= 0 <= result.high
    assert held / 200 >= 0.86


@pytest.mark.parametrize("table", [[[1, 0], [0, 1]], [[0.3, 0.1, 0.2], [0.1, 0.2, 0.3], [0.2, 0.3, 0.1]]])
def test_seeds_and_patients_that_agree_on_average_leave_the_rest_to_speak(table):
    """A Latin square: every seed and every patient has the same mean, though single values differ."""
    one = estimate(table, within=(0, 1))
    assert one.value == pytest.approx(np.mean(table))
    assert one.low < one.value < one.high
    assert not one.reason


def test_images_of_one_patient_count_as_one():
    table = np.random.default_rng(2).random((4, 25))
    twice = np.repeat(table, 2, axis=1)
    values, _ = laid_out(twice)
    seeds, patients = (index.ravel() for index in np.indices(twice.shape))
    result = nested_means(values, Design(seeds, patients // 2), 300, np.random.default_rng(0))[0]
    once = estimate(table, 300)
    assert (result.low, result.high) == pytest.approx((once.low, once.high))
    assert (result.n_cases, result.n_patients) == (200, 25)


def test_a_column_does_not_depend_on_the_columns_beside_it_nor_on_the_order_of_cases():
    generator = np.random.default_rng(4)
    first, design = laid_out(generator.random((3, 5, 20)))
    other = np.where(generator.random(first.shape) < 0.3, np.nan, first**2)
    alone = nested_means(other, design, 200, np.random.default_rng(1))[0]
    assert nested_means(np.hstack([first, other]), design, 200, np.random.default_rng(1))[1] == alone
    order = generator.permutation(len(first))
    shuffled = Design(design.seeds[order], design.clusters[order], design.groups[order])
    again = nested_means(other[order], shuffled, 200, np.random.default_rng(1))[0]
    assert (again.low, again.high) == pytest.approx((alone.low, alone.high))
    assert alone.n_undefined == np.isnan(other).sum()


def test_differences_are_paired_on_images():
    generator = np.random.default_rng(6)
    floor = crossed(generator, 0.2, 3, 0.5)
    method = floor + 0.5 + 0.1 * generator.standard_normal(floor.shape)
    apart, paired = estimate(method), estimate(method - floor)
    assert paired.value == pytest.approx(method.mean() - floor.mean())
    assert paired.high - paired.low < 0.2 * (apart.high - apart.low)
    assert paired.low > 0


def test_an_interval_stays_where_a_value_can_be():
    table = (np.random.default_rng(0).random((2, 30)) < [[0.99], [0.6]]).astype(float)
    free, kept = estimate(table), estimate(table, within=(0, 1))
    assert free.high > 1
    assert kept.high == 1
    assert kept.value == free.value
    with pytest.raises(ValueError, match="must lie between 0 and 1, got 30"):
        estimate(np.full((2, 2), 30.0), within=(0, 1))


def test_undefined_has_its_reason():
    nothing = nested_means(np.empty((0, 2)), Design(*np.empty((2, 0))), 100, np.random.default_rng(0))
    assert [empty.reason for empty in nothing] == [NO_SEED, NO_SEED]
    assert estimate(np.full((3, 4), np.nan)).reason == NO_VALUE
    assert estimate(np.full((3, 4), np.nan)).n_undefined == 12
    one = estimate([[0.2], [0.4]])
    assert (one.value, one.reason) == (pytest.approx(0.3), ONE_PATIENT)
    assert math.isnan(one.low)
    same = estimate(np.full((3, 4), 0.7))
    assert (same.value, same.reason) == (pytest.approx(0.7), ONE_VALUE)
    assert math.isnan(same.high)


def test_a_seed_without_a_defined_value_takes_no_part():
    table = np.random.default_rng(1).random((3, 20))
    with_gap = np.vstack([table, np.full((1, 20), np.nan)])
    result, without = estimate(with_gap), estimate(table)
    assert (result.value, result.low, result.high, result.n_seeds) == (without.value, without.low, without.high, 3)


def test_a_group_that_one_seed_has_is_in_every_draw():
    """Graded in one seed of five: 0.8⁵ = 33 % of all draws hold nothing of it."""
    table = np.random.default_rng(1).random((2, 5, 20))
    table[1, 1:] = np.nan
    result = estimate(table, draws=1000)
    assert result.value == pytest.approx((table[0].mean() + table[1, 0].mean()) / 2)
    assert result.low < result.value < result.high
    assert result.reason == ""


def test_lists_of_other_lengths_and_infinity_are_refused():
    with pytest.raises(ValueError, match=r"its patient and its group, got lists of lengths \[2, 3\]"):
        Design(np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match=r"one row per case, got shape \(3, 1\) for 4 cases"):
        nested_means(np.zeros((3, 1)), Design(np.zeros(4), np.zeros(4)), 100, np.random.default_rng(0))
    with pytest.raises(ValueError, match="finite, or NaN"):
        estimate([[np.inf, 1.0]])


def test_columns_with_the_same_patients_but_other_images_do_not_touch_each_other():
    generator = np.random.default_rng(9)
    values = generator.random((24, 2))  # six patients with two images in each of two seeds
    values[::5, 1] = math.nan
    design = Design(np.repeat([1, 2], 12), np.tile(np.repeat(np.arange(6), 2), 2))
    together = nested_means(values, design, 200, np.random.default_rng(0))
    for column in (0, 1):
        alone = nested_means(values[:, [column]], design, 200, np.random.default_rng(0))[0]
        shared = together[column]
        assert (shared.value, shared.low, shared.high) == pytest.approx((alone.value, alone.low, alone.high), abs=1e-12)
