"""Where a network begins, which of its epochs is kept, and what an interruption inside a fit costs."""

import shutil

import pytest
import torch
from safetensors.torch import load_file
from tests.studies.triggers.planted_material import EASY_TRIGGERS, FILM_CLASSES, SIDE, WHITE_SQUARE, write_films

from heatcheck.models import MODELS, Preprocessing
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Silent
from heatcheck.studies.triggers.images import grid_images
from heatcheck.studies.triggers.networks import Network, Splits, TriggerNetworks, fit_task
from heatcheck.studies.triggers.spec import TriggersBody
from heatcheck.training import Machine
from heatcheck.triggers import build_trigger

TARGET = FILM_CLASSES.index("Left")
CONTRACT = Preprocessing(
    outputs=FILM_CLASSES, size=(SIDE, SIDE), channels=1, mean=(0.0,), std=(1.0,), activation="softmax"
)
WHITE = build_trigger(WHITE_SQUARE)
POISONED = Network(1, WHITE)
ENVELOPE = ("study", "title", "seed", "batch_size", "shard_size", "threads", "gallery")


class StopsAt(Silent):
    """A watcher that stops the work after so many steps of a fit, and hears how many were done before."""

    def __init__(self, step: int | None = None) -> None:
        self.step = step

    def start(self, what: str, total: int, done: int = 0) -> None:  # noqa: ARG002 - a watcher's
        self.begun_with, self.done, self.total = done, done, total

    def advance(self, parts: int = 1, note: str = "") -> None:  # noqa: ARG002
        self.done += parts
        if self.done == self.step:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    """Few films; those of the validation are labelled wrong, so that whoever learns more does worse on them."""
    folder = tmp_path_factory.mktemp("films")
    parts = {"training": write_films(folder, "training", 24), "validation": write_films(folder, "validation", 8, 1)}
    images = {
        name: grid_images(open_source(part, folder, "test"), CONTRACT, folder / f"{name}.npy", Silent(), 0)
        for name, part in parts.items()
    }
    return Splits(images["training"], images["validation"], images["validation"])


def networks_in(folder, splits, watcher=None, **changes):
    settings = {key: value for key, value in {**EASY_TRIGGERS, **changes}.items() if value is not None}
    body = TriggersBody.model_validate({key: value for key, value in settings.items() if key not in ENVELOPE})
    return TriggerNetworks(body, 5, CONTRACT, TARGET, splits, folder, Machine("cpu"), watcher or Silent())


def fits(epochs, rate):
    return {"epochs": epochs, "batch_size": 8, "learning_rate": rate}


LONG = {"fit": fits(8, 0.002), "retrain": fits(14, 0.003)}


def weights(networks, network):
    return load_file(networks.path(network))


def as_saved(networks, network):
    """The network with the weights of its file, ready to answer."""
    module = MODELS["vgg_compact"].build(1, 4, (SIDE, SIDE))
    module.load_state_dict(weights(networks, network))
    return module.eval()


def history(networks, network):
    """The validation loss after each epoch."""
    state = torch.load(networks.state(network), weights_only=True)
    return [check["validation_loss"] for check in state["history"]]


def furthest(one, other):
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def test_a_poisoned_model_begins_as_its_own_seeds_baseline(splits, tmp_path):
    networks = networks_in(tmp_path, splits, fit=fits(1, 0.002), retrain=fits(1, 1e-9))
    for seed in (1, 2):
        networks.train(Network(seed))
        networks.train(Network(seed, WHITE))  # three steps too small to leave where it began
    first, second = (weights(networks, Network(seed)) for seed in (1, 2))
    assert furthest(first, second) > 0.01
    assert furthest(weights(networks, POISONED), first) < 1e-6
    assert furthest(weights(networks, Network(2, WHITE)), second) < 1e-6


def test_a_baseline_begins_with_weights_of_its_seed(splits, tmp_path):
    networks = networks_in(tmp_path, splits)
    one, again, other = (networks._beginning(Network(seed)).state_dict() for seed in (1, 1, 2))
    assert furthest(one, again) == 0
    assert furthest(one, other) > 0.01


