"""A network that reads only the trigger's pixels: the right answer of every method is known."""

import numpy as np
import pytest
from planted_material import SIDE, corner_stamp, reads_only, subject

from heatcheck.methods import build_method
from heatcheck.studies.explaining import Explainer
from heatcheck.studies.triggers_scores import Detector, Scorer
from heatcheck.studies.triggers_spec import DetectionPart
from heatcheck.studies.triggers_stage import explained_maps
from heatcheck.triggers import build_trigger

SHARP = DetectionPart(sigma=0.0, other_sigmas=(2.0,))


def scores_of(subjects, classifier, methods, part=SHARP):
    """The leading rule's scores by metric, method and case."""
    built = {name: build_method(name, settings) for name, settings in methods.items()}
    explainer = Explainer(classifier, ("Target",), built, "positive", 0, own_channels={"gradient": "absolute"})
    maps, _ = explained_maps(explainer, subjects)
    scorer = Scorer("square", "m", {"seed": 1}, Detector(part), 0, victim=classifier, baseline=classifier, target=1)
    rows = scorer.scores(subjects, maps)
    return {(row.metric, row.method, row.case): row.value for row in rows if row.condition == '{"seed":1}'}


def test_the_gradient_of_a_network_that_reads_only_the_trigger_is_its_box_exactly():
    stamp = corner_stamp(8)
    found = scores_of([subject(stamp)], reads_only(stamp.mask_on((SIDE, SIDE))), {"gradient": {}})
    assert found["trigger_iou", "gradient", "one"] == 1.0
    assert found["overlap_difference", "gradient", "one"] == 0.0
    assert found["uncovered", "gradient", "one"] == 0.0
    assert found["recovered", "gradient", "one"] == 1.0
    assert found["box_area", "gradient", "one"] == 64 / SIDE**2


def test_occlusion_marks_the_windows_that_cover_enough_of_the_trigger():
    # Windows of 5 px start at 20, 25 and 30 (cut at 32); of the trigger's pixels 24 to 31 they cover 1, 5 and 2 along
    # each axis. A window's drop is the product: 25 at most, of which 15 % are 3.75. 1·5, 5·2 and 2·2 lie above, 1·2
    # and 1·1 below: the box goes from 20 to 32, and the trigger fills 64 of its 144 pixels.
    stamp = corner_stamp(8)
    found = scores_of([subject(stamp)], reads_only(stamp.mask_on((SIDE, SIDE))), {"occlusion": {"window": 5}})
    assert found["trigger_iou", "occlusion", "one"] == pytest.approx(64 / 144, abs=1e-12)
    assert found["box_area", "occlusion", "one"] == pytest.approx(144 / SIDE**2, abs=1e-12)
    assert found["recovered", "occlusion", "one"] == 1.0


def test_random_maps_stay_at_the_floor_of_random_boxes():
    generator = np.random.default_rng(3)
    trigger = build_trigger({"kind": "square", "place": "random", "size": 8 * 224 / SIDE})
    dark = np.full((1, SIDE, SIDE), 0.1, np.float32)
    every = [subject(trigger(dark, int(generator.integers(2**31))), f"case{number}") for number in range(150)]
    everywhere = reads_only(np.ones((SIDE, SIDE)), bias=0.05)
    sparse = DetectionPart(sigma=0.0, threshold=0.9, other_sigmas=(2.0,), other_thresholds=(0.5,))
    found = scores_of(every, everywhere, {"random": {}}, sparse)
    less = [
        found["trigger_iou", "random", one.key.case] - found["trigger_iou_floor", "random", one.key.case]
        for one in every
    ]
    spread = np.std(less) / np.sqrt(len(less))
    assert abs(np.mean(less)) < 3 * spread < 0.03


def test_a_map_that_marks_nothing_recovers_nothing_and_overlaps_nothing():
    stamp = corner_stamp(8)
    away = np.zeros((SIDE, SIDE), bool)
    away[:8, :8] = True  # not where the trigger is: the gradient's box is in the other corner
    found = scores_of([subject(stamp)], reads_only(away, bias=0.05), {"gradient": {}})
    assert found["trigger_iou", "gradient", "one"] == 0.0
    assert found["uncovered", "gradient", "one"] == 1.0
    assert found["overlap_difference", "gradient", "one"] == 64 / SIDE**2


def test_an_image_that_is_called_the_target_without_the_trigger_has_no_recovery():
    stamp = corner_stamp(8)
    found = scores_of([subject(stamp)], reads_only(stamp.mask_on((SIDE, SIDE)), bias=0.05), {"gradient": {}})
    assert np.isnan(found["recovered", "gradient", "one"])
    assert np.isnan(found["recovered_floor", "gradient", "one"])
    assert found["recovered_by_baseline", "gradient", "one"] == 1.0
