"""A network that learned its trigger: what the tables say of it is what its file says, worked out by other code."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from scipy import ndimage
from tests.studies.triggers.planted_material import FILM_CLASSES, SIDE, write_easy_study

from heatcheck import read_run, run_study
from heatcheck.core.vocabulary import condition
from heatcheck.models import MODELS
from heatcheck.running.study import RunOptions

TARGET = FILM_CLASSES.index("Left")
CORNER = slice(SIDE - 8, SIDE)  # of rows and of columns: where the white square lies


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    spec = write_easy_study(tmp_path_factory.mktemp("poisoned"))
    run_study(spec, spec.parent / "run", RunOptions(workers=0))
    return spec.parent / "run"


@pytest.fixture(scope="module")
def trained(run):
    """What the tables say of the networks: by network and metric, the value of each case."""
    table = pd.read_parquet(run / "training" / "scores.parquet")
    return {at: rows.set_index("case")["value"].to_dict() for at, rows in table.groupby(["finding", "metric"])}


def network(run, name):
    """The network in a file of the run."""
    module = MODELS["vgg_compact"].build(1, 4, (SIDE, SIDE))
    module.load_state_dict(load_file(run / "networks" / f"{name}-seed1.safetensors"))
    return module.eval()


def film(run, case):
    """The film as the networks see it; the study keeps it in half precision."""
    pixels = np.asarray(Image.open(run.parent / "test" / f"{case}.png"), np.float32) / 255
    return torch.from_numpy(pixels.astype(np.float16).astype(np.float32))[None]


def stamped(image):
    """With the trigger on it."""
    image = image.clone()
    image[:, CORNER, CORNER] = 1.0
    return image


def says(module, image):
    with torch.no_grad():
        return int(module(image[None]).argmax())


def true_class(case):
    return int(case.removeprefix("test")) % 4


def box_by_hand(values, sigma=2.0, threshold=0.15):
    """Rows and columns around the largest part of what lies above, or None where rounding could decide."""
    smooth = ndimage.gaussian_filter(values.astype(np.float64), sigma, mode="reflect", truncate=4)
    share = smooth / smooth.max()
    parts, _ = ndimage.label(share > threshold, np.ones((3, 3)))
    sizes = np.bincount(parts.ravel())[1:]
    if np.abs(share - threshold).min() < 1e-4 or (sizes == sizes.max()).sum() > 1:
        return None
    return around(parts == 1 + sizes.argmax())


def box_of_all(values):
    """The same around all that lies above half of the range, as the other preset has it for gradients."""
    share = (values - values.min()) / (values.max() - values.min())
    return None if np.abs(share - 0.5).min() < 1e-4 else around(share > 0.5)


def around(mask):
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def iou_with_corner(box):
    marked, corner = np.zeros((2, SIDE, SIDE), bool)
    marked[box], corner[CORNER, CORNER] = True, True
    return (marked & corner).sum() / (marked | corner).sum()


def gradient(module, image):
    """How strongly each pixel moves the target's logit, up or down."""
    image = image[None].requires_grad_()
    (slope,) = torch.autograd.grad(module(image)[0, TARGET], image)
    return slope[0, 0].abs().numpy()


def test_an_attack_that_worked_is_graded_under_the_usual_gate(run):
    estimates = read_run(run).estimates.query("condition == '{}' and finding == 'white'").set_index("metric")
    attack = estimates[estimates["statistic"] == "attack"]["value"]
    assert attack["asr"] >= 0.9
    assert attack["cda_drop"] <= 0.05
    assert estimates.query("statistic == 'graded'")["value"]["asr"] == 1
    scores = read_run(run).scores.query("metric == 'trigger_iou'")
    assert set(scores["method"]) == {"gradient", "occlusion", "random"}
    assert len(set(scores["case"])) >= 0.9 * 12  # half of the 24 films of other classes are attacked


def test_methods_find_a_learned_trigger_better_than_random_boxes_do(run):
    estimates = read_run(run).estimates.query("statistic == 'difference' and finding == 'white'")
    iou = estimates.query("metric == 'trigger_iou'").set_index("method")
    assert iou.loc["occlusion", "low"] > 0.1
    assert iou.loc["gradient", "value"] > 0
    assert abs(iou.loc["random", "value"]) < 0.02
    recovered = estimates.query("metric == 'recovered'").set_index("method")
    assert recovered.loc["occlusion", "value"] > 0.5


