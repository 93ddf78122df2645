import math

import numpy as np
import pytest
from tests.stats.resampling.test_nested import laid_out

from heatcheck.stats.rates import rate_interval
from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested import NO_SEED, ONE_SEED
from heatcheck.stats.resampling.nested_rates import nested_rates, rates_against


def rate(table):
    return nested_rates(*laid_out(table))[0]


@pytest.mark.parametrize("hits", [0, 1, 7, 19, 20])
def test_one_seed_with_one_image_per_patient_has_korn_and_graubards_interval(hits):
    values = (np.arange(20) < hits).astype(float)
    found, known = rate(values[None]), rate_interval(values, np.ones(20))
    assert (found.value, found.low, found.high) == pytest.approx((known.value, known.low, known.high))
    assert found.note == ONE_SEED


def test_seeds_that_differ_widen_the_interval():
    apart = np.stack([np.arange(40) < 38, np.arange(40) < 20, np.arange(40) < 30]).astype(float)
    alike = np.stack([np.arange(40) < 29, np.arange(40) < 29, np.arange(40) < 30]).astype(float)
    assert rate(apart).high - rate(apart).low > 1.3 * (rate(alike).high - rate(alike).low)
    assert 0 < rate(apart).low < rate(apart).high < 1


def test_interval_covers_a_high_rate_of_five_seeds():
    """A bootstrap of few misses covered 91 to 93 %; 300 rounds tell 95 % from 90 %."""
    generator, held = np.random.default_rng(2), 0
    for _ in range(300):
        level = 3 + 0.3 * generator.standard_normal((5, 1)) + generator.standard_normal(40)
        found = rate((generator.random((5, 40)) < 1 / (1 + np.exp(-level))).astype(float))
        held += found.low <= 0.9286 <= found.high  # the mean of the logistic function over these levels
    assert held / 300 >= 0.93


def test_undefined_has_its_reason():
    assert nested_rates(np.empty((0, 1)), Design(*np.empty((2, 0))))[0].reason == NO_SEED
    assert rate(np.full((2, 3), np.nan)).reason == NO_VALUE
    one = rate([[1.0], [0.0]])
    assert (one.value, one.reason, math.isnan(one.low)) == (0.5, ONE_PATIENT, True)


def test_rates_are_compared_with_a_share_by_their_own_intervals():
    """Thirty images and three seeds; the last rate is not below one half at a corrected level, though it is alone."""
    hits = (30, 27, 17, 8)
    tables = [np.arange(30) < n for n in hits]
    columns = np.hstack([laid_out(np.stack([table] * 3).astype(float))[0] for table in tables])
    design = laid_out(np.zeros((3, 30)))[1]
    found = rates_against(columns, design, 0.5)
    assert [each.mean.value for each in found] == pytest.approx([n / 30 - 0.5 for n in hits])
    excluded = [each.mean.low > 0 or each.mean.high < 0 for each in found]
    assert excluded == [True, True, False, False]
    assert [each.p_adjusted < 0.05 for each in found] == excluded
    alone = rates_against(columns[:, [3]], design, 0.5)[0]
    assert (alone.mean.high, alone.p_value) < (0.0, 0.05)
    assert found[0].p_value == pytest.approx(2 * 0.5**30, abs=1e-11)
