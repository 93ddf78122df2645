"""Training from a spec, tiny; and the classifier that ships with the package."""

import csv
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from tests.fitting.material import PROTOCOL, SMALL, training_spec

from heatcheck import models
from heatcheck.core.errors import InputError, RunFolderError, SpecError, UnknownNameError
from heatcheck.core.records import UNCERTAIN, Case, CaseKey
from heatcheck.fitting import examples as train_examples
from heatcheck.fitting.contract import contract_of
from heatcheck.fitting.curve import draw_curve
from heatcheck.fitting.examples import intensity
from heatcheck.fitting.results import evaluate
from heatcheck.fitting.spec import planned
from heatcheck.fitting.train import train
from heatcheck.models import ModelSettings, load_classifier, read_ensemble
from heatcheck.running.progress import Silent
from heatcheck.sources.folder import FolderSettings, FolderSource
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings
from heatcheck.training import Machine
from heatcheck.training.selection import Candidate, Check

pytestmark = pytest.mark.usefixtures("plain_curves")


def spec_of(folder, **changes):
    return training_spec(folder, SMALL, **changes)


class Stopping(Silent):
    """A watcher that interrupts after some steps of training."""

    def __init__(self, steps):
        self.left, self.training = steps, False

    def start(self, what, *_):
        self.training = what.startswith("training ")

    def advance(self, *_):
        self.left -= self.training
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A finished training by the small spec."""
    folder = tmp_path_factory.mktemp("plain")
    return train(spec_of(folder), folder / "out", Silent())


def test_training_twice_gives_the_same_weights_and_a_classifier_that_loads(plain, tmp_path):
    first, out = plain, plain.weights.parent
    second = train(spec_of(tmp_path), tmp_path / "b", Silent())
    assert first.weights.read_bytes() == second.weights.read_bytes()
    assert first.results == second.results
    classifier = load_classifier(ModelSettings(name="densenet_compact", weights=first.weights))
    assert classifier.outputs == PhantomChest().findings
    record = json.loads((out / "training.json").read_text())
    assert [check["epoch"] for check in record["history"]] == [0, 1]
    losses = [check["validation_loss"] for check in record["history"]]
    assert record["best"] == f"checkpoints/ignore-1-{3 * (1 + np.argmin(losses)):06d}.safetensors"
    assert not first.ensemble
    assert not (out / "ensemble.json").exists()


def test_another_seed_gives_other_weights(plain, tmp_path):
    second = train(spec_of(tmp_path, seed=2), tmp_path / "b", Silent())
    assert plain.weights.read_bytes() != second.weights.read_bytes()


def test_images_need_not_be_kept_on_disk(tmp_path):
    train(spec_of(tmp_path, cache=False), tmp_path / "a", Silent())
    assert not list((tmp_path / "a").glob("*.npy"))


@pytest.fixture(scope="module")
def protocol(tmp_path_factory):
    """A finished training by the whole protocol, at tiny size."""
    folder = tmp_path_factory.mktemp("protocol")
    return train(training_spec(folder, PROTOCOL), folder / "out", Silent())


def test_protocol_keeps_the_best_checkpoints_of_each_run_and_lists_them_all(protocol):
    out = protocol.weights.parent
    lines = (out / "checkpoints.csv").read_text().splitlines()
    header = lines[0].split(",")
    rows = [dict(zip(header, line.split(","), strict=True)) for line in lines[1:]]
    assert header[-10:] == list(PhantomChest().findings)
    assert len(rows) == 2 * 2 * 3  # strategies, runs, checks at steps 2, 4 and 6
    for strategy in ("ignore", "three_class"):
        for run in "12":
            mine = [row for row in rows if (row["strategy"], row["run"]) == (strategy, run)]
            ranked = sorted(
                mine, key=lambda row: (float(row["Edema"]) + float(row["Atelectasis"]), int(row["step"])), reverse=True
            )
            assert [row["kept"] for row in ranked] == ["1", "1", "0"]
    files = {path.name for path in (out / "checkpoints").iterdir()}
    assert files == {row["checkpoint"] for row in rows if row["kept"] == "1"}
    best = max(rows, key=lambda row: (int(row["kept"]), float(row["Edema"]) + float(row["Atelectasis"])))
    assert protocol.weights.read_bytes() == (out / "checkpoints" / best["checkpoint"]).read_bytes()


def test_ensemble_of_a_finding_is_made_of_the_checkpoints_that_recognise_it_best(protocol):
    out = protocol.weights.parent
    header, *lines = ((line.split(",")) for line in (out / "checkpoints.csv").read_text().splitlines())
    kept = [row for row in (dict(zip(header, line, strict=True)) for line in lines) if row["kept"] == "1"]
    listed = json.loads((out / "ensemble.json").read_text())["findings"]
    assert list(listed) == list(PhantomChest().findings)
    for finding, entries in listed.items():
        assert len(entries) == 3
        aurocs = sorted((float(row[finding]) for row in kept if row[finding]), reverse=True)
        assert [entry["auroc"] for entry in entries] == pytest.approx(aurocs[:3] or [None] * 3, abs=1e-5)


def test_ensembles_test_is_that_of_the_mean_probability_over_examinations(protocol):
    """By hand: every member on every view of the test source, the mean, and the highest view of each examination."""
    out = protocol.weights.parent
    ensemble = read_ensemble(out, "densenet_compact")
    assert {load_head(member.path) for member in ensemble.members} == {"binary", "three_class"}
    settings = {key: value for key, value in PROTOCOL["test"].items() if key != "name"}
    source = PhantomChest(PhantomChestSettings(**settings))
    keys = source.index()
    images = ensemble.prepare([source.load(key).image for key in keys])
    with torch.no_grad():
        probabilities = ensemble.probabilities(ensemble.logits(images)).numpy()
    column = ensemble.outputs.index("Cardiomegaly")
    patients = sorted({key.patient for key in keys})
    assert len(patients) < len(keys)
    highest = [
        max(probabilities[i, column] for i, key in enumerate(keys) if key.patient == patient) for patient in patients
    ]
    truth = [next(key.labels["Cardiomegaly"] for key in keys if key.patient == patient) for patient in patients]
    every = list(zip(highest, truth, strict=True))
    pairs = [(a > b) + 0.5 * (a == b) for a, x in every for b, y in every if x > y]
    result = next(one for one in protocol.ensemble_results if one.finding == "Cardiomegaly")
    assert result.cases == len(patients)
    assert result.auroc == pytest.approx(np.mean(pairs), abs=0.02)  # the images are kept in half precision


def test_checkpoints_are_judged_by_the_highest_view_of_each_examination(protocol):
    out = protocol.weights.parent
    settings = {key: value for key, value in PROTOCOL["validation"].items() if key != "name"}
    source = PhantomChest(PhantomChestSettings(**settings))
    keys = source.index()
    patient = np.array([key.patient for key in keys])
    differs = False
    with (out / "checkpoints.csv").open() as file:
        kept = [row for row in csv.DictReader(file) if row["kept"] == "1"]
    for row in kept[:2]:
        classifier = load_classifier(
            ModelSettings(name="densenet_compact", weights=out / "checkpoints" / row["checkpoint"])
        )
        with torch.no_grad():
            logits = classifier.logits(classifier.prepare([source.load(key).image for key in keys]))
        for finding in ("Edema", "Cardiomegaly"):
            said = logits[:, classifier.outputs.index(finding)].numpy()
            labels = np.array([key.labels[finding] for key in keys])
            joined = [(labels[patient == one].max(), said[patient == one].max()) for one in np.unique(patient)]
            assert float(row[finding]) == pytest.approx(roc_auc_score(*zip(*joined, strict=True)), abs=0.04)
            differs |= abs(roc_auc_score(labels, said) - float(row[finding])) > 0.05
    assert differs  # else films would have done


def load_head(path):
    return load_classifier(ModelSettings(name="densenet_compact", weights=path)).preprocessing.head


def test_best_checkpoint_of_each_finding_is_listed_beside_the_ensemble_and_counts_as_single(protocol):
    out = protocol.weights.parent
    ensemble, best = (
        json.loads((out / name).read_text())["findings"] for name in ("ensemble.json", "best_single.json")
    )
    assert best == {finding: entries[:1] for finding, entries in ensemble.items()}
    assert len({entries[0]["checkpoint"] for entries in best.values()}) > 1  # no checkpoint is the best for all
    single, together = read_ensemble(out / "best_single.json", "densenet_compact"), read_ensemble(out)
    assert single.is_single
    assert not together.is_single
    images = torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    member = next(one for one in single.members if "Edema" in one.findings)
    alone = load_classifier(ModelSettings(name="densenet_compact", weights=member.path))
    column = single.outputs.index("Edema")
    with torch.no_grad():
        expected = alone.probabilities(alone.logits(images))[:, column]
        assert single.probabilities(single.logits(images))[:, column] == pytest.approx(expected.numpy(), abs=1e-6)


def test_record_compares_ensemble_and_the_best_checkpoint_of_each_finding(protocol):
    record = json.loads((protocol.weights.parent / "training.json").read_text())
    keys = ("test", "best_per_finding_test", "ensemble_test")
    one_for_all, single, together = ({one["finding"]: one["auroc"] for one in record[key]} for key in keys)
    assert one_for_all != single
    for gain in record["ensemble_less_best"]:
        finding = gain["finding"]
        if gain["difference"] is None:
            assert "with and without" in gain["reason"]
        else:
            assert gain["difference"] == pytest.approx(together[finding] - single[finding])
            assert gain["low"] is None or gain["low"] <= gain["difference"] <= gain["high"]
            assert gain["reason"] if gain["low"] is None else True


def test_learning_curve_is_drawn(tmp_path):
    every = [
        Candidate(strategy, run, Check(step, 0, 1 / step, 2 / step, {"Edema": 0.5 + step / 20}))
        for strategy in ("ignore", "three_class")
        for run in (1, 2)
        for step in (2, 4, 6)
    ]
    draw_curve(tmp_path, every, every[::3], ["Edema"])
    assert (tmp_path / "learning-curve.svg").read_text().count("<path") > 20
    assert (tmp_path / "learning-curve.png").stat().st_size > 10_000


def test_learning_curve_shows_every_checkpoint_and_those_kept(protocol):
    out = protocol.weights.parent
    svg = (out / "learning-curve.svg").read_text()
    every, kept, by = svg.partition("], [")[0], svg.partition("], [")[2], svg.rpartition("]")[2]
    assert every.count("Candidate(") == len((out / "checkpoints.csv").read_text().splitlines()) - 1
    assert kept.count("Candidate(") == len(list((out / "checkpoints").iterdir()))
    assert by == ", ('Edema', 'Atelectasis'))"


@pytest.mark.parametrize(
    "steps", [pytest.param(3, marks=pytest.mark.slow), 9, pytest.param(20, marks=pytest.mark.slow)]
)
def test_training_stopped_inside_a_run_ends_with_the_same_files(tmp_path, protocol, steps):
    """Of four runs with six steps each: in an epoch of the first, of the second and of the last."""
    spec = training_spec(tmp_path, PROTOCOL)
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path / "out", Stopping(steps))
    assert not (tmp_path / "out" / "training.json").exists()
    train(spec, tmp_path / "out", Silent())
    expected = protocol.weights.parent
    for path in sorted(expected.rglob("*")):
        if path.is_file() and path.name != ".lock":
            assert (tmp_path / "out" / path.relative_to(expected)).read_bytes() == path.read_bytes(), path.name
    assert {path.name for path in expected.rglob("*")} == {path.name for path in (tmp_path / "out").rglob("*")}


def test_best_learning_rate_is_found_and_used(tmp_path):
    fit = {"epochs": 2, "batch_size": 8, "learning_rate": [1e-9, 0.01]}
    train(spec_of(tmp_path, fit=fit), tmp_path / "a", Silent())
    record = json.loads((tmp_path / "a" / "training.json").read_text())
    merits = {one["rate"]: one["merit"] for one in record["learning_rates"]}
    chosen = max(merits, key=merits.get)
    plain = {**fit, "learning_rate": chosen}
    train(spec_of(tmp_path, fit=plain), tmp_path / "b", Silent())
    assert (tmp_path / "a" / "weights.safetensors").read_bytes() == (
        tmp_path / "b" / "weights.safetensors"
    ).read_bytes()
    assert len(list((tmp_path / "a" / "checkpoints").iterdir())) == 1


def test_missing_labels_may_count_as_absent_in_the_training_data_only():
    contract = models.Preprocessing(outputs=("a", "b"), size=(8, 8))

    class Two:
        def index(self):
            return [CaseKey("x", "x", {"a": 1.0, "b": math.nan}), CaseKey("y", "y", {"a": UNCERTAIN})]

    unknown = train_examples.CaseExamples(Two(), contract).labels
    zero = train_examples.CaseExamples(Two(), contract, "zero").labels
    torch.testing.assert_close(unknown, torch.tensor([[1.0, math.nan], [-1.0, math.nan]]), equal_nan=True)
    assert zero.tolist() == [[1.0, 0.0], [-1.0, 0.0]]


def test_images_on_disk_are_not_sent_to_other_processes(tmp_path):
    source = PhantomChest(PhantomChestSettings(patients=20, size=64, readers=0))
    read = train_examples.CaseExamples(source, models.Preprocessing(outputs=source.findings, size=(64, 64)))
    stored = train_examples.StoredExamples(read, tmp_path / "images.npy", Silent(), 0)
    image, labels = stored[3]
    torch.testing.assert_close(image, read[3][0], rtol=1e-3, atol=1e-3)
    packed = pickle.dumps(stored)
    assert len(packed) < 10_000 < (tmp_path / "images.npy").stat().st_size
    assert torch.equal(pickle.loads(packed)[3][0], image)  # noqa: S301 - our own
    assert torch.equal(labels, read.labels[3])


def write_films(folder, patients, first):
    """Films of the phantom in a folder of their own, as a source."""
    images = folder / f"films-{first}"
    images.mkdir()
    source = PhantomChest(PhantomChestSettings(patients=patients, first=first, size=40, second_view=0, readers=0))
    lines = ["image,Edema"]
    for key in source.index():
        np.save(images / f"{key.case}.npy", source.load(key).image[0])
        lines.append(f"{key.case},{int(key.labels['Edema'])}")
    labels = folder / f"labels-{first}.csv"
    labels.write_text("\n".join(lines) + "\n")
    return {"name": "folder", "images": images.name, "labels": labels.name}


def without_first(folder, source):
    """The source's first image and its label are gone."""
    labels = folder / source["labels"]
    header, gone, *others = labels.read_text().splitlines()
    labels.write_text("\n".join([header, *others]) + "\n")
    (folder / source["images"] / f"{gone.split(',')[0]}.npy").unlink()