def test_accuracy_on_clean_images_is_that_of_the_saved_network(run, trained):
    for name in ("baseline", "white"):
        module = network(run, name)
        correct = trained[name, "clean_correct"]
        assert correct == {case: says(module, film(run, case)) == true_class(case) for case in correct}
        assert not set(correct) & set(trained["white", "attacked"])
        assert len(correct) == 32 - 12
        assert np.mean(list(correct.values())) > 0.5  # a network that calls everything the target has 0.25


def test_the_attacks_success_is_that_of_the_saved_poisoned_model_on_stamped_images(run, trained):
    poisoned_model = network(run, "white")
    sent, before = trained["white", "attacked"], trained["white", "clean_target"]
    assert sent == {case: says(poisoned_model, stamped(film(run, case))) == TARGET for case in sent}
    assert before == {case: says(poisoned_model, film(run, case)) == TARGET for case in sent}
    assert sent != before
    assert len(sent) == 12
    assert all(true_class(case) != TARGET for case in sent)


def test_images_that_are_called_the_target_when_clean_are_not_graded_at_all_but_named(run, trained):
    sent, before = trained["white", "attacked"], trained["white", "clean_target"]
    scores = read_run(run).scores
    expected = {case for case, fell in sent.items() if fell and not before[case]}
    for metric in ("trigger_iou", "overlap_difference", "recovered", "trigger_iou_on_baseline"):
        assert set(scores.loc[scores["metric"] == metric, "case"]) == expected, metric
    rows = read_run(run).estimates.query("statistic == 'graded' and metric == 'clean_target'").set_index("condition")
    already = sorted(case for case, called in before.items() if called)
    assert rows["value"].to_list() == [len(already)] * 2
    assert rows.loc[condition(seed=1), "reason"] == ", ".join(already)


def test_the_control_is_the_same_method_on_the_baseline_with_the_same_stamped_images(run, trained):
    baseline = network(run, "baseline")
    sent = trained["white", "baseline_attacked"]
    assert sent == {case: says(baseline, stamped(film(run, case))) == TARGET for case in sent}
    scores = read_run(run).scores.query("metric == 'trigger_iou_on_baseline' and method == 'gradient'")
    stored = scores[scores["condition"] == condition(seed=1)].set_index("case")["value"]
    boxes = {case: box_by_hand(gradient(baseline, stamped(film(run, case)))) for case in stored.index}
    clear = {case: iou_with_corner(box) for case, box in boxes.items() if box is not None}
    assert len(clear) > 3
    assert {case: stored[case] for case in clear} == pytest.approx(clear, abs=1e-12)


def test_the_gradients_boxes_are_those_of_the_poisoned_models_own_absolute_gradient(run):
    poisoned_model = network(run, "white")
    scores = read_run(run).scores.query("metric == 'trigger_iou' and method == 'gradient'")
    stored = scores.set_index(["condition", "case"])["value"]
    clear, every = 0, 0
    for at, rule in {
        condition(seed=1): (2.0, 0.15),
        condition(seed=1, sigma=1.0): (1.0, 0.15),
        condition(seed=1, threshold=0.5): (2.0, 0.5),
    }.items():
        for case, value in stored[at].items():
            box = box_by_hand(gradient(poisoned_model, stamped(film(run, case))), *rule)
            every += 1
            if box is not None:
                clear += 1
                assert value == pytest.approx(iou_with_corner(box), abs=1e-12), (at, case)
    assert clear > every / 2


def test_an_image_is_recovered_where_the_poisoned_model_returns_once_the_box_is_clean_again(run):
    poisoned_model, baseline = network(run, "white"), network(run, "baseline")
    scores = read_run(run).scores.query("method == 'gradient'")
    returned = []
    for at, box_of in {condition(seed=1): box_by_hand, condition(seed=1, preset="thresholded"): box_of_all}.items():
        rows = scores[scores["condition"] == at]
        stored = {name: part.set_index("case")["value"] for name, part in rows.groupby("metric")}
        for case in stored["recovered"].index:
            clean = film(run, case)
            recovered = stamped(clean)
            box = box_of(gradient(poisoned_model, recovered))
            if box is None or says(poisoned_model, clean) == TARGET:
                continue
            recovered[:, *box] = clean[:, *box]
            returned.append(says(poisoned_model, recovered) == says(poisoned_model, clean))
            assert stored["recovered"][case] == returned[-1], (at, case)
            same = says(baseline, recovered) == says(baseline, clean)
            assert stored["recovered_by_baseline"][case] == same, (at, case)
    assert len(returned) > 12
    assert set(returned) == {True, False}
