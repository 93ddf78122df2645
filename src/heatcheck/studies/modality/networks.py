"""The networks of a modality study: the one whose weights are given, or one per fold, trained here.

A network is a file in the run's folder. An interrupted fit continues where it stopped; a network whose shard is on disk
is never trained again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import Subset

from heatcheck.core.contracts import Source
from heatcheck.core.errors import InputError, SpecError, briefly
from heatcheck.core.records import Score
from heatcheck.core.seeds import seed_for
from heatcheck.core.vocabulary import condition
from heatcheck.explaining.study_models import StudyModel
from heatcheck.fitting.contract import require_classes
from heatcheck.fitting.examples import CaseExamples, StoredExamples
from heatcheck.fitting.folds import Fold
from heatcheck.fitting.networks import FOLDER, BestNetwork, NetworkStore, fit_network, new_network, open_network
from heatcheck.fitting.stage import FitTask
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.load import usable_device
from heatcheck.running.progress import Watcher
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import Spec
from heatcheck.studies.modality.cases import with_modality
from heatcheck.studies.modality.spec import ModalityBody
from heatcheck.training import Check, Job, LabelObjective, Machine, quick
from heatcheck.training.batches import Examples
from heatcheck.training.selection import best_checks

IMAGES = "images"  # the folder of prepared images, while networks are trained


@dataclass(frozen=True)
class FoldNetworks:
    """The network of each fold, trained here and stored as a file; a given network serves every fold."""

    body: ModalityBody
    contract: Preprocessing
    folder: Path  # of the run
    device: str
    given: NetworkClassifier | None = None
    start: Path | None = None  # weights with which the training of every fold begins
    prefix: str = "fold"  # of the files' names

    def classifier(self, fold: int) -> NetworkClassifier:
        """The network that is tested on that fold."""
        return self.given or self.store.load(self.name(fold))

    def name(self, fold: int) -> str:
        """The name of the fold's file."""
        return f"{self.prefix}-{fold}"

    def untrained(self, seed: int = 0) -> nn.Module:
        """A network before its first step."""
        return new_network(self.body.model.name, self.contract, seed, self.start)

    @cached_property
    def store(self) -> NetworkStore:
        """The files of the networks trained here."""
        return NetworkStore(self.folder / FOLDER, self._new)

    def _new(self, name: str) -> NetworkClassifier:  # noqa: ARG002 - all are alike
        module = new_network(self.body.model.name, self.contract).to(usable_device(self.device))
        return NetworkClassifier(self.body.model.key, quick(module), self.contract)


@dataclass(frozen=True)
class FoldTrainer:
    """Trains the network of each fold."""

    networks: FoldNetworks
    source: Source
    seed: int
    machine: Machine
    watcher: Watcher

    def task(self, fold: Fold) -> FitTask:
        """The training of one fold's network."""
        label = f"fold {fold.number}" + ("" if self.networks.prefix == "fold" else f", {self.networks.prefix}")
        return FitTask(
            f"{self.networks.prefix} {fold.number}",
            self.networks.body.model.key,
            self.networks.store.state(self.networks.name(fold.number)),
            lambda: fit_network(self._job(fold), f"training {label}", self.machine, self.watcher),
            lambda history: self._scores(fold, history),
        )

    def _scores(self, fold: Fold, history: Sequence[Check]) -> list[Score]:
        """The epoch that was kept, counted from 1, and its loss; only of the networks that are explained."""
        if self.networks.prefix != "fold":
            return []
        best = best_checks(history, (), 1)[0]
        values = {"epoch": float(best.epoch + 1), "validation_loss": best.validation_loss}
        model, text = self.networks.body.model.key, condition(fold=fold.number)
        return [Score("", "", "", "", model, metric, value, text) for metric, value in values.items()]

    def _job(self, fold: Fold) -> Job:
        body, contract, store = self.networks.body, self.networks.contract, self.networks.store
        name, seed = self.networks.name(fold.number), seed_for(self.seed, fold.number, "fold")
        examples, labels = self._examples(fold)
        return Job(
            quick(self.networks.untrained(seed_for(seed, "initial weights"))),
            LabelObjective("single_label"),
            Subset(examples, fold.training),
            Subset(examples, fold.validation),
            body.fit.settings(seed),
            store.state(name),
            BestNetwork(store.path(name), body.model.name, contract),
            save_every=60,
            classes=labels[list(fold.training)].argmax(1).numpy(),
        )

    def _examples(self, fold: Fold) -> tuple[Examples, torch.Tensor]:
        """The cases on the model's grid with their labels; with `cache`, stored on disk once for all folds."""
        examples = CaseExamples(self.source, self.networks.contract)
        for part, indices in (("training", fold.training), ("validation", fold.validation)):
            _require_readable(examples, indices, f"{part} images of fold {fold.number}")
        if not self.networks.body.cache:
            return examples, examples.labels
        file = self.networks.folder / IMAGES / "cases.npy"
        file.parent.mkdir(exist_ok=True)
        stored = StoredExamples(examples, file, self.watcher, self.machine.workers)
        return stored, examples.labels


