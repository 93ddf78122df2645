"""The localization study from spec to report, tiny, and what happens when it is interrupted."""

import base64
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from safetensors.numpy import load_file

from heatcheck import read_run, run_study
from heatcheck.core.errors import InputError, ModelError, RunFolderError, SpecError
from heatcheck.core.vocabulary import condition
from heatcheck.explaining import dry_run as readiness
from heatcheck.explaining.batch import Explainer
from heatcheck.explaining.first_look import preview
from heatcheck.running.progress import Silent
from heatcheck.running.study import RunOptions
from heatcheck.runs.store import RunFolder

SCALE = {"channels": 1, "mean": [0.0], "std": [1.0], "activation": "sigmoid"}
FEWER = {"findings": ["Airspace Opacity", "Pleural Effusion"], "bootstrap_draws": 100, "gallery": 2}


class Listening(Silent):
    """Keeps what is said."""

    def __init__(self):
        self.said = []

    def say(self, sentence):
        self.said.append(sentence)


def scores_of(path):
    return pd.read_parquet(path / "scores.parquet")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, small_spec):
    """A run that nobody interrupted, with its spec."""
    folder = tmp_path_factory.mktemp("undisturbed")
    spec = folder / "small.yaml"
    spec.write_text(yaml.safe_dump({**small_spec, **FEWER}))
    outcome = run_study(spec, folder / "run")
    return spec, folder / "run", outcome


def test_a_run_leaves_every_table_and_a_report(undisturbed):
    _, path, outcome = undisturbed
    run = read_run(path)
    assert run.manifest["status"] == "complete"
    assert outcome.n_failed == 0
    assert outcome.n_cases == len(run.cases) == run.manifest["n_cases"]
    assert outcome.report.read_text().startswith("<!doctype html>")
    assert set(run.scores["method"]) == {"grad_cam", "random", "location_prior", "human"}
    assert set(run.estimates["statistic"]) >= {"mean", "difference", "percent_decrease", "test", "ratio", "auroc"}
    assert len(run.predictions) == 2 * len(run.cases)
    assert 0 < len({item["case"] for item in run.gallery["items"]}) <= 2  # each with all its findings
    assert (path / "maps" / "gallery.safetensors").exists()
    assert (path / "preview.png").exists()


def test_scores_are_sorted_and_unique_and_undefined_ones_have_a_reason(undisturbed):
    scores = scores_of(undisturbed[1])
    keys = ["case", "finding", "method", "metric", "condition", "other_method"]
    assert not scores.duplicated(keys).any()
    pd.testing.assert_frame_equal(scores, scores.sort_values(keys, ignore_index=True))
    assert (scores["value"].isna() == (scores["reason"] != "")).all()


def test_the_reported_mean_is_the_mean_of_the_scores(undisturbed):
    run = read_run(undisturbed[1])
    chosen = run.scores.query("metric == 'iou' and method == 'grad_cam' and condition == '{}'")
    means = run.estimates.query(
        "statistic == 'mean' and metric == 'iou' and method == 'grad_cam' and condition == '{}'"
    )
    means = means.set_index("finding")
    by_finding = chosen.groupby("finding")["value"].mean()
    for finding, value in by_finding.items():
        assert means.loc[finding, "value"] == pytest.approx(value)
    assert means.loc["All findings", "value"] == pytest.approx(by_finding.mean())


def test_a_finished_run_is_not_done_again(undisturbed, monkeypatch):
    spec, path, _ = undisturbed
    before = scores_of(path)
    monkeypatch.setattr(RunFolder, "write_shard", lambda *_: pytest.fail("a finished shard was written again"))
    run_study(spec, path)
    pd.testing.assert_frame_equal(before, scores_of(path))


