"""The networks of a trigger study: for each seed a baseline, and from it one poisoned model per trigger.

A network is a file in the run's folder. A stopped fit continues where it was; a network whose shard is on disk is never
trained again.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from torch import nn

from heatcheck.core.records import CaseRecord, Score
from heatcheck.core.seeds import seed_for
from heatcheck.core.vocabulary import condition
from heatcheck.fitting.networks import FOLDER, BestNetwork, NetworkStore, fit_network, new_network
from heatcheck.fitting.stage import FitTask
from heatcheck.metrics.recovery import attacked, correct
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.running.progress import Watcher
from heatcheck.studies.triggers.attack import (
    Answers,
    Attack,
    PoisonedExamples,
    Positions,
    answers_of,
    poisoned_test,
    poisoned_training,
    predicted_classes,
    training_entries,
    validation_entries,
)
from heatcheck.studies.triggers.images import GridImages
from heatcheck.studies.triggers.spec import TriggersBody
from heatcheck.studies.triggers.vocabulary import (
    BASELINE,
    BASELINE_STAMPED,
    CLEAN,
    STAMPED,
    confidence_of,
    correct_of,
)
from heatcheck.training import Check, Job, LabelObjective, Machine, quick
from heatcheck.triggers import Trigger


@dataclass(frozen=True, slots=True)
class Network:
    """One network of the study: a seed's baseline, or the model that a trigger poisons."""

    seed: int
    trigger: Trigger | None = None

    @property
    def name(self) -> str:
        """The trigger's name, or "baseline"."""
        return self.trigger.name if self.trigger else BASELINE

    @property
    def label(self) -> str:
        """Its name in the progress output."""
        return f"{self.name}, seed {self.seed}"

    @property
    def file(self) -> str:
        """The stem of its file."""
        return f"{self.name}-seed{self.seed}"


@dataclass(frozen=True)
class Splits:
    """The images of the three splits on the model's grid."""

    training: GridImages
    validation: GridImages
    test: GridImages

    def records(self) -> list[CaseRecord]:
        """A record of every case."""
        return [record for part in (self.training, self.validation, self.test) for record in part.records()]


@dataclass(frozen=True)
class TriggerNetworks:
    """Trains the study's networks and loads them; the last baseline and the last poisoned model stay in memory."""

    body: TriggersBody
    seed: int  # of the run
    contract: Preprocessing
    target: int
    splits: Splits
    folder: Path  # of the run
    machine: Machine
    watcher: Watcher
    given: NetworkClassifier | None = None  # a baseline with weights, which is not trained
    start: Path | None = None  # weights with which a baseline begins

    @property
    def model(self) -> str:
        """The architecture."""
        return self.body.model.name

    def seed_of(self, network: Network) -> int:
        """The seed of everything that is drawn for a network."""
        return seed_for(self.seed, network.seed, "network")

    def attack(self, network: Network) -> Attack | None:
        """The attack on the network; None for a baseline."""
        if network.trigger is None:
            return None
        return Attack(network.trigger, self.seed_of(network), self.target, self.classifier(Network(network.seed)))

    @cached_property
    def attacked(self) -> Positions:
        """The test images that get a trigger: the same for every network, so that they can be compared."""
        return poisoned_test(self.splits.test, self.target, self.body.poison.test, self.seed)

    def classifier(self, network: Network) -> NetworkClassifier:
        """A network that was trained before, or the given baseline."""
        if network.trigger is None and self.given is not None:
            return self.given
        return self._store(network).load(network.file)

    def _store(self, network: Network) -> NetworkStore:
        return self._stores[network.trigger is None]

    @cached_property
    def _stores(self) -> dict[bool, NetworkStore]:
        """One of baselines and one of poisoned models: both networks are needed to score a map."""
        return {is_baseline: NetworkStore(self.folder / FOLDER, self._built) for is_baseline in (True, False)}

    def _built(self, name: str) -> NetworkClassifier:
        module = copy.deepcopy(self.given.module) if self.given else new_network(self.model, self.contract)
        return NetworkClassifier(f"{name}.safetensors", quick(module.to(self.machine.device)), self.contract)

    def path(self, network: Network) -> Path:
        """The file of the network."""
        return self._store(network).path(network.file)

    def state(self, network: Network) -> Path:
        """The file with the progress of its fit."""
        return self._store(network).state(network.file)

    def train(self, network: Network) -> list[Check]:
        """The history of the network's fit, which continues where it was stopped; empty for a given baseline."""
        if network.trigger is None and self.given is not None:
            return []
        attack = self.attack(network)
        part = self.body.retrain if attack else self.body.fit
        training = training_entries(
            attack, self.splits.training, self._poisoned(network) if attack else np.zeros(0, int)
        )
        validation = validation_entries(attack, self.splits.validation)
        job = Job(
            self._beginning(network),
            LabelObjective("single_label"),  # classes exclude one another
            PoisonedExamples(self.splits.training, self.contract, self.target, training),
            PoisonedExamples(self.splits.validation, self.contract, self.target, validation),
            part.settings(self.seed_of(network)),
            self.state(network),
            BestNetwork(self.path(network), self.model, self.contract),
        )
        return fit_network(job, f"training {network.label}", self.machine, self.watcher)

    def _poisoned(self, network: Network) -> Positions:
        poison = self.body.poison
        return poisoned_training(
            self.splits.training, self.target, poison.training, target_too=poison.target_too, seed=self.seed_of(network)
        )

    def _beginning(self, network: Network) -> nn.Module:
        """The weights with which a fit begins: the baseline's for a poisoned model, new ones for a baseline."""
        if network.trigger is not None:
            return quick(copy.deepcopy(self.classifier(Network(network.seed)).module))
        first = seed_for(self.seed_of(network), "initial weights")
        return quick(new_network(self.model, self.contract, first, self.start))


