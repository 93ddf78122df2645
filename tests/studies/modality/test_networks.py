"""The network of a fold: trained in its file, and what an interruption inside a fit costs."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tests.studies.modality.brightness_material import write_modality

from heatcheck.models import MODELS, NetworkClassifier, Preprocessing, save_classifier
from heatcheck.models.load import read_weights
from heatcheck.running.progress import Silent
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.modality.networks import FoldTrainer
from heatcheck.studies.modality.plan import plan_modality
from heatcheck.training import Machine


class StopsAt(Silent):
    """A watcher that stops the work after so many steps of a fit."""

    def __init__(self, step: int | None = None) -> None:
        self.step, self.done = step, 0

    def start(self, what: str, total: int, done: int = 0) -> None:  # noqa: ARG002 - a watcher's
        self.fits, self.done = what.startswith("training"), done

    def advance(self, parts: int = 1, note: str = "") -> None:  # noqa: ARG002
        self.done += parts
        if self.fits and self.done == self.step:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A study in two folds, each trained in two epochs."""
    folder = tmp_path_factory.mktemp("folds")
    fit = {"epochs": 2, "batch_size": 2, "rotate": 10}
    changes = {"model": "vgg_bn_compact", "size": [32, 32], "folds": 2, "methods": ["gradient"], "fit": fit}
    return plan_modality(read_spec(str(write_modality(folder, **changes))), RunOptions(workers=0), folder / "run")


def trainer(plan, folder, watcher):
    folder.mkdir(exist_ok=True)
    networks = plan.networks(SimpleNamespace(path=folder))
    return FoldTrainer(networks, plan.source, plan.envelope.seed, Machine(), watcher)


def test_the_network_of_a_fold_is_loaded_from_its_own_file(plan, tmp_path):
    training = trainer(plan, tmp_path / "run", StopsAt())
    for fold in plan.folds:
        training.task(fold).fit()
    states = [read_weights(tmp_path / "run" / "networks" / f"fold-{number}.safetensors").state for number in (1, 2)]
    for number, state in zip((1, 2), states, strict=True):
        loaded = training.networks.classifier(number).module.state_dict()
        assert all(torch.equal(loaded[name], value) for name, value in state.items())
    assert any(not torch.equal(states[0][name], value) for name, value in states[1].items())


def test_every_fold_starts_from_the_named_weights_as_far_as_they_fit(tmp_path):
    """A file for colour images: all but the first convolution is taken, as torch's own loading leaves it out."""
    module = MODELS["vgg_bn_compact"].build(3, 5, (32, 32))
    with torch.no_grad():
        for value in module.parameters():
            value.fill_(0.25)
    contract = Preprocessing(outputs=tuple("abcde"), size=(32, 32), channels=3, mean=[0.0], std=[1.0])
    save_classifier(NetworkClassifier("vgg_bn_compact", module, contract), tmp_path / "start.safetensors")
    fit = {"epochs": 1, "batch_size": 2}
    changes = {"model": "vgg_bn_compact", "size": [32, 32], "folds": 2, "methods": ["gradient"], "fit": fit}
    spec = read_spec(str(write_modality(tmp_path, **changes, start="start.safetensors")))
    training = trainer(plan_modality(spec, RunOptions(workers=0), tmp_path / "run"), tmp_path / "out", Silent())
    networks = [dict(training.networks.untrained(seed).named_parameters()) for seed in (1, 2)]
    for network in networks:
        taken = [bool((value == 0.25).all()) for value in network.values()]
        assert not taken[0]  # four channels instead of three
        assert not any(taken[-2:])  # two classes instead of five
        assert all(taken[1:-2])
    first = next(iter(networks[0]))
    assert not torch.equal(networks[0][first], networks[1][first])


def test_plain_networks_are_the_same_with_nothing_hidden_in_files_of_their_own(tmp_path):
    fit = {"epochs": 1, "batch_size": 2, "hide": 0.5}
    changes = {"model": "vgg_bn_compact", "size": [32, 32], "folds": 2, "methods": ["gradient"], "fit": fit}
    spec = read_spec(str(write_modality(tmp_path, **changes, plain=True)))
    plan = plan_modality(spec, RunOptions(workers=0), tmp_path / "run")
    training = trainer(plan, tmp_path / "out", Silent())
    plain = replace(training, networks=plan.plain_networks(training.networks))
    fold = plan.folds[0]
    jobs = [each._job(fold) for each in (training, plain)]
    assert [job.settings.hide for job in jobs] == [0.5, 0.0]
    assert replace(jobs[0].settings, hide=0.0) == jobs[1].settings  # seed and all else
    states = [job.module.state_dict() for job in jobs]
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())
    tasks = [each.task(fold) for each in (training, plain)]
    assert [task.name for task in tasks] == ["fold 1", "plain 1"]
    assert tasks[0].state != tasks[1].state
    history = tasks[1].fit()
    assert list(tasks[1].scores(history)) == []  # epochs of the report are those of the networks explained
    assert (tmp_path / "out" / "networks" / "plain-1.safetensors").exists()
    assert not (tmp_path / "out" / "networks" / "fold-1.safetensors").exists()


def test_the_scores_say_which_epoch_was_kept(plan, tmp_path):
    task = trainer(plan, tmp_path / "run", StopsAt()).task(plan.folds[0])
    history = task.fit()
    found = {score.metric: score.value for score in task.scores(history)}
    best = min(history, key=lambda check: check.validation_loss)
    assert found == {"epoch": best.epoch + 1, "validation_loss": best.validation_loss}


@pytest.mark.parametrize("step", [1, 3])
def test_a_fold_whose_training_was_stopped_ends_with_the_same_file(plan, tmp_path, step):
    fold = plan.folds[1]
    trainer(plan, tmp_path / "whole", StopsAt()).task(fold).fit()
    with pytest.raises(KeyboardInterrupt):
        trainer(plan, tmp_path / "stopped", StopsAt(step)).task(fold).fit()
    trainer(plan, tmp_path / "stopped", StopsAt()).task(fold).fit()
    one, other = (tmp_path / name / "networks" / "fold-2.safetensors" for name in ("whole", "stopped"))
    assert one.read_bytes() == other.read_bytes()