def test_prepared_images_follow_their_source(tmp_path):
    films = write_films(tmp_path, 6, 0)
    folder, labels, images = tmp_path / films["images"], tmp_path / films["labels"], tmp_path / "images.npy"

    def each(examples):
        return [examples[index] for index in range(len(examples))]

    def kept_as_read():
        source = FolderSource(FolderSettings(images=folder, labels=labels))
        read = train_examples.CaseExamples(source, models.Preprocessing(outputs=("Edema",), size=(32, 32)))
        kept = train_examples.StoredExamples(read, images, Silent(), 0)
        pairs = zip(each(kept), each(read), strict=True)
        return all(torch.allclose(mine[0], its[0], rtol=1e-3, atol=1e-3) and mine[1] == its[1] for mine, its in pairs)

    assert kept_as_read()
    before = images.stat().st_mtime_ns
    assert kept_as_read()
    assert images.stat().st_mtime_ns == before  # nothing changed: nothing is prepared anew
    without_first(tmp_path, films)
    assert kept_as_read()
    np.save(max(folder.iterdir()), np.eye(40))
    assert kept_as_read()
    np.save(folder / "another.npy", np.eye(40))
    labels.write_text(labels.read_text() + "another,1\n")
    assert kept_as_read()


def test_a_test_source_that_changed_after_the_training_gives_its_own_results(tmp_path):
    films = write_films(tmp_path, 12, 200)
    changes = {"test": films, "findings": ["Edema"], "checkpoints": {"by": "all"}, "ensemble": 1}
    spec = spec_of(tmp_path, **changes)
    train(spec, tmp_path / "out", Silent())
    without_first(tmp_path, films)
    again = train(spec, tmp_path / "out", Silent())
    (tmp_path / "out" / "test.npy").unlink()
    assert train(spec, tmp_path / "out", Silent()).ensemble_results == again.ensemble_results
    assert again.ensemble_results[0].cases == 11


