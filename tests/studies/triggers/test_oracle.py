"""A network that reads only the trigger's pixels: the right answer of every method is known."""

import numpy as np
import pytest
from tests.studies.triggers.planted_material import SIDE, corner_stamp, reads_only, subject

from heatcheck.explaining.batch import Explainer
from heatcheck.methods import build_method
from heatcheck.studies.triggers import scores as triggers_scores
from heatcheck.studies.triggers.scores import Detector, Scorer
from heatcheck.studies.triggers.spec import DetectionPart
from heatcheck.studies.triggers.stage import explained_maps
from heatcheck.triggers import build_trigger

SHARP = DetectionPart(sigma=0.0, other_sigmas=(2.0,))
CORNER = slice(24, 32), slice(24, 32)  # where the trigger of 8 px lies
OTHER_CORNER = slice(0, 8), slice(0, 8)


def scores_of(subjects, classifier, methods, part=SHARP):
    """The leading rule's scores by metric, method and case."""
    built = {name: build_method(name, settings) for name, settings in methods.items()}
    explainer = Explainer(classifier, ("Target",), built, "positive", 0, own_channels={"gradient": "absolute"})
    maps, _ = explained_maps(explainer, subjects)
    return scores_of_maps(subjects, maps, classifier, classifier, part)


def scores_of_maps(subjects, maps, poisoned_model, baseline, part=SHARP):
    """The same of maps that are given."""
    scorer = Scorer("square", "m", {"seed": 1}, Detector(part), 0, poisoned_model=poisoned_model, baseline=baseline)
    rows = scorer.scores(subjects, maps)
    return {(row.metric, row.method, row.case): row.value for row in rows if row.condition == '{"seed":1}'}


def marked(*box):
    """A map that marks a box and nothing else."""
    values = np.zeros((SIDE, SIDE), np.float32)
    values[box] = 1
    return values


def reads(box, bias=0.5):
    """A network that looks at a box only; with this bias it calls the stamped corner the target, and a dark one not."""
    return reads_only(marked(*box) > 0, bias)


def recovery_of(box, poisoned_model, baseline, **part):
    """What comes of putting a box right on the image with the trigger, by metric."""
    rule = DetectionPart(sigma=0.0, other_sigmas=(2.0,), **part)
    scores = scores_of_maps([subject(corner_stamp(8))], [{"gradient": marked(*box)}], poisoned_model, baseline, rule)
    return {metric: value for (metric, _, _), value in scores.items()}


def test_the_gradient_of_a_network_that_reads_only_the_trigger_is_its_box_exactly():
    stamp = corner_stamp(8)
    scores = scores_of([subject(stamp)], reads_only(stamp.mask_on((SIDE, SIDE))), {"gradient": {}})
    assert scores["trigger_iou", "gradient", "one"] == 1.0
    assert scores["overlap_difference", "gradient", "one"] == 0.0
    assert scores["uncovered", "gradient", "one"] == 0.0
    assert scores["recovered", "gradient", "one"] == 1.0
    assert scores["box_area", "gradient", "one"] == 64 / SIDE**2


def test_occlusion_marks_the_windows_that_cover_enough_of_the_trigger():
    # Windows of 5 px start at 20, 25 and 30 (cut at 32); of the trigger's pixels 24 to 31 they cover 1, 5 and 2 along
    # each axis. A window's drop is the product: 25 at most, of which 15 % are 3.75. 1·5, 5·2 and 2·2 lie above, 1·2
    # and 1·1 below: the box goes from 20 to 32, and the trigger fills 64 of its 144 pixels.
    stamp = corner_stamp(8)
    scores = scores_of([subject(stamp)], reads_only(stamp.mask_on((SIDE, SIDE))), {"occlusion": {"window": 5}})
    assert scores["trigger_iou", "occlusion", "one"] == pytest.approx(64 / 144, abs=1e-12)
    assert scores["box_area", "occlusion", "one"] == pytest.approx(144 / SIDE**2, abs=1e-12)
    assert scores["recovered", "occlusion", "one"] == 1.0


def test_random_maps_stay_at_the_floor_of_random_boxes():
    generator = np.random.default_rng(3)
    trigger = build_trigger({"kind": "square", "place": "random", "size": 8 * 224 / SIDE})
    dark = np.full((1, SIDE, SIDE), 0.1, np.float32)
    every = [subject(trigger(dark, int(generator.integers(2**31))), f"case{number}") for number in range(150)]
    everywhere = reads_only(np.ones((SIDE, SIDE)), bias=0.05)
    sparse = DetectionPart(sigma=0.0, threshold=0.9, other_sigmas=(2.0,), other_thresholds=(0.5,))
    scores = scores_of(every, everywhere, {"random": {}}, sparse)
    less = [
        scores["trigger_iou", "random", one.key.case] - scores["trigger_iou_floor", "random", one.key.case]
        for one in every
    ]
    spread = np.std(less) / np.sqrt(len(less))
    assert abs(np.mean(less)) < 3 * spread < 0.03


def test_a_box_in_the_other_corner_overlaps_nothing_and_recovers_nothing():
    scores = recovery_of(OTHER_CORNER, reads(CORNER), reads(CORNER))
    assert scores["trigger_iou"] == 0.0
    assert scores["uncovered"] == 1.0
    assert scores["overlap_difference"] == 64 / SIDE**2
    assert scores["recovered"] == 0.0
    assert scores["recovered_by_baseline"] == 0.0