KILLED = """
import os, signal, sys
from pathlib import Path
from heatcheck import run_study
from heatcheck.models import ModelSettings, load_classifier
from heatcheck.runs import store
from heatcheck.studies.localization import plan, report
load_classifier(ModelSettings(name="phantom_chest_densenet"))
write = store.write_table
def die_after(name):
    def deadly(path, record, rows):
        write(path, record, rows)
        if path.name == name:
            (path.parent / "00099.parquet.tmp-left").write_bytes(b"half a file")
            os.kill(os.getpid(), signal.SIGKILL)
    store.write_table = deadly
    run_study(sys.argv[1], Path(sys.argv[2]) / name)
for name in sys.argv[3:]:
    child = os.fork() or die_after(name) or os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""
LAST_WRITTEN = ["00000.predictions.parquet", "00001.parquet", "estimates.parquet"]


@pytest.fixture(scope="module")
def killed(undisturbed, tmp_path_factory):
    """The folder of runs that were killed, each after it wrote the file that it is named after.

    One process starts them all, once it has imported what they need: to import takes longer than a run.
    """
    folder = tmp_path_factory.mktemp("killed")
    arguments = [sys.executable, "-c", KILLED, str(undisturbed[0]), str(folder), *LAST_WRITTEN]
    done = subprocess.run(arguments, check=False, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.mark.parametrize("last_written", LAST_WRITTEN)
def test_a_killed_run_goes_on_and_ends_with_the_same_scores(undisturbed, killed, last_written):
    spec, path, _ = undisturbed
    out = killed / last_written
    assert json.loads((out / "run.json").read_text())["status"] == "running"
    run_study(spec, out)
    pd.testing.assert_frame_equal(scores_of(path), scores_of(out), check_exact=True)
    for name in ("estimates", "predictions"):
        pd.testing.assert_frame_equal(*(pd.read_parquet(p / f"{name}.parquet") for p in (path, out)), check_exact=True)
    assert not list(out.rglob("*.tmp-*"))


def test_another_spec_in_the_same_folder_is_refused_and_nothing_is_lost(undisturbed, write_spec):
    _, path, _ = undisturbed
    before = (path / "run.json").read_bytes()
    with pytest.raises(RunFolderError, match=r"holds another run.*choose another --out"):
        run_study(write_spec(**FEWER, batch_size=2), path)
    assert (path / "run.json").read_bytes() == before


def test_other_cases_in_the_same_folder_are_refused(undisturbed):
    spec, path, _ = undisturbed
    with pytest.raises(RunFolderError, match="the list of cases"):
        run_study(spec, path, RunOptions(limit=3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metods": ["grad_cam"]}, "unknown key 'metods'; did you mean 'methods'"),
        ({"sead": 3}, "unknown key 'sead'; did you mean 'seed'"),
        ({"methods": ["grad_camm"]}, "did you mean 'grad_cam'"),
        ({"methods": ["grad_cam", "grad_cam"]}, "named twice"),
        ({"methods": [{"layer": "x"}]}, "a mapping with a `name`"),
        ({"metrics": ["iuo"]}, "did you mean 'iou'"),
        ({"metrics": ["true_positive_pixels"]}, "always counted"),
        (
            {"metrics": ["iou", "trigger_iou"]},
            "trigger_iou compares box, not a map with outlines; choose among box_iou",
        ),
        ({"model": "phantom_chest_densenett"}, "did you mean 'phantom_chest_densenet'"),
        ({"model": "densenet_compact"}, "preprocessing is unknown|without weights"),
        ({"source": {"name": "phantom_chst"}}, "did you mean 'phantom_chest'"),
        ({"source": {"name": "phantom_chest", "pateints": 3}}, "did you mean 'patients'"),
        ({"source": {"patients": 3}}, "a source needs a `name`"),
        ({"source": {"name": "folder", "images": "nowhere"}}, "nowhere: no such folder"),
        ({"findings": ["Cardiomegalie"]}, "did you mean 'Cardiomegaly'"),
        ({"region": {"threshold": 1.5}}, "from 0 up to 1"),
        ({"methods": [{"name": "gradient", "smooth": [0.05, 0.1]}]}, "gradient has several .* add `validation`, or"),
        ({"methods": [{"name": "gradient", "smooth": 2}]}, "region: smooth: must be at most 1, got 2"),
        ({"methods": [{"name": "gradient", "colours": 50.5}]}, "region: .* whole number of pixels.* got 50.5"),
        ({"channels": "positiv"}, "did you mean 'positive'"),
        ({"study": "localisation"}, "did you mean 'localization'"),
        ({"study": "training"}, "use `heatcheck train`"),
        ({"methods": None}, "'methods' is missing"),
        ({"methods": [{"name": "grad_cam", "layer": "class_layers.rely"}]}, "did you mean 'class_layers.relu'"),
        ({"findings": ["Edema", "Edema"]}, "none twice"),
        ({"findings": []}, "at least one finding"),
        ({"source": {"name": ["x"]}}, "a source needs a `name`"),
        ({"methods": [{"name": "occlusion", "window": 4, "stride": 5}]}, "method occlusion: stride 5 leaves gaps"),
        ({"methods": [{"name": "lime", "segments": {"kind": "slic", "count": 10**6}}]}, "method lime: .* use fewer"),
        ({"methods": [{"name": "lime", "segments": {"kind": "slick"}}]}, "method lime: segments"),
        (
            {"methods": ["feature_permutation"], "source": {"name": "phantom_chest", "patients": 1, "size": 80}},
            "feature_permutation needs images of other patients, and all cases are of one",
        ),
    ],
)
def test_what_can_be_known_before_work_is_said_before_work(changes, message, write_spec, tmp_path):
    with pytest.raises(InputError, match=message):
        run_study(write_spec(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_without_an_output_for_a_finding_is_refused(write_spec, tmp_path):
    images = make_images(tmp_path)
    source = {"name": "folder", "images": str(images), "labels": str(tmp_path / "labels.csv")}
    with pytest.raises(SpecError, match="no output for hernia; its outputs are Airspace Opacity"):
        run_study(write_spec(source={**source, "masks": str(tmp_path / "masks")}), tmp_path / "run")


def test_a_source_without_any_outline_is_refused_before_any_work(write_spec, tmp_path):
    images = make_images(tmp_path)
    (tmp_path / "none").mkdir()
    source = {"name": "folder", "images": str(images), "labels": str(tmp_path / "labels.csv")}
    with pytest.raises(SpecError, match="none holds no masks; expected none/<finding>/"):
        run_study(write_spec(source={**source, "masks": str(tmp_path / "none")}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_of_your_own_needs_trust(write_spec, tmp_path):
    contract = {**SCALE, "outputs": ["Edema"], "size": [32, 32]}
    spec = write_spec(model={"name": "python:mine:make", "contract": contract})
    with pytest.raises(ModelError, match="--trust-code"):
        run_study(spec, tmp_path / "run")


def make_images(folder: Path, count: int = 8, finding: str = "hernia") -> Path:
    """Grey images whose bright square is the finding on every second one, with masks and labels."""
    images, masks = folder / "images", folder / "masks" / finding
    images.mkdir()
    masks.mkdir(parents=True)
    rows = [f"image,patient,{finding}"]
    for number in range(count):
        generator = np.random.default_rng(number)
        pixels = generator.integers(0, 60, (48, 64), dtype=np.uint8)
        mask = np.zeros_like(pixels)
        row, column = generator.integers(4, 30, 2)
        mask[row : row + 12, column : column + 12] = 255
        positive = number % 2 == 0
        if positive:
            pixels[mask > 0] += 150
            Image.fromarray(mask).save(masks / f"img{number}.png")
        Image.fromarray(pixels).save(images / f"img{number}.png")
        rows.append(f"img{number}.png,p{number // 2},{int(positive)}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return images


MODEL = """
import torch
from torch import nn