def fit_task(networks: TriggerNetworks, network: Network) -> FitTask:
    """The training of a network, and then its scores on the test images."""
    return FitTask(
        network.name,
        networks.body.model.key,
        networks.state(network),
        lambda: networks.train(network),
        lambda _: _test_scores(networks, network),
    )


def _test_scores(networks: TriggerNetworks, network: Network) -> list[Score]:
    """What the network answers to clean and to attacked test images: right or wrong, to which class, how confidently.

    Accuracy is over the images that are not attacked, as in the paper's formula 6, the same for the baseline and every
    poisoned model.
    """
    images, attack = networks.splits.test, networks.attack(network)
    classifier, model = networks.classifier(network), networks.body.model.key
    under = condition(seed=network.seed)

    def rows(metric: str, positions: Iterable[int], values: Iterable[float]) -> list[Score]:
        keys = (images.keys[position] for position in positions)
        return [
            Score(key.case, key.patient, network.name, "", model, metric, float(value), under)
            for key, value in zip(keys, values, strict=True)
        ]

    def rated(shown: str, positions: list[int], answers: Answers) -> list[Score]:
        right = rows(correct_of(shown), positions, correct(answers.classes, images.classes[positions]))
        return right + rows(confidence_of(shown), positions, answers.confidences)

    readable = np.flatnonzero(images.readable).tolist()
    targeted = networks.attacked.tolist()
    spared = sorted(set(readable) - set(targeted))
    on_clean = rated(CLEAN, spared, answers_of(classifier, map(images.image, spared)))
    if attack is None:
        return on_clean
    stamps = list(zip(targeted, attack.stamps(images, targeted), strict=True))
    poisoned, baseline = (
        answers_of(each, (stamp.on(images.image(at)) for at, stamp in stamps)) for each in (classifier, attack.baseline)
    )
    without = predicted_classes(classifier, map(images.image, targeted))
    return [
        *on_clean,
        *rows("attacked", targeted, attacked(poisoned.classes, networks.target)),
        *rows("clean_target", targeted, attacked(without, networks.target)),
        *rows("baseline_attacked", targeted, attacked(baseline.classes, networks.target)),
        *rated(STAMPED, targeted, poisoned),
        *rated(BASELINE_STAMPED, targeted, baseline),
    ]