class Numbers:
    """Six hundred images of two channels, around a large mean, of different sizes; some cannot be read."""

    def index(self):
        return [CaseKey(str(number), str(number), {}) for number in range(600)]

    def load(self, key):
        number = int(key.case)
        if number % 100 == 7:
            raise ValueError("broken")
        values = np.random.default_rng(number).normal(1e4, 1, (2, 2 + number % 3, 4)).astype(np.float32)
        return Case(key, values + np.float32([0, number / 100])[:, None, None], {})


@pytest.mark.parametrize("workers", [0, 3])
def test_mean_and_deviation_are_those_of_all_pixels_of_all_images(workers):
    source, shown = Numbers(), []

    class Counting(Silent):
        def start(self, *what):
            shown.append(what)

        def advance(self, *_):
            shown.append(1)

    read = [source.load(key).image for key in source.index() if int(key.case) % 100 != 7]
    pixels = np.concatenate([image.reshape(2, -1) for image in read], axis=1).astype(float)
    mean, spread = intensity(source, source.index(), Counting(), workers)
    assert mean == [float(f"{value:.6g}") for value in pixels.mean(1)]
    assert spread == [float(f"{value:.6g}") for value in pixels.std(1)]
    assert shown == [("intensities", 600), *[1] * 600]


def test_a_training_measures_all_its_images_or_as_many_as_the_spec_says(tmp_path):
    contracts = {}
    for name, pixels in (("all", {}), ("some", {"sample": 3})):
        (tmp_path / name).mkdir()
        contracts[name] = contract_of(planned(spec_of(tmp_path, pixels=pixels)), tmp_path / name, Silent())
    source = PhantomChest(PhantomChestSettings(**{k: v for k, v in SMALL["training"].items() if k != "name"}))
    pixels = np.concatenate([source.load(key).image.ravel() for key in source.index()]).astype(float)
    assert contracts["all"].mean == pytest.approx((pixels.mean(),), rel=1e-5)
    assert contracts["all"].std == pytest.approx((pixels.std(),), rel=1e-5)
    assert contracts["some"].mean != contracts["all"].mean
    assert contracts["some"].mean == pytest.approx(contracts["all"].mean, rel=0.2)
    with pytest.raises(SpecError, match="`sample` is for a `mean` and `std` that are measured"):
        planned(spec_of(tmp_path, pixels={"sample": 3, "mean": 0, "std": 1}))