class Brightness(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(1, 1, 3, padding=1, bias=False)
        self.relu = nn.ReLU()
        nn.init.constant_(self.features.weight, 1 / 9)

    def forward(self, images):
        return self.relu(self.features(images) - 0.5).mean((2, 3)) * 100 - 1

def make():
    return Brightness()
"""


@pytest.fixture
def own_study(tmp_path, write_spec):
    """A study of one's own images and model, which points at the right place by construction."""
    make_images(tmp_path)
    (tmp_path / "brightness_model.py").write_text(MODEL)
    contract = {**SCALE, "outputs": ["hernia"], "size": [24, 32], "fit": "pad"}
    return write_spec(
        source={"name": "folder", "images": "images", "labels": "labels.csv", "masks": "masks"},
        model={"name": "python:brightness_model:make", "contract": contract},
        methods=["grad_cam", "random", "location_prior"],
        bootstrap_draws=100,
    )


def test_your_own_images_and_model_are_studied(own_study, tmp_path):
    methods = ["grad_cam", "random", "center_prior", "edge", "location_prior"]
    own_study.write_text(yaml.safe_dump({**yaml.safe_load(own_study.read_text()), "methods": methods}))
    outcome = run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    assert outcome.n_failed == 0
    run = read_run(tmp_path / "run")
    assert run.manifest["trusted_code"] is True
    hits = run.scores.query("metric == 'hit' and method == 'grad_cam' and condition == '{}'")["value"]
    assert (hits == 1).all()
    assert len(hits) == 4
    auroc = run.estimates.query("statistic == 'auroc' and finding == 'hernia'")["value"].item()
    assert auroc == 1
    assert "readers" in outcome.report.read_text()


def test_a_method_that_cannot_explain_the_model_is_left_out_with_a_note(own_study, tmp_path):
    """The terminal, run.json and the report name it; the same command continues the run."""
    spec = {**yaml.safe_load(own_study.read_text()), "methods": ["attention_rollout", "grad_cam", "random"]}
    own_study.write_text(yaml.safe_dump(spec))
    listener = Listening()
    trusted = RunOptions(trust_code=True)
    report = run_study(own_study, tmp_path / "run", trusted, listener).report.read_text()
    (sentence,) = (sentence for sentence in listener.said if "Attention rollout" in sentence)
    assert sentence.startswith("Without Attention rollout on python:brightness_model:make: ")
    run = read_run(tmp_path / "run")
    assert run.manifest["skipped"][0]["name"] == "attention_rollout"
    assert [part["name"] for part in run.manifest["spec"]["methods"]] == ["grad_cam", "random"]
    assert "Attention rollout took no part, because it cannot explain this model" in report
    assert "<li>Attention rollout on python:brightness_model:make: " in report
    assert set(run.scores["method"]) == {"grad_cam", "random"}
    assert run_study(own_study, tmp_path / "run", trusted).n_failed == 0
    own_study.write_text(yaml.safe_dump({**spec, "strict": True}))
    with pytest.raises(ModelError, match="method attention_rollout"):
        run_study(own_study, tmp_path / "run", trusted)


def test_a_set_of_methods_is_written_out_in_the_run_and_can_be_continued(own_study, tmp_path):
    own_study.write_text(yaml.safe_dump({**yaml.safe_load(own_study.read_text()), "methods": "fast", "gallery": 0}))
    trusted = RunOptions(trust_code=True, limit=1)
    run_study(own_study, tmp_path / "run", trusted)
    names = [part["name"] for part in read_run(tmp_path / "run").manifest["spec"]["methods"]]
    assert {"grad_cam", "gradient", "location_prior"} <= set(names)
    assert "occlusion" not in names
    run_study(own_study, tmp_path / "run", trusted)  # refused, were they others


def test_mean_and_std_that_no_pixel_reaches_are_refused_before_anything_is_written(own_study, tmp_path):
    values = yaml.safe_load(own_study.read_text())
    values["model"]["contract"] |= {"mean": [127.5], "std": [64]}
    own_study.write_text(yaml.safe_dump(values))
    remedy = r"trained on pixels from 0 to 255, set mean \[0.5\] and std \[0.251\]$"
    with pytest.raises(ModelError, match=remedy):
        run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    assert not (tmp_path / "run").exists()


def test_answers_that_look_like_probabilities_are_said_in_the_terminal_and_in_the_report(own_study, tmp_path):
    squashed = MODEL.replace("return self.relu(", "return torch.sigmoid(self.relu(").replace("* 100 - 1", "* 400 - 2)")
    (tmp_path / "squashed_model.py").write_text(squashed)
    own_study.write_text(own_study.read_text().replace("brightness_model", "squashed_model"))
    listener = Listening()
    outcome = run_study(own_study, tmp_path / "run", RunOptions(trust_code=True), listener)
    sentence = "The answers of model python:squashed_model:make look like probabilities, not logits: on 8 images"
    assert len([said for said in listener.said if said.startswith(sentence)]) == 1
    assert f"<li>{sentence}" in outcome.report.read_text()


def test_images_without_a_row_are_said_in_the_terminal_and_in_the_report(own_study, tmp_path):
    labels = (tmp_path / "labels.csv").read_text().splitlines()
    (tmp_path / "labels.csv").write_text("\n".join(labels[:-2]) + "\n")
    listener = Listening()
    outcome = run_study(own_study, tmp_path / "run", RunOptions(trust_code=True), listener)
    sentence = "2 of 8 images in images/ have no row in labels.csv and take no part"
    assert len([said for said in listener.said if said.startswith(sentence)]) == 1
    assert f"<li>{sentence}" in outcome.report.read_text()


def test_what_the_network_is_given_is_there_before_the_work_and_said_once(own_study, tmp_path, monkeypatch):
    listener = Listening()
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_shard", lambda *_: pytest.fail("stopped"))
        with pytest.raises(BaseException, match="stopped"):
            run_study(own_study, tmp_path / "run", RunOptions(trust_code=True), listener)
    before = (tmp_path / "run" / "preview.png").read_bytes()
    run_study(own_study, tmp_path / "run", RunOptions(trust_code=True), listener)
    assert (tmp_path / "run" / "preview.png").read_bytes() == before
    assert listener.said.count(f"What the network is given: {tmp_path / 'run' / 'preview.png'}") == 1


def test_preview_of_a_pseudonymised_run_names_nobody(own_study, tmp_path, monkeypatch):
    drawn = []
    draw = preview.contact_sheet
    monkeypatch.setattr(preview, "contact_sheet", lambda blocks: drawn.extend(blocks) or draw(blocks))
    run_study(own_study, tmp_path / "run", RunOptions(trust_code=True, pseudonymise=True))
    names = {tile.name for block in drawn for tile in block.tiles}
    assert names == set(read_run(tmp_path / "run").cases["case"])
    assert not any("img" in name for name in names)


def test_a_model_that_is_always_wrong_is_said_in_the_terminal_and_in_the_report(write_spec, tmp_path):
    make_images(tmp_path, 32)
    (tmp_path / "contrary_model.py").write_text(MODEL.replace("* 100 - 1", "* -100 + 1"))
    listener = Listening()
    spec = write_spec(
        source={"name": "folder", "images": "images", "labels": "labels.csv", "masks": "masks"},
        model={"name": "python:contrary_model:make", "contract": {**SCALE, "outputs": ["hernia"], "size": [24, 32]}},
        methods=["random"],
        bootstrap_draws=100,
        gallery=0,
    )
    outcome = run_study(spec, tmp_path / "run", RunOptions(trust_code=True), listener)
    assert "The model answers clearly worse than by guessing (hernia: AUROC 0.00" in listener.said[-1]
    assert listener.said[-1] in html.unescape(outcome.report.read_text())


def test_what_a_contract_does_not_say_is_asked_for(own_study, tmp_path):
    values = yaml.safe_load(own_study.read_text())
    del values["model"]["contract"]["mean"], values["model"]["contract"]["activation"]
    own_study.write_text(yaml.safe_dump(values))
    with pytest.raises(SpecError, match=r"'model.contract': the contract does not say mean, activation; add what the"):
        run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: (f / "images" / "img2.png").write_bytes(b""), "empty"),
        (lambda f: (f / "images" / "img2.png").write_text("not an image"), "not an image"),
        (lambda f: (f / "images" / "img2.png").write_bytes((f / "images/img4.png").read_bytes()[:300]), "truncated"),
        (lambda f: Image.new("L", (20, 20), 255).save(f / "masks" / "hernia" / "img2.png"), "20×20"),
        (lambda f: (f / "images" / "img2.png").unlink(), "does not exist"),
        (
            lambda f: (
                (f / "images" / "img2.png").unlink(),
                np.save(f / "images" / "img2.npy", np.full((48, 64), np.nan, np.float32)),
            ),
            "NaN",
        ),
    ],
    ids=["0 bytes", "text", "truncated", "mask size", "missing", "NaN"],
)
def test_one_bad_case_is_recorded_and_the_others_are_scored(own_study, tmp_path, spoil, reason):
    spoil(tmp_path)
    outcome = run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    assert (outcome.n_failed, outcome.n_cases) == (1, 8)
    run = read_run(tmp_path / "run")
    failed = run.cases[run.cases["status"] == "failed"]
    assert failed["case"].tolist() == ["img2"]
    assert reason in failed["reason"].item()
    assert str(tmp_path) not in failed["reason"].item()
    assert "Traceback" in failed["detail"].item()
    assert set(run.scores["case"]) == {f"img{i}" for i in range(8) if i != 2}
    assert "img2" in outcome.report.read_text()
    assert str(tmp_path) not in outcome.report.read_text()


