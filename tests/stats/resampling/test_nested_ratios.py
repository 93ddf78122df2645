"""Ratios of means over seeds and images: by hand, their draws, and where they do not exist."""

import math

import numpy as np
import pytest

from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT, ONE_VALUE
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested import NO_SEED, ONE_SEED, nested_means
from heatcheck.stats.resampling.nested_ratios import nested_ratios


def ratio(parts, wholes, draws=400, generator=None):
    """Of values by seed and patient."""
    parts, wholes = (np.broadcast_to(np.asarray(each, float), np.shape(parts)) for each in (parts, wholes))
    seed, patient = (index.ravel() for index in np.indices(parts.shape))
    generator = generator or np.random.default_rng(0)
    design = Design(seed, patient)
    return nested_ratios(parts.reshape(-1, 1), wholes.reshape(-1, 1), design, draws, generator, "the room")[0]


def test_a_ratio_is_one_mean_over_the_other_and_not_a_mean_of_ratios():
    estimate = ratio([[0.1, 0.4], [0.3, 0.0]], [[0.5, 1.0], [0.5, 1.0]])
    assert estimate.value == pytest.approx((0.25 + 0.15) / 2 / 0.75)
    assert (estimate.n_cases, estimate.n_patients, estimate.n_seeds, estimate.n_undefined) == (4, 2, 2, 0)


def test_both_means_are_over_the_cases_in_which_both_are_defined():
    estimate = ratio([[0.1, 0.4, math.nan]], [[0.5, math.nan, 9.0]])
    assert estimate.value == pytest.approx(0.2)
    assert (estimate.n_cases, estimate.n_undefined) == (1, 2)


def test_parts_over_a_constant_have_the_interval_of_their_mean():
    generator = np.random.default_rng(1)
    parts = generator.random((3, 30)) + generator.random((3, 1))
    seed, patient = (index.ravel() for index in np.indices(parts.shape))
    mean = nested_means(parts.reshape(-1, 1), Design(seed, patient), 400, np.random.default_rng(0))[0]
    estimate = ratio(parts, 2.0)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((mean.value / 2, mean.low / 2, mean.high / 2))


def test_what_parts_and_wholes_share_is_not_taken_for_doubt():
    generator = np.random.default_rng(2)
    wholes = 1 + generator.random((3, 30))
    together = ratio(0.5 * wholes + 0.001 * generator.standard_normal((3, 30)), wholes)
    apart = ratio(0.5 * wholes + 0.001 * generator.standard_normal((3, 30)), wholes.mean())
    assert together.high - together.low < 0.05 * (apart.high - apart.low)


def test_nothing_and_the_whole_are_0_and_1_in_every_draw():
    wholes = 1 + np.random.default_rng(3).random((2, 9))
    nothing, all_of_it = ratio(0 * wholes, wholes), ratio(wholes, wholes)
    assert (nothing.value, nothing.reason) == (0.0, ONE_VALUE)
    assert (all_of_it.value, all_of_it.reason) == (pytest.approx(1.0), ONE_VALUE)


def test_a_whole_that_is_not_above_0_has_no_ratio():
    assert ratio([[0.1, 0.2]], [[0.3, -0.3]]).reason == "the room is not above 0"
    assert math.isnan(ratio([[0.1, 0.2]], [[0.3, -0.4]]).value)


def test_draws_without_a_ratio_are_told_of_and_too_many_take_the_interval():
    parts = [[0.1, 0.3, 0.2, 0.1, 0.4, 0.3, 0.2, 0.2]]
    some = ratio(parts, [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -2.0]])  # below 0 where it is drawn three times of eight
    assert some.note.startswith(f"{ONE_SEED}; the room is not above 0 in ")
    assert some.low < some.value < some.high
    many = ratio(parts, [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -6.0]])
    assert many.value == pytest.approx(1.8)
    assert math.isnan(many.low)
    assert many.reason.startswith("the room is not above 0 in ")
    assert many.reason.endswith(" of 400 draws")


def test_columns_do_not_touch_each_other():
    generator = np.random.default_rng(4)
    parts, wholes = generator.random((40, 3)), 1 + generator.random((40, 3))
    parts[:5, 1] = math.nan
    parts[:, 2] = math.nan
    design = Design(np.repeat([1, 2], 20), np.tile(np.arange(20), 2))
    each = nested_ratios(parts, wholes, design, 100, np.random.default_rng(0))
    for column in range(3):
        columns = slice(column, column + 1)
        alone = nested_ratios(parts[:, columns], wholes[:, columns], design, 100, np.random.default_rng(0))[0]
        assert [each[column].value, each[column].low] == pytest.approx([alone.value, alone.low], nan_ok=True)
    assert each[2].reason == NO_VALUE
    assert each[1].n_undefined == 5


def test_one_patient_or_no_case_has_no_interval_and_other_shapes_are_refused():
    assert ratio([[0.1], [0.3]], [[1.0], [1.0]]).reason == ONE_PATIENT
    none = np.empty((0, 2))
    assert nested_ratios(none, none, Design(none[:, 0], none[:, 0]), 10, np.random.default_rng(0))[1].reason == NO_SEED
    with pytest.raises(ValueError, match="parts and wholes must have the same shape"):
        nested_ratios(none, np.empty((0, 1)), Design(none[:, 0], none[:, 0]), 10, np.random.default_rng(0))


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_intervals_hold_the_truth_about_as_often_as_they_say(n_seeds):
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(150):
        image = generator.standard_normal(50)
        of_seed = 0.1 * generator.standard_normal((n_seeds, 1)) if n_seeds > 1 else 0.0
        parts = 0.3 + 0.2 * image + 0.1 * generator.standard_normal((n_seeds, 50)) + of_seed
        estimate = ratio(parts, np.tile(0.6 + 0.2 * image, (n_seeds, 1)), 200, generator)
        held += estimate.low <= 0.5 <= estimate.high
    assert held >= 0.9 * 150
