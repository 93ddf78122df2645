"""Training on classes that exclude one another, on pixels as the spec says, and from weights of another task."""

import json
import math
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from tests.fitting.material import CLASSES, class_spec

from heatcheck import models
from heatcheck.core.errors import InputError, ModelError, RunFolderError, SpecError
from heatcheck.fitting.checkpoints import CheckpointKeeper
from heatcheck.fitting.examples import CaseExamples
from heatcheck.fitting.results import judged, probabilities_of
from heatcheck.fitting.spec import planned
from heatcheck.fitting.train import train
from heatcheck.models import ModelSettings, load_classifier
from heatcheck.running.progress import Silent
from heatcheck.sources.phantoms.phantom_classes import PhantomClasses, PhantomClassesSettings

pytestmark = pytest.mark.usefixtures("plain_curves")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished training, and the folder of its data."""
    folder = tmp_path_factory.mktemp("classes")
    return train(class_spec(folder), folder / "out", Silent()), folder


def loaded(weights):
    return load_classifier(ModelSettings(name="densenet_compact", weights=weights))


def test_contract_says_softmax_and_probabilities_sum_to_one(trained):
    classifier = loaded(trained[0].weights)
    assert classifier.preprocessing.activation == "softmax"
    assert classifier.outputs == CLASSES
    logits = classifier.logits(torch.randn(3, 1, 24, 24, generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(classifier.probabilities(logits).sum(1), torch.ones(3))


def test_accuracy_is_the_share_of_test_images_whose_class_is_most_probable(trained):
    result, folder = trained
    classifier = loaded(result.weights)
    right = []
    for number in range(12):
        image = np.load(folder / "test" / f"test{number:02d}.npy")[None]
        right.append(int(classifier.logits(classifier.prepare([image])).argmax()) == number % 3)
    assert result.accuracy == pytest.approx(np.mean(right))
    assert result.accuracy > 1 / 3
    assert json.loads((folder / "out" / "training.json").read_text())["accuracy"] == result.accuracy
    assert next((folder / "out" / "checkpoints").iterdir()).name.startswith("single_label-1-")


def test_findings_that_occur_together_have_no_accuracy(tmp_path):
    result = train(class_spec(tmp_path, labels="multiple"), tmp_path / "out", Silent())
    assert math.isnan(result.accuracy)
    assert loaded(result.weights).preprocessing.activation == "sigmoid"
    assert json.loads((tmp_path / "out" / "training.json").read_text())["accuracy"] is None


def test_checkpoints_are_judged_by_softmax_probabilities(trained):
    """By the logits alone the first image looks more like its class than the second, which lacks it."""
    contract = loaded(trained[0].weights).preprocessing
    keys = tuple(planned(class_spec(trained[1])).validation.index()[:2])
    keeper = CheckpointKeeper(trained[1], "", contract, "single_label", 1, (), 1, keys)
    answers = torch.tensor([[2.0, 9.0, 9.0], [1.0, -9.0, -9.0]])
    assert keeper.judged(answers, torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))["high"] == 1


def rewritten(folder, name, row, values):
    """The labels of one image are others."""
    file = folder / f"{name}.csv"
    lines = file.read_text().splitlines()
    lines[row] = f"{lines[row].split(',')[0]},{values}"
    file.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("values", ["0,0,0", "1,1,0", "1,,0", "1,-1,0"])
@pytest.mark.parametrize("name", ["training", "validation", "test"])
def test_case_without_exactly_one_class_is_refused(tmp_path, name, values):
    spec = class_spec(tmp_path)
    rewritten(tmp_path, name, 2, values)
    message = rf"1 of the {name} source's cases \({name}01\) do not have exactly one .*; label one class 1"
    with pytest.raises(SpecError, match=message):
        planned(spec)


def test_missing_labels_of_the_training_data_may_mean_absent(tmp_path):
    spec = class_spec(tmp_path, blank="zero")
    rewritten(tmp_path, "training", 2, ",1,")
    assert planned(spec).strategies == ("single_label",)
    rewritten(tmp_path, "validation", 2, ",1,")
    with pytest.raises(SpecError, match="1 of the validation source's cases"):
        planned(spec)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"uncertainty": "ones"}, SpecError, "with `labels: single` no label is uncertain; leave `uncertainty` out"),
        ({"ensemble": 2, "checkpoints": {"by": "all"}}, SpecError, "one network recognises all classes; leave"),
        ({"labels": "multiple", "uncertainty": "single_label"}, SpecError, "set `labels: single`"),
        ({"findings": ["high"]}, SpecError, "needs at least two classes, got high"),
        ({"findings": ["high", "low"]}, SpecError, "8 of the training source's cases"),
        ({"labels": "one"}, SpecError, "labels"),
        ({"pixels": {"mean": 0}}, SpecError, "give both `mean` and `std`, or leave both out"),
        ({"pixels": {"mean": 0, "std": 0}}, SpecError, "std"),
        ({"pixels": {"mean": [0, 0, 0], "std": 1, "channels": 1}}, SpecError, "one for each of the `channels`"),
        ({"pixels": {"mean": [0, 0, 0], "std": [1, 1]}}, SpecError, "one for each of the `channels`"),
        ({"start": "none.pth"}, ModelError, r"none\.pth: no such weights file; correct its path in the spec"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_is_written(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        train(class_spec(tmp_path, **changes), tmp_path / "a", Silent())
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("pixels", "channels", "mean", "std"),
    [
        ({"mean": 0, "std": 1}, 1, (0.0,), (1.0,)),
        ({"mean": 0, "std": 1, "channels": 3}, 3, (0.0,), (1.0,)),
        ({"mean": [0.5, 0.4, 0.4], "std": 0.2}, 3, (0.5, 0.4, 0.4), (0.2,)),
    ],
)
def test_pixels_are_prepared_as_the_spec_says(tmp_path, pixels, channels, mean, std):
    fast = {"fit": {"epochs": 1, "batch_size": 8}}
    contract = loaded(
        train(class_spec(tmp_path, pixels=pixels, **fast), tmp_path / "a", Silent()).weights
    ).preprocessing
    assert (contract.channels, contract.mean, contract.std) == (channels, mean, std)


def test_measured_mean_serves_every_channel_that_a_grey_image_fills(trained, tmp_path):
    fast = {"fit": {"epochs": 1, "batch_size": 8}}
    result = train(class_spec(tmp_path, pixels={"channels": 3}, **fast), tmp_path / "a", Silent())
    contract, measured = loaded(result.weights).preprocessing, loaded(trained[0].weights).preprocessing
    assert contract.channels == 3
    assert (contract.mean, contract.std) == (measured.mean, measured.std)


def test_colour_images_are_not_put_into_other_channels(tmp_path):
    spec = class_spec(
        tmp_path,
        pixels={"channels": 2},
        training={"name": "folder", "images": "training", "labels": "training.csv", "colour": "rgb"},
    )
    for file in (tmp_path / "training").iterdir():
        PIL.Image.fromarray((255 * np.load(file)).astype(np.uint8)).convert("RGB").save(file.with_suffix(".png"))
        file.unlink()
    with pytest.raises(InputError, match=r"the training images have 3 channels, `pixels.channels` is 2; only grey"):
        train(spec, tmp_path / "a", Silent())


def test_training_starts_from_the_weights_of_another(trained, tmp_path):
    """One step of next to nothing leaves them as they were."""
    sentences = []

    class Hearing(Silent):
        def say(self, sentence):
            sentences.append(sentence)

    start = {"start": str(trained[0].weights), "fit": {"epochs": 1, "batch_size": 24, "learning_rate": 1e-12}}
    spec = class_spec(tmp_path, **start)
    result = train(spec, tmp_path / "a", Hearing())
    assert sentences[1:] == ["221 weights come from weights.safetensors."]  # the first says what it costs
    before, after = loaded(trained[0].weights).module.state_dict(), loaded(result.weights).module.state_dict()
    moved = [key for key in before if "running" not in key and "num_batches" not in key]
    assert all(torch.allclose(before[key], after[key], atol=1e-8) for key in moved)


def test_training_from_other_weights_at_the_same_path_is_refused(trained, tmp_path):
    start = tmp_path / "start.safetensors"
    start.write_bytes(trained[0].weights.read_bytes())
    spec = class_spec(tmp_path, start=start.name, fit={"epochs": 1, "batch_size": 8})
    first = train(spec, tmp_path / "a", Silent())
    assert train(spec, tmp_path / "a", Silent()).accuracy == first.accuracy
    start.write_bytes(first.weights.read_bytes())
    with pytest.raises(RunFolderError, match="holds another training"):
        train(spec, tmp_path / "a", Silent())


def test_start_of_another_architecture_is_refused_before_anything_is_written(trained, tmp_path):
    spec = class_spec(tmp_path, start=str(trained[0].weights), model="vgg_compact")
    with pytest.raises(ModelError, match="only 0 of the 12 weights of model vgg_compact are in it"):
        train(spec, tmp_path / "a", Silent())
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_the_shipped_classifier_of_four_classes_is_small_and_right_on_unseen_people():
    name = "phantom_classes_vgg"
    classifier = load_classifier(ModelSettings(name=name))
    unseen = PhantomClasses(PhantomClassesSettings(cases_per_class=25, first=9_000_000, size=96))
    assert classifier.outputs == unseen.findings
    assert classifier.preprocessing.activation == "softmax"
    probabilities, labels = probabilities_of(classifier, CaseExamples(unseen, classifier.preprocessing), 0, Silent())
    assert judged(unseen.index(), labels, probabilities, unseen.findings, "each").accuracy >= 0.95
    weights = Path(models.__file__).parent / "weights" / models.MODELS[name].weights
    assert weights.stat().st_size <= 2_000_000


def test_balanced_training_sees_each_class_equally_often(tmp_path):
    spec = class_spec(tmp_path, fit={"epochs": 1, "batch_size": 8, "balanced": True}, cache=False)
    table = tmp_path / "training.csv"
    rows = table.read_text().splitlines()
    table.write_text("\n".join([*rows[:4], *(f"{row.split(',')[0]},1,0,0" for row in rows[4:])]) + "\n")
    labels = []

    class Watching(CaseExamples):
        def __getitem__(self, index):
            labels.append(self.keys[index].labels["high"])
            return super().__getitem__(index)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heatcheck.fitting.train.CaseExamples", Watching)
        train(spec, tmp_path / "out", Silent())
    assert 0.1 < np.mean(labels[:24]) < 0.6  # of the cases themselves 22 of 24