def test_a_label_that_denies_a_mask_fails_that_image_or_is_ignored_under_the_benchmarks_preset(own_study, tmp_path):
    labels = pd.read_csv(tmp_path / "labels.csv")
    marked = min(path.stem for path in (tmp_path / "masks" / "hernia").iterdir())
    labels.loc[labels["image"].str.startswith(marked), "hernia"] = 0
    labels.to_csv(tmp_path / "labels.csv", index=False)
    outcome = run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    assert (outcome.n_failed, outcome.n_cases) == (1, 8)
    failed = read_run(tmp_path / "run").cases.query("status == 'failed'")
    assert failed["case"].tolist() == [marked]
    assert failed["reason"].item() == f"{marked} has a mask of hernia, but its label says 0; correct one of them"
    own_study.write_text(yaml.safe_dump({**yaml.safe_load(own_study.read_text()), "preset": "chexlocalize"}))
    outcome = run_study(own_study, tmp_path / "ignored", RunOptions(trust_code=True, pseudonymise=True))
    assert outcome.n_failed == 0
    run = read_run(tmp_path / "ignored")
    assert len(run.scores.query("metric == 'hit' and method == 'grad_cam' and condition == '{}'")) == 4
    assert (run.predictions["label"] == 1).sum() == 4  # what is marked is there
    used = {switch["name"]: switch["used"] for switch in run.manifest["switches"]}
    assert used["contradiction"] == "is scored; the label is ignored"