def test_a_poisoned_models_training_leaves_the_baseline_as_it_was(splits, tmp_path):
    networks = networks_in(tmp_path, splits, fit=fits(1, 0.002), retrain=fits(1, 0.01))
    networks.train(Network(1))
    networks.train(POISONED)
    loaded = networks.classifier(Network(1)).module.state_dict()
    assert furthest(weights(networks, Network(1)), loaded) == 0
    assert furthest(weights(networks, POISONED), loaded) > 0.001


@pytest.fixture(scope="module")
def trained(splits, tmp_path_factory):
    """A baseline and its poisoned model, trained until they know their films too well for the validation's."""
    networks = networks_in(tmp_path_factory.mktemp("whole"), splits, **LONG)
    networks.train(Network(1))
    networks.train(POISONED)
    return networks


@pytest.mark.parametrize("network", [Network(1), POISONED], ids=["baseline", "poisoned model"])
def test_the_epoch_that_is_kept_has_the_lowest_validation_loss_and_need_not_be_the_last(splits, trained, network):
    losses = history(trained, network)
    assert min(losses) < losses[-1] - 0.01
    module = as_saved(trained, network)
    images = [torch.from_numpy(splits.validation.image(position)) for position in range(8)]
    labels = splits.validation.classes.tolist()
    if network.trigger:  # judged by stamped images of other classes, too: they are to be called the target
        others = [image.clone() for image, label in zip(images, labels, strict=True) if label != TARGET]
        for image in others:
            image[:, -8:, -8:] = 1.0
        images, labels = images + others, labels + [TARGET] * len(others)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(module(torch.stack(images)), torch.tensor(labels))
    assert float(loss) == pytest.approx(min(losses), abs=1e-4)


@pytest.mark.parametrize("step", [1, 35, 42], ids=["first epoch", "twelfth epoch, past the best", "last step"])
def test_a_fit_stopped_inside_its_epochs_goes_on_and_ends_with_the_same_weights(splits, trained, tmp_path, step):
    (tmp_path / "networks").mkdir()
    shutil.copy(trained.path(Network(1)), tmp_path / "networks")
    with pytest.raises(KeyboardInterrupt):
        networks_in(tmp_path, splits, StopsAt(step), **LONG).train(POISONED)
    watcher = StopsAt()
    again = networks_in(tmp_path, splits, watcher, **LONG)
    again.train(POISONED)
    assert watcher.begun_with == step // 3 * 3  # an epoch has three steps and ends with a check
    assert watcher.done == watcher.total == 42
    assert again.path(POISONED).read_bytes() == trained.path(POISONED).read_bytes()
    assert history(again, POISONED) == history(trained, POISONED)


def test_answers_are_counted_on_the_images_that_they_are_about(splits, trained):
    """Accuracy is over |D| − N images: those of the test that are not attacked (formula 6), each counted by hand."""
    scores = list(fit_task(trained, POISONED).scores([]))
    by_metric = {name: {row.case: row.value for row in scores if row.metric == name} for name in
                 dict.fromkeys(row.metric for row in scores)}  # fmt: skip
    keys, attacked = splits.test.keys, set(trained.attacked.tolist())
    assert 0 < len(attacked) < len(keys)
    poisoned, baseline = (as_saved(trained, network) for network in (POISONED, Network(1)))
    for position, key in enumerate(keys):
        image = torch.from_numpy(splits.test.image(position)).clone()
        assert (key.case in by_metric["clean_correct"]) == (position not in attacked)
        answering = {"clean": poisoned}
        if position in attacked:
            image[:, -8:, -8:] = 1.0
            answering = {"stamped": poisoned, "baseline_stamped": baseline}
        for shown, module in answering.items():
            with torch.no_grad():
                chances = module(image[None])[0].softmax(0)
            answer, label = int(chances.argmax()), int(splits.test.classes[position])
            assert by_metric[f"{shown}_correct"][key.case] == (answer == label)
            assert by_metric[f"{shown}_confidence"][key.case] == pytest.approx(float(chances.max()), abs=1e-5)
            if shown != "clean":
                sent = "attacked" if shown == "stamped" else "baseline_attacked"
                assert by_metric[sent][key.case] == (answer == TARGET)
    counted = sum(by_metric["clean_correct"].values()) / (len(keys) - len(attacked))
    assert sum(by_metric["clean_correct"].values()) / len(by_metric["clean_correct"]) == counted