def _require_readable(examples: CaseExamples, indices: Sequence[int], what: str) -> None:
    """Refuse to train where no image can be read, and name the first problem."""
    first = ""
    for index in indices:
        problem = examples.problem(index)
        if problem is None:
            return
        key = examples.keys[index]
        text = briefly(with_modality(problem, key, examples.modalities))
        first = first or (text if key.case in text else f"{key.case}: {text}")
    raise InputError(f"none of the {len(indices)} {what} can be used ({first}); check the source")


def given_network(body: ModalityBody, spec: Spec, options: RunOptions) -> NetworkClassifier | None:
    """The network, where it comes with weights; None where one per fold is trained here."""
    settings = body.model
    if not settings.has_weights:
        MODELS[settings.name]  # raises with a suggestion
        if body.folds is None:
            raise SpecError(
                f"{spec.name}: model {settings.name} comes without weights; name `weights`, or `folds: 5` to train it"
            )
        return None
    if body.folds is not None:
        raise SpecError(f"{spec.name}: the model comes with weights and is not trained here; leave `folds` out")
    return opened_network(settings, spec, options)


def opened_network(settings: StudyModel, spec: Spec, options: RunOptions) -> NetworkClassifier:
    """The network of these weights, under its name in tables."""
    return replace(open_network(settings, spec, options, "this study explains one network"), name=settings.key)


def contract_of(
    body: ModalityBody, given: NetworkClassifier | None, classes: Sequence[str], modalities: Sequence[str], where: str
) -> Preprocessing:
    """The input and output of the networks: their classes and channels must be those of the data."""
    if given is not None:
        contract = given.preprocessing
        remedy = "this study needs classes: correct the contract, or train the network here with `folds`"
        require_classes(given, classes, remedy, where)
        if contract.channels != len(modalities):
            raise SpecError(
                f"{where}: the model must have {len(modalities)} channels, one per modality ({', '.join(modalities)}), "
                f"got {contract.channels}; choose another model"
            )
        return contract
    size = MODELS[body.model.name].checked_size(body.size)
    pixels = body.pixels
    if body.fit.rotate and len(size) != 2:
        raise SpecError(f"{where}: `fit.rotate` rotates 2D images, and the network takes volumes; leave it out")
    if pixels.named_channels not in (None, len(modalities)):
        raise SpecError(
            f"{where}: `pixels` must have {len(modalities)} channels, one per modality ({', '.join(modalities)}), got "
            f"{pixels.named_channels}; correct `mean` and `std`"
        )
    return Preprocessing(
        outputs=tuple(classes),
        size=size,
        channels=len(modalities),
        **pixels.scale(),
        activation="softmax",
    )