def test_a_case_on_which_the_model_gives_nan_is_the_only_one_lost(own_study, tmp_path):
    poisoned = MODEL.replace(
        "* 100 - 1", "* 100 - 1 + torch.where(images.amax((1, 2, 3)) > 0.9, torch.nan, 0.0)[:, None]"
    )
    (tmp_path / "brightness_model.py").write_text(poisoned.replace("def make", "class Other:\n    pass\n\ndef make"))
    pixels = np.asarray(Image.open(tmp_path / "images" / "img3.png")).copy()
    pixels[:30, :30] = 255
    Image.fromarray(pixels).save(tmp_path / "images" / "img3.png")
    sys.modules.pop("brightness_model", None)
    outcome = run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    sys.modules.pop("brightness_model", None)
    failed = read_run(tmp_path / "run").cases.query("status == 'failed'")
    assert (outcome.n_failed, failed["case"].tolist()) == (1, ["img3"])
    assert "not finite" in failed["reason"].item()


def test_pseudonyms_hide_every_id(own_study, tmp_path):
    (tmp_path / "images" / "img2.png").write_bytes(b"")
    out = tmp_path / "run"
    options = RunOptions(trust_code=True, pseudonymise=True)
    run_study(own_study, out, options)
    run = read_run(out)
    report = (out / "report.html").read_text()
    tables = re.findall(r"data:text/csv;charset=utf-8;base64,([A-Za-z0-9+/=]+)", report)
    read = "".join(base64.b64decode(table).decode() for table in tables)
    bare = re.sub(r"base64,[A-Za-z0-9+/=]+", "", report)  # the letters of a picture may spell anything
    text = bare + read + run.cases.to_csv() + run.scores.to_csv() + (out / "run.json").read_text()
    assert "img" not in run.cases["case"].str.cat()
    assert not any(f"img{i}" in text for i in range(8))
    assert run.cases["patient"].nunique() == 4
    before = scores_of(out)
    run_study(own_study, out, options)
    pd.testing.assert_frame_equal(before, scores_of(out))


