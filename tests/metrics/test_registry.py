import math

import numpy as np
import pytest

from heatcheck.core.records import Measured
from heatcheck.metrics import METRIC_FACTS, METRICS
from heatcheck.metrics.registry import Needs, metric, study_metric

COUNTS = {"true_positive_pixels", "false_positive_pixels", "false_negative_pixels", "true_negative_pixels"}


def inputs(name, shape):
    """What the metric needs, drawn at random, and a truth of half the image."""
    values = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    truth = np.zeros(shape, dtype=bool)
    truth[: shape[0] // 2] = True
    return (values if METRICS[name].needs is Needs.MAP else values > 0.5), truth


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize("shape", [(6, 9), (4, 6, 5)])
def test_metric_measures_planes_and_volumes_and_leaves_its_input_alone(name, shape):
    scored, truth = inputs(name, shape)
    before = scored.copy(), truth.copy()
    score = METRICS[name].measure(scored, truth)
    assert type(score.value) is float
    assert math.isfinite(score.value)
    assert not score.reason
    np.testing.assert_array_equal(scored, before[0])
    np.testing.assert_array_equal(truth, before[1])


@pytest.mark.parametrize("name", sorted(METRICS))
def test_value_is_undefined_exactly_when_there_is_a_reason(name):
    shape = (4, 5)
    empty = np.zeros(shape, dtype=np.float32 if METRICS[name].needs is Needs.MAP else bool)
    full = empty + 1 if METRICS[name].needs is Needs.MAP else ~empty
    for scored in (empty, full):
        for truth in (np.zeros(shape, dtype=bool), np.ones(shape, dtype=bool)):
            score = METRICS[name].measure(scored, truth)
            assert math.isnan(score.value) == bool(score.reason)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_metric_refuses_two_grids(name):
    scored, truth = inputs(name, (6, 9))
    with pytest.raises(ValueError, match=r"share one grid, got \(6, 9\) and \(6, 8\)"):
        METRICS[name].measure(scored, truth[:, 1:])


@pytest.mark.parametrize("name", sorted(METRICS))
def test_metric_refuses_a_truth_that_is_no_mask(name):
    scored, truth = inputs(name, (6, 9))
    with pytest.raises(ValueError, match="truth must be a mask of booleans, got uint8"):
        METRICS[name].measure(scored, truth.astype(np.uint8))


@pytest.mark.parametrize("name", sorted(name for name in METRICS if METRICS[name].needs is not Needs.MAP))
def test_metric_of_regions_or_points_refuses_a_map(name):
    _, truth = inputs(name, (6, 9))
    with pytest.raises(ValueError, match="mask of booleans, got float32"):
        METRICS[name].measure(np.ones((6, 9), dtype=np.float32), truth)


@pytest.mark.parametrize("name", sorted({**METRICS, **METRIC_FACTS}))
def test_metric_explains_itself_in_sentences_with_a_paper(name):
    facts = {**METRICS, **METRIC_FACTS}[name]
    assert facts.name == name
    assert facts.label
    assert facts.summary.endswith(".")
    assert any(character.isdigit() for character in facts.reference)


def test_labels_tell_the_metrics_apart():
    assert len({METRICS[name].label for name in METRICS}) == len(METRICS)
    assert len({METRIC_FACTS[name].label for name in METRIC_FACTS}) == len(METRIC_FACTS)


def test_only_pixel_counts_are_kept_out_of_the_tables():
    assert {name for name in METRICS if METRICS[name].is_count} == COUNTS


def test_everything_that_is_shown_has_its_facts_in_one_place():
    shown = {name for name in METRICS if not METRICS[name].is_count}
    assert all(METRIC_FACTS[name] is METRICS[name] for name in shown)
    of_truth = {Needs.REGION, Needs.POINT, Needs.MAP}
    assert {name for name, facts in METRIC_FACTS.items() if facts.needs in of_truth} == shown


def test_a_study_cannot_take_the_name_of_a_metric():
    with pytest.raises(ValueError, match="'iou' is registered twice"):
        study_metric(
            "iou", study="triggers", label="x", summary="x.", higher_is_better=True, needs=Needs.BOX, reference="x"
        )


def test_decorated_function_stays_a_plain_function_and_a_taken_name_is_refused():
    register = metric("iou", label="x", summary="x.", higher_is_better=True, needs=Needs.REGION, reference="x")
    with pytest.raises(ValueError, match="'iou' is registered twice"):
        register(lambda *_: Measured(0.0))
    assert METRICS["iou"].measure.__name__ == "iou"
