"""The trigger study from spec to report, tiny, and what happens when it is interrupted."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.studies.triggers.planted_material import SMALL_TRIGGERS, classes_source, graded_whatever_came, write_study

from heatcheck import read_run, run_study
from heatcheck.core.errors import InputError
from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import condition
from heatcheck.running.compare import compare_runs
from heatcheck.running.progress import Silent
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.sources.phantoms.chest.classes import CLASSES
from heatcheck.studies.triggers import plan as triggers_plan


def write(folder, **changes):
    return write_study(folder, SMALL_TRIGGERS, **changes)


@pytest.fixture(scope="module", autouse=True)
def _graded():
    with graded_whatever_came():
        yield


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return write(tmp_path_factory.mktemp("triggers"))


@pytest.fixture(scope="module")
def finished(spec):
    """A run that nobody interrupted."""
    out = spec.parent / "whole"
    run_study(spec, out, RunOptions(workers=1))
    return out


@pytest.fixture(scope="module")
def brief(tmp_path_factory):
    """The spec of a study with four networks."""
    changes = {"triggers": ["square-corner-60"], "methods": ["gradient"], "gallery": 1}
    return write(tmp_path_factory.mktemp("brief"), **changes)


@pytest.fixture(scope="module")
def undisturbed(brief):
    """Its run, which nobody interrupted."""
    out = brief.parent / "undisturbed"
    run_study(brief, out, RunOptions(workers=1))
    return out


class Interrupts(Silent):
    """A watcher that stops the work when a step of that name begins, or after so many of its parts."""

    def __init__(self, at: str, after: int = 0) -> None:
        self.at, self.left = at, after
        self.begun: dict[str, int] = {}  # with how many parts done

    def start(self, what: str, total: int, done: int = 0) -> None:  # noqa: ARG002 - a watcher's
        self.begun[what] = done
        if what == self.at and not self.left:
            raise KeyboardInterrupt

    def advance(self, parts: int = 1, note: str = "") -> None:  # noqa: ARG002
        if self.at in self.begun:
            self.left -= parts
            if self.left <= 0:
                raise KeyboardInterrupt


def test_every_network_was_tried_on_clean_and_attacked_images(finished):
    scores = pd.read_parquet(finished / "training" / "scores.parquet")
    by_network = scores.groupby(["finding", "condition", "metric"]).size()
    for seed in (1, 2):
        at = condition(seed=seed)
        assert by_network["baseline", at, "clean_correct"] == 10  # accuracy is over the images that are not attacked
        for trigger in ("square-corner-60", "dynamic-60"):
            assert by_network[trigger, at, "clean_correct"] == 10
            assert by_network[trigger, at, "attacked"] == 6  # half of the twelve that are not of the target class
            assert by_network[trigger, at, "baseline_attacked"] == 6
    assert ("baseline", condition(seed=1), "attacked") not in by_network.index


def test_methods_are_graded_on_the_images_that_fell_for_the_attack_and_on_no_others(finished):
    training = pd.read_parquet(finished / "training" / "scores.parquet")
    fallen = training[(training["metric"] == "attacked") & (training["value"] == 1)]
    scores = read_run(finished).scores
    graded = scores[(scores["metric"] == "trigger_iou") & (scores["method"] == "gradient")]
    plain = graded[graded["condition"].isin([condition(seed=1), condition(seed=2)])]
    assert len(fallen)
    assert set(zip(plain["finding"], plain["condition"], plain["case"], strict=True)) == set(
        zip(fallen["finding"], fallen["condition"], fallen["case"], strict=True)
    )


def test_a_finished_run_keeps_its_networks_and_no_images_but_the_gallerys(finished):
    assert len(list((finished / "networks").glob("*.safetensors"))) == 6
    assert not [*finished.rglob("*.npy"), *finished.rglob("*.ckpt")]


def test_both_presets_and_the_sensitivity_are_scored(finished):
    scores = read_run(finished).scores
    conditions = {
        frozenset(json.loads(at).items()) for at in scores.loc[scores["metric"] == "trigger_iou", "condition"]
    }
    conditions = {facts for facts in conditions if ("seed", 1) in facts or ("seed", 2) in facts}
    kinds = {key for facts in conditions for key, _ in facts}
    assert kinds == {"seed", "preset", "sigma", "threshold"}


def test_estimates_hold_attack_means_comparisons_and_agreement(finished):
    estimates = read_run(finished).estimates
    for statistic in ("attack", "graded", "mean", "difference", "pair_mean"):
        assert (estimates["statistic"] == statistic).any(), statistic
    compared = set(estimates.query("statistic == 'difference'")["other_method"])
    assert {"random_box", "baseline", "half"} < compared
    assert set(read_run(finished).scores.query("metric == 'trigger_iou_on_baseline'")["method"]) == {
        "gradient", "grad_cam", "random"
    }  # fmt: skip
    scores = read_run(finished).scores
    of_metric = scores[
        (scores["metric"] == "trigger_iou")
        & (scores["method"] == "gradient")
        & (scores["finding"] == "square-corner-60")
        & scores["condition"].isin([condition(seed=1), condition(seed=2)])
    ]
    by_hand = of_metric.groupby("condition")["value"].mean().mean()  # over seeds of means over images
    row = estimates.query(
        "statistic == 'mean' and metric == 'trigger_iou' and method == 'gradient' and finding == 'square-corner-60' "
        "and condition == '{}'"
    )
    assert row["value"].item() == pytest.approx(by_hand, abs=1e-12)
    assert (estimates.query("statistic == 'mean' and condition == '{}'")["finding"] == ALL_FINDINGS).any()


@pytest.mark.parametrize(
    "at",
    [
        pytest.param("training square-corner-60, seed 1", marks=pytest.mark.slow),
        pytest.param("training baseline, seed 2", marks=pytest.mark.slow),
        "maps and scores",
    ],
)
def test_a_study_stopped_between_networks_goes_on_and_ends_with_the_same_scores(brief, undisturbed, tmp_path, at):
    with pytest.raises(KeyboardInterrupt):
        run_study(brief, tmp_path / "run", RunOptions(workers=1), Interrupts(at))
    trained = {path.name: path.read_bytes() for path in (tmp_path / "run" / "networks").glob("*.safetensors")}
    assert trained
    watcher = Interrupts("never")
    run_study(brief, tmp_path / "run", RunOptions(workers=1), watcher)
    again = [step for step in watcher.begun if step.startswith("training ")]
    assert len(again) == 4 - len(trained)
    for name, content in trained.items():
        assert (tmp_path / "run" / "networks" / name).read_bytes() == content
    pd.testing.assert_frame_equal(read_run(tmp_path / "run").scores, read_run(undisturbed).scores)
    pd.testing.assert_frame_equal(read_run(tmp_path / "run").estimates, read_run(undisturbed).estimates)


@pytest.mark.parametrize(
    "at", [pytest.param("training baseline, seed 1", marks=pytest.mark.slow), "training square-corner-60, seed 2"]
)
def test_a_study_stopped_inside_a_fit_goes_on_at_its_last_check_and_ends_with_the_same_scores(
    brief, undisturbed, tmp_path, at
):
    with pytest.raises(KeyboardInterrupt):
        run_study(brief, tmp_path / "run", RunOptions(workers=1), Interrupts(at, after=4))
    watcher = Interrupts("never")
    run_study(brief, tmp_path / "run", RunOptions(workers=1), watcher)
    assert {what: done for what, done in watcher.begun.items() if what.startswith("training ") and done} == {at: 3}
    for path in (undisturbed / "networks").glob("*.safetensors"):
        assert (tmp_path / "run" / "networks" / path.name).read_bytes() == path.read_bytes()
    pd.testing.assert_frame_equal(read_run(tmp_path / "run").scores, read_run(undisturbed).scores)
    pd.testing.assert_frame_equal(read_run(tmp_path / "run").estimates, read_run(undisturbed).estimates)


def test_where_the_attack_failed_methods_are_not_graded_and_the_report_says_so(spec, tmp_path):
    path = write(
        tmp_path,
        gate={"attack_success": 1.0, "accuracy_drop": 0.0, "clean_target": 0.0},
        seeds=1,
        triggers=["square-corner-20"],
    )
    run_study(path, tmp_path / "run", RunOptions(workers=1))
    estimates = read_run(tmp_path / "run").estimates
    graded = estimates.query("statistic == 'graded'")
    assert set(graded["value"]) == {0.0}
    assert graded["reason"].str.contains("is below 1.00|fell by|even without").any()
    assert "trigger_iou" not in set(read_run(tmp_path / "run").scores["metric"])
    assert "graded" in (tmp_path / "run" / "report.html").read_text()


def test_the_gallery_shows_poisoned_image_map_box_and_clean_baseline_maps(finished):
    gallery = read_run(finished).gallery
    assert (finished / "preview.png").exists()
    assert gallery["items"]
    for item in gallery["items"]:
        clean, poisoned = (np.asarray(Image.open(finished / "gallery" / item[name])) for name in ("clean", "poisoned"))
        left, top, right, bottom = item["trigger_box"]
        changed = clean != poisoned
        assert changed.any()
        changed[top:bottom, left:right] = False
        assert not changed.any()
        assert {shown["method"] for shown in item["maps"]} == {"gradient", "grad_cam", "random"}
        for shown in (*item["maps"], *item["baseline"]):
            assert (finished / "gallery" / shown["file"]).exists()


def test_real_artefacts_are_graded_without_training(tmp_path):
    for part in ("films", "masks/streak"):
        (tmp_path / part).mkdir(parents=True)
    generator = np.random.default_rng(1)
    for number in range(3):
        film = generator.integers(0, 255, (48, 48), dtype=np.uint8)
        Image.fromarray(film).save(tmp_path / "films" / f"film{number}.png")
        mask = np.zeros((48, 48), np.uint8)
        mask[10:20, 30:40] = 255
        Image.fromarray(mask).save(tmp_path / "masks/streak" / f"film{number}.png")
    none = dict.fromkeys(("size", "training", "validation", "test", "triggers", "seeds", "fit", "retrain"))
    artefacts = {"name": "folder", "images": "films", "masks": "masks"}
    path = write(tmp_path, **none, model="phantom_chest_densenet", artefacts=artefacts)
    run_study(path, tmp_path / "run", RunOptions(workers=1))
    scores = read_run(tmp_path / "run").scores
    assert set(scores["finding"]) == {"streak"}
    assert len(scores.query("metric == 'trigger_iou' and method == 'gradient'")["case"].unique()) == 3
    assert not set(scores["metric"]) & {"recovered", "overlap_difference"}
    assert not (tmp_path / "run" / "networks").exists()
    assert "streak" in (tmp_path / "run" / "report.html").read_text()


def test_two_runs_are_compared_on_the_images_and_seeds_that_both_graded(finished):
    comparison = compare_runs(finished, finished, draws=100)
    assert "48 cases are in both runs" in " ".join(comparison.sentences)
    scores = read_run(finished).scores
    of_metric = scores[
        scores["condition"].isin([condition(seed=1), condition(seed=2)]) & (scores["metric"] == "trigger_iou")
    ]
    for row in comparison.rows:
        assert row.difference == 0
        if row.metric == "trigger_iou" and row.finding != ALL_FINDINGS:
            assert row.n_cases == ((of_metric["finding"] == row.finding) & (of_metric["method"] == row.method)).sum()
    assert not any(row.metric == "ssim" for row in comparison.rows)


GREY = {"outputs": list(CLASSES), "size": [96, 96], "channels": 1, "activation": "softmax"}
PADDED = {**GREY, "mean": [0.5], "std": [0.25], "fit": "pad"}
OWN_SCALE = {**GREY, "scaling": "nonzero"}
BAD = {
    "a trigger larger than the image": ({"triggers": ["square-corner-300"]}, "square-corner-300"),
    "a target that is no class": ({"target": "Normall"}, "did you mean 'Normal'"),
    "nothing poisoned": ({"poison": {"training": 0}}, "must be above 0"),
    "everything poisoned": ({"poison": {"training": 1}}, "below 1"),
    "no test image left for the accuracy": ({"poison": {"test": 1}}, "images that are not attacked"),
    "more poisoned than there are": ({"poison": {"training": 0.9}}, "only 18 are not of the target class"),
    "an unknown trigger": ({"triggers": ["sqare-corner-20"]}, "square"),
    "two triggers of one name": ({"triggers": ["square-corner-20", "square-corner-20"]}, "are called"),
    "a method that knows the answer": ({"methods": ["location_prior"]}, "leave it out"),
    "data of several findings": (
        {"training": {"name": "phantom_chest", "patients": 4}}, "does not belong to exactly one class"
    ),
    "shared patients": ({"validation": classes_source(100, 2)}, "share"),
    "a baseline that is trained elsewhere, with a size": ({"model": "phantom_chest_densenet"}, "leave out `size`"),
    "nothing to plant": ({"triggers": []}, "name at least one of `triggers`, or `artefacts`"),
    "a batch larger than the data": (
        {"fit": {"batch_size": 64}}, "`fit`: 24 examples do not fill a batch of 64"
    ),
    "a larger batch of the attack": (
        {"retrain": {"batch_size": 64}}, "`retrain`: 24 examples do not fill a batch of 64"
    ),
    "weights to start from that are not there": ({"start": "nowhere.pth"}, "nowhere.pth: no such weights file"),
    "pixels of a baseline that has its own": (
        {"model": "phantom_classes_vgg", "size": None, "pixels": {"channels": 1}}, "leave out `size`, `pixels`"
    ),
    "a padded baseline": (
        {"model": {"name": "phantom_classes_vgg", "contract": PADDED}, "size": None}, "set `fit: stretch`"
    ),
    "a baseline that scales images by themselves": (
        {"model": {"name": "phantom_classes_vgg", "contract": OWN_SCALE}, "size": None}, "scaling: fixed"
    ),
    "pixels of 8 bits where they reach from 0 to 1": (
        {"pixels": {"mean": 127.5, "std": 64}}, "set mean [0.5] and std [0.251]"
    ),
    "images scaled by themselves": ({"pixels": {"scaling": "nonzero"}}, "scaling: fixed"),
    "an unknown key": ({"triger": 1}, "unknown key"),
}  # fmt: skip


def test_artefacts_without_masks_and_targets_that_the_model_does_not_know_are_refused(tmp_path):
    none = dict.fromkeys(("size", "training", "validation", "test", "triggers", "seeds", "fit", "retrain"))
    (tmp_path / "films").mkdir()
    Image.fromarray(np.zeros((48, 48), np.uint8)).save(tmp_path / "films" / "film.png")
    (tmp_path / "masks" / "streak").mkdir(parents=True)
    artefacts = {"name": "folder", "images": "films", "masks": "masks"}
    path = write(tmp_path, **none, model="phantom_chest_densenet", artefacts=artefacts, target="Edemma")
    with pytest.raises(InputError, match="no image of `artefacts` has a mask"):
        run_study(path, tmp_path / "run", RunOptions(workers=1))
    Image.fromarray(np.full((48, 48), 255, np.uint8)).save(tmp_path / "masks" / "streak" / "film.png")
    with pytest.raises(InputError, match="did you mean 'Edema'"):
        run_study(path, tmp_path / "run", RunOptions(workers=1))


def test_what_a_first_look_shows_is_a_caution_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(triggers_plan, "first_look", lambda *_: ("Odd.",))
    plan = triggers_plan.plan_triggers(read_spec(str(write(tmp_path))), RunOptions(workers=1), tmp_path / "run")
    assert plan.facts["cautions"] == ["Odd."]


@pytest.mark.parametrize("what", BAD)
def test_bad_specs_are_refused_in_one_line_before_anything_is_written(tmp_path, what):
    changes, expected = BAD[what]
    with pytest.raises(InputError) as refused:
        run_study(write(tmp_path, **changes), tmp_path / "run", RunOptions(workers=1))
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()