def test_kept_maps_are_those_of_every_case(own_study, tmp_path, write_spec):
    spec = yaml.safe_load(own_study.read_text())
    own_study.write_text(yaml.safe_dump({**spec, "keep_maps": "all"}))
    run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    kept = {}
    for file in sorted((tmp_path / "run" / "maps").glob("0*.safetensors")):
        kept |= load_file(file)
    assert len(kept) == 8 * 3
    assert kept["img0/hernia/grad_cam"].shape == (48, 64)


def test_changed_data_or_code_in_the_same_folder_are_refused(own_study, tmp_path):
    options = RunOptions(trust_code=True)
    run_study(own_study, tmp_path / "run", options)
    mask = tmp_path / "masks" / "hernia" / "img2.png"
    outline = mask.read_bytes()
    Image.new("L", (64, 48), 255).save(mask)
    with pytest.raises(RunFolderError, match="differs in the files of images, masks or labels"):
        run_study(own_study, tmp_path / "run", options)
    mask.write_bytes(outline)
    (tmp_path / "brightness_model.py").write_text(MODEL.replace("- 0.5", "- 0.4"))
    sys.modules.pop("brightness_model", None)
    with pytest.raises(RunFolderError, match="differs in the model's code or weights"):
        run_study(own_study, tmp_path / "run", options)
    sys.modules.pop("brightness_model", None)


