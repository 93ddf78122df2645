"""Promises that every registered metric keeps."""

import math

import numpy as np
import pytest

from heatcheck.metrics import METRICS
from heatcheck.metrics.registry import Needs


def marks(metric, shape, seed):
    values = np.random.default_rng(seed).random(shape, dtype=np.float32)
    if METRICS[metric].needs is Needs.MAP:
        return values
    return values == values.max() if METRICS[metric].needs is Needs.POINT else values > 0.6


@pytest.mark.parametrize("shape", [(20, 24), (8, 10, 6)])
@pytest.mark.parametrize("name", METRICS)
def test_metric_is_a_finite_number_where_there_is_truth(name, shape):
    truth = np.zeros(shape, bool)
    truth[2:6, 3:8] = True
    measured = METRICS[name].measure(marks(name, shape, 1), truth)
    assert math.isfinite(measured.value)
    assert measured.reason == ""
    if not METRICS[name].is_count:
        assert 0 <= measured.value <= 1


@pytest.mark.parametrize("name", METRICS)
def test_undefined_always_has_a_reason(name):
    truth = np.zeros((20, 24), bool)
    for given in (marks(name, (20, 24), 2), np.zeros_like(marks(name, (20, 24), 2))):
        measured = METRICS[name].measure(given, truth)
        assert math.isfinite(measured.value) != bool(measured.reason)


@pytest.mark.parametrize("name", METRICS)
def test_another_grid_is_refused(name):
    with pytest.raises(ValueError, match="grid"):
        METRICS[name].measure(marks(name, (20, 24), 3), np.ones((24, 20), bool))


@pytest.mark.parametrize("name", METRICS)
def test_metric_is_explained(name):
    facts = METRICS[name]
    assert facts.label
    assert facts.reference
    assert facts.summary