def test_unreadable_training_images_are_counted_and_the_others_learned_from(tmp_path):
    sentences = []

    class Hearing(Silent):
        def say(self, sentence):
            sentences.append(sentence)

    folder = write_films(tmp_path, 24, 0)
    max((tmp_path / folder["images"]).iterdir()).write_bytes(b"broken")
    changes = {"training": folder, "findings": ["Edema"], "cache": False}
    trained = train(spec_of(tmp_path, **changes), tmp_path / "out", Hearing())
    assert sentences[1:] == ["1 training images could not be read and were skipped."]  # the first says what it costs
    assert math.isfinite(trained.results[0].auroc)


def test_folder_too_small_for_prepared_images_is_refused_with_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(train_examples.shutil, "disk_usage", lambda _: type("Free", (), {"free": 1000}))
    with pytest.raises(RunFolderError, match=r"the prepared training images need 0.0 GB; .* set `cache: false`"):
        train(spec_of(tmp_path), tmp_path / "a", Silent())


def test_another_training_in_the_same_folder_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "training-spec.json").write_text("{}\n")
    with pytest.raises(RunFolderError, match="another training"):
        train(spec_of(tmp_path), tmp_path / "a", Silent())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "densnet_compact"}, UnknownNameError, "did you mean 'densenet_compact'"),
        ({"findings": ["Flu"]}, SpecError, "Flu"),
        ({"epochs": 3}, SpecError, "unknown key 'epochs'"),
        ({"fit": {"epoch": 3}}, SpecError, "did you mean 'epochs'"),
        ({"fit": {"optimizer": "sgd"}}, SpecError, "'fit.optimizer'"),
        ({"fit": {"batch_size": 25}}, InputError, "24 examples do not fill a batch of 25"),
        ({"pixels": {"mean": 127.5, "std": 64}}, InputError, "trained on pixels from 0 to 255, set mean"),
        ({"size": [4, 4]}, InputError, "sides of at least 13"),
        ({"uncertainty": "zeroes"}, UnknownNameError, "unknown label strategy 'zeroes'; did you mean 'zeros'"),
        ({"uncertainty": ["zeros", "zeros"]}, SpecError, "names a strategy twice"),
        ({"uncertainty": ["zeros", "ones"]}, SpecError, "cannot be compared; set `checkpoints.by` to findings"),
        ({"ensemble": 2}, SpecError, "an ensemble is chosen by AUROC"),
        ({"checkpoints": {"by": ["Edma"]}}, SpecError, "'Edma' is not an output; did you mean 'Edema'"),
        ({"checkpoints": {"by": ["Pleural Effusion"]}}, SpecError, "no positive case of 'Pleural Effusion'"),
        ({"checkpoints": {"keep": 0}}, SpecError, "'checkpoints.keep'"),
        ({"fit": {"learning_rate": []}}, SpecError, "learning_rate"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_is_written(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        train(spec_of(tmp_path, **changes), tmp_path / "a", Silent())
    assert not (tmp_path / "a").exists()


def test_batch_that_devices_cannot_share_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="a batch of 8 cannot be shared by 3 devices"):
        train(spec_of(tmp_path), tmp_path / "a", Silent(), Machine(devices=3))
    assert not (tmp_path / "a").exists()


def test_two_processes_train_by_the_protocol(tmp_path):
    trained = train(training_spec(tmp_path, PROTOCOL, runs=1), tmp_path / "a", Silent(), Machine(devices=2))
    assert trained.ensemble.exists()
    assert len(list((tmp_path / "a" / "checkpoints").iterdir())) == 4


@pytest.mark.slow
def test_the_shipped_classifier_is_small_and_good_on_unseen_patients():
    name = "phantom_chest_densenet"
    classifier = load_classifier(ModelSettings(name=name))
    unseen = PhantomChest(PhantomChestSettings(patients=150, first=9_000_000, second_view=0, readers=0, size=192))
    results = evaluate(classifier, unseen, Silent())
    assert np.mean([result.auroc for result in results]) >= 0.90
    assert min(result.auroc for result in results) >= 0.80
    weights = Path(models.__file__).parent / "weights" / models.MODELS[name].weights
    assert weights.stat().st_size <= 5_000_000


def test_warm_up_longer_than_the_training_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="`warm_up_steps` 2000 leaves nothing of a fit of 36 steps"):
        train(spec_of(tmp_path, fit={"batch_size": 8, "warm_up_steps": 2000}), tmp_path / "out", Silent())
    assert not (tmp_path / "out").exists()