def test_masks_named_like_no_image_are_refused(own_study, tmp_path):
    for path in (tmp_path / "masks" / "hernia").iterdir():
        path.rename(path.with_name(f"x{path.name}"))
    with pytest.raises(InputError, match=r"no mask in .* is named like an image, e\.g\. ximg0"):
        run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))


def test_a_limited_run_says_so(write_spec, tmp_path):
    outcome = run_study(write_spec(**FEWER), tmp_path / "run", RunOptions(limit=3))
    cases = pd.read_parquet(tmp_path / "run" / "cases.parquet")
    assert cases["patient"].nunique() == 3
    said = f"Only {len(cases)} cases of 3 patients, spread over the findings, were studied"
    assert said in outcome.report.read_text()


MASKS = [
    {"name": name, "segments": {"kind": "grid", "cells": 6}, **settings}
    for name, settings in {
        "feature_ablation": {},
        "feature_permutation": {},
        "lime": {"samples": 120},
        "kernel_shap": {"samples": 120, "max_batch": 5},
        "shapley_value_sampling": {"permutations": 3},
    }.items()
] + [{"name": "occlusion", "window": 4, "stride": 4}]


def test_mask_methods_find_what_the_model_sees_and_their_batch_is_found_once(own_study, tmp_path, monkeypatch):
    own_study.write_text(yaml.safe_dump({**yaml.safe_load(own_study.read_text()), "methods": MASKS}))
    found = []
    monkeypatch.setattr(readiness, "best_batch", lambda *_: found.append(3) or 3)
    made = []
    explain = Explainer.__call__
    monkeypatch.setattr(Explainer, "__call__", lambda self, cases: made.append(self) or explain(self, cases))
    outcome = run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    assert outcome.n_failed == 0
    run = read_run(tmp_path / "run")
    hits = run.scores.query("metric == 'hit' and method != 'human' and condition == '{}'")
    hits = hits.groupby("method")["value"].mean()
    assert set(hits.index) == {part["name"] for part in MASKS}
    assert hits.min() > 0.8  # a cell that holds the square's edge also holds some of what lies outside
    assert run.manifest["max_batch"] == 3
    assert found == [3]
    assert {name: method.max_batch for name, method in made[0].methods.items()} == {
        part["name"]: part.get("max_batch", 3) for part in MASKS
    }


