"""Networks as files: where they begin, how a stopped fit continues, which weights stay and how they are loaded."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from heatcheck.core.errors import SpecError
from heatcheck.fitting.networks import BestNetwork, NetworkStore, fit_network, new_network, open_network
from heatcheck.models import MODELS, ModelSettings, NetworkClassifier, Preprocessing, save_classifier
from heatcheck.models.ensemble import EnsembleFile, MemberEntry
from heatcheck.models.load import digest_of
from heatcheck.running.progress import Silent
from heatcheck.running.study import RunOptions
from heatcheck.training import Check, FitSettings, Job, LabelObjective, Machine

CONTRACT = Preprocessing(outputs=("one", "other"), size=(4, 4), channels=1)
COMPACT = Preprocessing(outputs=("one", "other"), size=(32, 32), channels=1)
STEPS = 6  # of each fit, two an epoch


class RecordingWatcher(Silent):
    """A watcher that records what it receives, and stops the work after some steps."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop, self.started, self.notes = stop, [], []

    def start(self, what: str, total: int, done: int = 0) -> None:
        self.started.append((what, total, done))

    def advance(self, parts: int = 1, note: str = "") -> None:  # noqa: ARG002 - a watcher's
        self.notes.append(note)
        if len(self.notes) == self.stop:
            raise KeyboardInterrupt