def test_where_nothing_is_detected_nothing_is_covered_or_recovered_nor_is_it_by_chance():
    nothing = np.zeros((SIDE, SIDE), np.float32)
    stamp = corner_stamp(8)
    maps = [{"gradient": nothing, "occlusion": marked(*CORNER), "grad_cam": marked(slice(0, 29), slice(0, 29))}] * 2
    scores = scores_of_maps([subject(stamp, "one"), subject(stamp, "two")], maps, reads(CORNER), reads(CORNER))
    for case in ("one", "two"):
        of_case = {
            metric: value for (metric, method, of), value in scores.items() if (method, of) == ("gradient", case)
        }
        for metric in ("trigger_iou", "trigger_mask_iou", "box_area", "recovered", "recovered_floor"):
            assert of_case[metric] == 0.0, metric
        assert of_case["trigger_iou_floor"] == 0.0
        assert of_case["uncovered"] == of_case["uncovered_floor"] == 1.0
        # the boxes of the other methods keep their own floors
        assert scores["recovered_floor", "occlusion", case] == 0.0
        assert scores["recovered_floor", "grad_cam", case] == 1.0


def test_the_poisoned_model_must_return_and_the_baseline_is_asked_apart():
    # the poisoned model reads the trigger and the baseline the other corner: its answer is the same whatever the box
    scores = recovery_of(OTHER_CORNER, reads(CORNER), reads(OTHER_CORNER))
    assert (scores["recovered"], scores["recovered_by_baseline"]) == (0.0, 1.0)
    # and here the baseline is the one that the trigger fools
    turned = recovery_of(OTHER_CORNER, reads(OTHER_CORNER), reads(CORNER))
    assert (turned["recovered"], turned["recovered_by_baseline"]) == (1.0, 0.0)


def test_the_baseline_returns_to_its_own_answer_not_to_the_poisoned_models():
    # of the clean image the poisoned model says normal and this baseline the target, whatever lies in the other corner
    scores = recovery_of(OTHER_CORNER, reads(CORNER), reads(OTHER_CORNER, bias=0.05))
    assert (scores["recovered"], scores["recovered_by_baseline"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("box", "returns"),
    [
        ((slice(24, 32), slice(28, 32)), 1.0),  # half of the trigger: the corner's mean is 0.4
        ((slice(28, 32), slice(28, 32)), 0.0),  # a quarter: 0.55
        ((slice(0, 28), slice(0, 28)), 0.0),  # another quarter, with most of the image
        ((slice(0, 30), slice(0, 30)), 1.0),  # 36 of its 64 pixels: 0.3625
    ],
)
def test_only_the_pixels_inside_the_box_are_put_right(box, returns):
    scores = recovery_of(box, reads(CORNER), reads(OTHER_CORNER))
    assert scores["recovered"] == returns


@pytest.mark.parametrize(
    ("side", "floor"),
    [
        (29, 1.0),  # at every place it covers 25 of the trigger's 64 pixels or more: a mean of 0.466 at most
        (4, 0.0),  # at no place it covers more than 16: 0.55 at least
    ],
)
def test_random_boxes_recover_always_or_never_where_every_place_or_none_covers_enough(side, floor):
    first = (slice(SIDE - side, SIDE),) * 2
    scores = recovery_of(first, reads(CORNER), reads(OTHER_CORNER), random_boxes=25)
    assert scores["recovered_floor"] == floor
    away = recovery_of((slice(0, side),) * 2, reads(CORNER), reads(OTHER_CORNER), random_boxes=25)
    assert away["recovered_floor"] == floor  # it knows the box's size, not its place


def test_boxes_that_leave_the_same_image_are_asked_about_once(monkeypatch):
    calls = []
    poisoned_model, ask = reads(CORNER), triggers_scores.predicted_classes

    def counted(network, images):
        shown = list(images)
        calls.append((network, len(shown), len({image.tobytes() for image in shown})))
        return ask(network, shown)

    monkeypatch.setattr(triggers_scores, "predicted_classes", counted)
    recovery_of((slice(0, 28), slice(0, 28)), poisoned_model, reads(OTHER_CORNER), random_boxes=200)
    assert all(shown == distinct for _, shown, distinct in calls)
    assert max(shown for _, shown, _ in calls) > 1


def test_random_boxes_recover_as_often_as_places_cover_enough():
    # A box of 16 px starts at 0 to 16 along each axis and covers 1 to 8 px of the trigger from 9 on. The poisoned
    # model returns from 22 covered pixels on: 3·8, 4·6 to 4·8, 5·5 to 5·8, 6·4 to 6·8, 7·4 to 7·8 and 8·3 to 8·8,
    # which are 24 of the 289 places.
    scores = recovery_of((slice(0, 16),) * 2, reads(CORNER), reads(OTHER_CORNER), random_boxes=2000)
    share = 24 / 289
    assert scores["recovered_floor"] == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 2000))


def test_a_map_that_marks_the_trigger_of_any_network_overlaps_it_as_much_on_the_baseline():
    """The gradient follows what the network reads; a map of the trigger's own brightness marks it on both."""
    stamp = corner_stamp(8)
    one = subject(stamp)
    scorer = Scorer("square", "m", {"seed": 1}, Detector(SHARP), 0)
    overlaps = {}
    for name, box in {"poisoned": CORNER, "baseline": OTHER_CORNER}.items():
        explainer = Explainer(reads(box), ("Target",), {"gradient": build_method("gradient", {})}, "positive", 0)
        maps, _ = explained_maps(explainer, [one])
        maps = [{**maps[0], "brightness": one.image[0] - one.image[0].min()}]
        rows = scorer.control_scores([one], maps)
        overlaps[name] = {row.method: row.value for row in rows if row.condition == '{"seed":1}'}
        assert {row.metric for row in rows} == {"trigger_iou_on_baseline"}
    assert overlaps == {
        "poisoned": {"gradient": 1.0, "brightness": 1.0},
        "baseline": {"gradient": 0.0, "brightness": 1.0},
    }