def test_a_run_taken_up_again_keeps_its_batch(own_study, tmp_path, monkeypatch):
    spec = {**yaml.safe_load(own_study.read_text()), "methods": [MASKS[0]]}
    own_study.write_text(yaml.safe_dump(spec))
    out, options = tmp_path / "run", RunOptions(trust_code=True)
    monkeypatch.setattr(readiness, "best_batch", lambda *_: 3)
    monkeypatch.setattr(RunFolder, "write_estimates", lambda *_: sys.exit("stopped"))
    with pytest.raises(SystemExit):
        run_study(own_study, out, options)
    monkeypatch.undo()
    monkeypatch.setattr(readiness, "best_batch", lambda *_: pytest.fail("the batch was looked for again"))
    (out / "parts" / "00001.parquet").unlink()
    run_study(own_study, out, options)
    assert read_run(out).manifest["max_batch"] == 3


def test_a_run_without_mask_methods_looks_for_no_batch(undisturbed):
    assert "max_batch" not in read_run(undisturbed[1]).manifest


def test_results_are_divided_by_subgroups(tmp_path, small_spec):
    spec = tmp_path / "groups.yaml"
    fewer = {"findings": ["Pleural Effusion"], "bootstrap_draws": 100, "gallery": 0}
    spec.write_text(yaml.safe_dump({**small_spec, **fewer, "subgroups": ["sex", {"age": [50]}]}))
    outcome = run_study(spec, tmp_path / "run")
    estimates = read_run(tmp_path / "run").estimates
    counts = estimates[(estimates["statistic"] == "count") & (estimates["metric"] == "images")]
    by_age = counts[counts["condition"].str.contains('"subgroup":"age"')]
    assert by_age["value"].sum() == outcome.n_cases
    assert set(by_age["condition"].str.extract('"group":"([^"]+)"')[0]) == {"under 50", "50 and over"}
    page = outcome.report.read_text()
    assert "Does it hold in every group of patients?" in page
    assert "Smallest group of each column: sex " in page


def test_a_subgroup_that_is_not_there_is_refused_before_any_work(tmp_path, write_spec):
    with pytest.raises(SpecError, match="no column 'scanner' to divide cases by; the columns are sex, age, marker, "):
        run_study(write_spec(subgroups=["scanner"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("point", "said"), [(1.5, "a probability from 0 to 1"), ({"Edma": 0.5}, "'Edma', which is not studied")]
)
def test_an_operating_point_must_be_a_probability_of_a_finding(tmp_path, write_spec, point, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        run_study(write_spec(operating_point=point), tmp_path / "run")


def test_results_by_the_papers_rules_are_of_maps_in_the_plain_place_wherever_ours_lie(write_spec, tmp_path):
    validation = {"name": "phantom_chest", "patients": 8, "first": 900, "size": 80, "readers": 0}
    small = {**FEWER, "gallery": 0, "methods": ["grad_cam"], "validation": validation}
    runs = []
    for name in ("recommended", "chexlocalize"):
        run_study(write_spec(**small, switches={"placement": name}), tmp_path / name)
        runs.append(read_run(tmp_path / name).estimates)
    under = condition(preset="chexlocalize", feature="probability"), condition(preset="chexlocalize")
    wanted = ["statistic", "metric", "finding", "value", "low", "high"]
    centred, plain = (
        run[run["condition"].isin(under) & ~run["statistic"].isin(["percent_decrease"])][wanted] for run in runs
    )
    assert {"slope", "spearman", "tuned_cutoff"} <= set(centred.query("metric == 'iou_full'")["statistic"])
    pd.testing.assert_frame_equal(centred.reset_index(drop=True), plain.reset_index(drop=True))
    means = [run.query("statistic == 'mean' and metric == 'iou' and method == 'grad_cam'") for run in runs]
    ours = [each[each["condition"] == condition()]["value"].tolist() for each in means]
    assert ours[0] != ours[1]  # our own maps do move


def test_views_cannot_be_joined_where_no_image_says_which_study_it_belongs_to(own_study, tmp_path):
    own_study.write_text(yaml.safe_dump({**yaml.safe_load(own_study.read_text()), "views": "max"}))
    with pytest.raises(SpecError, match="no image says which study it belongs to"):
        run_study(own_study, tmp_path / "run", RunOptions(trust_code=True))
    assert not (tmp_path / "run").exists()