def linear(value):
    """A tiny network, all of whose weights have that value."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    for weights in module.parameters():
        nn.init.constant_(weights, value)
    return module


def classifier(value=0.0, name="tiny"):
    return NetworkClassifier(name, linear(value), CONTRACT)


def value_of(classifier):
    return float(next(classifier.module.parameters()).flatten()[0].detach())


class AuROC:
    """A keeper whose checks have an AUROC."""

    by = ("one",)

    def judged(self, answers, labels):  # noqa: ARG002 - a keeper's
        return {"one": 0.75}

    def keep(self, history, module):
        pass


def job(folder, keeper=None):
    images = torch.rand(8, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    examples = TensorDataset(images, (images.mean((2, 3)) > 0.5).float().expand(-1, 2))
    keeper = keeper or BestNetwork(folder / "tiny.safetensors", "tiny", CONTRACT)
    settings = FitSettings(epochs=3, batch_size=4, learning_rate=0.1, seed=4)
    return Job(linear(0.1), LabelObjective("ignore"), examples, examples, settings, folder / "tiny.ckpt", keeper)


def test_first_weights_are_those_of_the_seed_and_leave_the_random_state_alone():
    before = torch.random.get_rng_state()
    one, again, other = (new_network("vgg_compact", COMPACT, seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    name = next(iter(one))
    assert torch.equal(one[name], again[name])
    assert not torch.equal(one[name], other[name])
    torch.manual_seed(1)
    expected = MODELS["vgg_compact"].build(1, 2, (32, 32)).state_dict()
    torch.random.set_rng_state(before)
    assert torch.equal(one[name], expected[name])


def test_a_start_file_replaces_the_first_weights_that_it_has(tmp_path):
    start = new_network("vgg_compact", COMPACT, 7)
    save_classifier(NetworkClassifier("vgg_compact", start, COMPACT), tmp_path / "start.safetensors")
    begun = new_network("vgg_compact", COMPACT, 1, tmp_path / "start.safetensors").state_dict()
    assert all(torch.equal(begun[name], value) for name, value in start.state_dict().items())


def test_a_network_with_weights_is_opened_and_an_ensemble_refused(tmp_path):
    network = NetworkClassifier("vgg_compact", new_network("vgg_compact", COMPACT, 3), COMPACT)
    save_classifier(network, tmp_path / "weights.safetensors")
    spec = SimpleNamespace(folder=tmp_path, name="study.yaml")
    settings = ModelSettings(name="vgg_compact", weights="weights.safetensors")
    opened = open_network(settings, spec, RunOptions(), "one is needed")
    assert digest_of(opened.module) == digest_of(network.module)
    members = tuple(MemberEntry(checkpoint="weights.safetensors", sha256=opened.weights_hash, auroc=None) for _ in "1")
    ensemble = EnsembleFile(model="vgg_compact", findings=dict.fromkeys(COMPACT.outputs, members))
    (tmp_path / "ensemble.json").write_text(ensemble.model_dump_json())
    settings = ModelSettings(name="vgg_compact", ensemble="ensemble.json")
    with pytest.raises(SpecError, match="yaml: one is needed; name `weights` instead of an ensemble"):
        open_network(settings, spec, RunOptions(), "one is needed")


def test_a_watcher_sees_every_step_of_a_fit(tmp_path):
    watcher = RecordingWatcher()
    history = fit_network(job(tmp_path / "networks"), "training tiny", Machine(), watcher)
    assert watcher.started == [("training tiny", STEPS, 0)]
    assert len(watcher.notes) == STEPS
    assert all(note.startswith("loss 0.") and "AUROC" not in note for note in watcher.notes)
    assert [check.step for check in history] == [2, 4, 6]


def test_a_watcher_hears_the_auroc_where_there_is_one(tmp_path):
    watcher = RecordingWatcher()
    fit_network(job(tmp_path, AuROC()), "training", Machine(), watcher)
    assert "AUROC" not in watcher.notes[0]  # nothing is judged before the end of the first epoch
    assert watcher.notes[-1].endswith(", AUROC 0.750")


def test_a_fit_runs_with_repeatable_settings_and_restores_them(tmp_path):
    deterministic = []

    class Watches(RecordingWatcher):
        def advance(self, *_):
            deterministic.append(torch.are_deterministic_algorithms_enabled())

    fit_network(job(tmp_path), "training", Machine(), Watches())
    assert all(deterministic)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("stop", [1, 3, 6])
def test_a_stopped_fit_continues_and_ends_with_the_same_file(tmp_path, stop):
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    fit_network(job(tmp_path / "whole"), "training", Machine(), RecordingWatcher())
    with pytest.raises(KeyboardInterrupt):
        fit_network(job(tmp_path / "stopped"), "training", Machine(), RecordingWatcher(stop))
    watcher = RecordingWatcher()
    fit_network(job(tmp_path / "stopped"), "training", Machine(), watcher)
    assert watcher.started == [("training", STEPS, stop // 2 * 2)]
    one, other = (tmp_path / name / "tiny.safetensors" for name in ("whole", "stopped"))
    assert one.read_bytes() == other.read_bytes()


def test_the_weights_of_the_lowest_validation_loss_are_kept(tmp_path):
    keeper = BestNetwork(tmp_path / "tiny.safetensors", "tiny", CONTRACT)
    store = NetworkStore(tmp_path, lambda _: classifier())
    history = []
    for step, loss in enumerate([3.0, 1.0, 2.0]):
        history.append(Check(step, step, loss, loss))
        keeper.keep(history, linear(loss))
    assert value_of(store.load("tiny")) == 1.0


def test_a_store_gives_out_a_network_with_its_weights_and_keeps_the_last_one(tmp_path):
    built = []

    def build(name):
        built.append(name)
        return replace(classifier(name=name), module=linear(0.0).train())

    store = NetworkStore(tmp_path, build)
    for name, value in (("a", 1.0), ("b", 2.0)):
        save_classifier(classifier(value), store.path(name))
    first = store.load("a")
    assert (first.name, value_of(first), first.module.training) == ("a", 1.0, False)
    assert store.load("a") is first
    assert value_of(store.load("b")) == 2.0
    assert store.load("a") is not first
    assert built == ["a", "b", "a"]


def test_a_given_network_needs_no_file_and_replaces_the_last_one(tmp_path):
    store = NetworkStore(tmp_path, lambda name: classifier(name=name))
    save_classifier(classifier(1.0), store.path("a"))
    first = store.load("a")
    given = classifier(3.0)
    assert store.load("given", lambda: given) is given
    assert store.load("given", classifier) is given
    assert store.load("a") is not first


def test_the_state_of_a_fit_is_a_file_next_to_its_network(tmp_path):
    store = NetworkStore(tmp_path, lambda _: classifier())
    assert store.path("dots-0.5").name == "dots-0.5.safetensors"
    assert store.state("dots-0.5") == tmp_path / "dots-0.5.ckpt"
