"""The networks of a trigger study: for each seed a baseline, and from it one victim per trigger.

A network is a file in the run's folder. A fit that was stopped goes on where it was; a network whose shard is on disk
is never trained again.
"""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import nn

from heatcheck.core.records import CaseRecord, Score, ShardTables, Timing, condition
from heatcheck.core.seeds import seed_for
from heatcheck.fitting.networks import BestNetwork
from heatcheck.fitting.spec import FitPart
from heatcheck.metrics.recovery import attacked, clean_correct
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.load import read_weights
from heatcheck.models.starting import start_from
from heatcheck.running.determinism import repeatable
from heatcheck.running.progress import Watcher
from heatcheck.studies.triggers.attack import (
    Attack,
    Places,
    PoisonedExamples,
    poisoned_test,
    poisoned_training,
    said_classes,
    training_entries,
    validation_entries,
)
from heatcheck.studies.triggers.images import GridImages
from heatcheck.studies.triggers.spec import TriggersBody
from heatcheck.studies.triggers.vocabulary import BASELINE
from heatcheck.training import FitSettings, Job, LabelObjective, Machine, fit, quick, steps_done
from heatcheck.triggers import Trigger

FOLDER = "networks"


@dataclass(frozen=True, slots=True)
class Network:
    """One network of the study: a seed's baseline, or what a trigger makes of it."""

    seed: int
    trigger: Trigger | None = None

    @property
    def name(self) -> str:
        """The trigger's name, or that it is the baseline."""
        return self.trigger.name if self.trigger else BASELINE

    @property
    def label(self) -> str:
        """What whoever watches is told."""
        return f"{self.name}, seed {self.seed}"

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}-seed{self.seed}.safetensors"


@dataclass(frozen=True)
class Splits:
    """The images of the three splits on the model's grid."""

    training: GridImages
    validation: GridImages
    test: GridImages

    def records(self) -> list[CaseRecord]:
        """What became of every case."""
        return [record for part in (self.training, self.validation, self.test) for record in part.records()]


@dataclass(frozen=True)
class Workshop:
    """Makes the study's networks, and gives them out again; the last baseline and the last victim are kept loaded."""

    body: TriggersBody
    seed: int  # of the run
    contract: Preprocessing
    target: int
    splits: Splits
    folder: Path  # of the run
    machine: Machine
    watcher: Watcher
    given: NetworkClassifier | None = None  # a baseline that need not be trained
    start: Path | None = None  # weights with which a baseline begins
    _loaded: dict[str, NetworkClassifier] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The architecture."""
        return self.body.model.name

    def seed_of(self, network: Network) -> int:
        """The seed of everything that is drawn for a network."""
        return seed_for(self.seed, network.seed, "network")

    def attack(self, network: Network) -> Attack | None:
        """What was done to the network; nothing to a baseline."""
        if network.trigger is None:
            return None
        return Attack(network.trigger, self.seed_of(network), self.target, self.classifier(Network(network.seed)))

    @cached_property
    def attacked(self) -> Places:
        """The test images that get a trigger: the same for every network, so that they can be compared."""
        return poisoned_test(self.splits.test, self.target, self.body.poison.test, self.seed)

    def classifier(self, network: Network) -> NetworkClassifier:
        """A network that was made before."""
        if network.trigger is None and self.given is not None:
            return self.given
        kind = BASELINE if network.trigger is None else "victim"
        known = self._loaded.get(kind)
        if known is None or known.name != network.file:
            module = copy.deepcopy(self.given.module) if self.given else self._built()
            module.load_state_dict(read_weights(self.path(network)).state)
            self._loaded[kind] = NetworkClassifier(
                network.file, quick(module.to(self.machine.device)).eval(), self.contract
            )
        return self._loaded[kind]

    def _built(self) -> nn.Module:
        wanted = self.contract
        return MODELS[self.model].build(wanted.channels, wanted.answers, wanted.size)

    def path(self, network: Network) -> Path:
        """Where the network lies."""
        return self.folder / FOLDER / network.file

    def state(self, network: Network) -> Path:
        """Where its fit remembers how far it is."""
        return self.path(network).with_suffix(".ckpt")

    def train(self, network: Network) -> None:
        """Fit the network, or go on with a fit that was stopped."""
        if network.trigger is None and self.given is not None:
            return
        self.path(network).parent.mkdir(exist_ok=True)
        attack = self.attack(network)
        part = self.body.retrain if attack else self.body.fit
        training = training_entries(
            attack, self.splits.training, self._poisoned(network) if attack else np.zeros(0, int)
        )
        validation = validation_entries(attack, self.splits.validation)
        module = self._beginning(network)
        job = Job(
            module,
            LabelObjective("single_label"),  # classes exclude one another
            PoisonedExamples(self.splits.training, self.contract, self.target, training),
            PoisonedExamples(self.splits.validation, self.contract, self.target, validation),
            fit_settings(part, self.seed_of(network)),
            self.state(network),
            BestNetwork(self.path(network), self.model, self.contract),
        )
        done = steps_done(job.state_file)
        self.watcher.start(f"training {network.label}", job.steps, done)
        with repeatable(None):
            fit(job, self.machine, lambda _, loss, __: self.watcher.advance(1, f"loss {loss:.3f}"))

    def _poisoned(self, network: Network) -> Places:
        poison = self.body.poison
        return poisoned_training(
            self.splits.training, self.target, poison.training, target_too=poison.target_too, seed=self.seed_of(network)
        )

    def _beginning(self, network: Network) -> nn.Module:
        """The weights with which a fit begins: the baseline's for a victim, new ones for a baseline."""
        if network.trigger is not None:
            return quick(copy.deepcopy(self.classifier(Network(network.seed)).module))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(self.seed_of(network), "initial weights"))
            module = self._built()
        if self.start is not None:
            start_from(self.start, module, self.model)
        return quick(module)


def fit_settings(part: FitPart, seed: int) -> FitSettings:
    """How a network is fitted."""
    said = part.model_dump(exclude={"learning_rate"})
    return FitSettings(**said, learning_rate=part.rates[0], seed=seed)


@dataclass(frozen=True)
class NetworksStage:
    """Every network, trained and tried on the test images; a shard is a network."""

    workshop: Workshop
    networks: Sequence[Network]
    model: str  # what scores call it
    name: str = "training"
    what: str = "networks"

    @property
    def shards(self) -> int:
        """As many as there are networks."""
        return len(self.networks)

    def cases_in(self, shard: int) -> int:  # noqa: ARG002 - each is one
        """One network."""
        return 1

    def work(self, shard: int) -> ShardTables:
        """What the network says of the test images, clean and attacked."""
        for finished in self.networks[:shard]:  # their shards are on disk
            self.workshop.state(finished).unlink(missing_ok=True)
        network = self.networks[shard]
        begun = time.perf_counter()
        self.workshop.train(network)
        spent = Timing(shard, "training", network.name, 1, time.perf_counter() - begun, self.model)
        return ShardTables(scores=tuple(self._scores(network)), timings=(spent,))

    def _scores(self, network: Network) -> list[Score]:
        """Whether each clean test image is told right, and whether each attacked one is sent to the target."""
        images, attack = self.workshop.splits.test, self.workshop.attack(network)
        classifier = self.workshop.classifier(network)
        places = np.flatnonzero(images.readable).tolist()
        said = said_classes(classifier, map(images.image, places))
        right = clean_correct(said, images.classes[places])
        named = dict(zip(places, attacked(said, self.workshop.target), strict=True))
        rows = [self._score(network, place, "clean_correct", one) for place, one in zip(places, right, strict=True)]
        if attack is None:
            return rows
        aimed_at = self.workshop.attacked.tolist()
        stamps = attack.stamps(images, aimed_at)
        said = said_classes(classifier, (s.on(images.image(place)) for place, s in zip(aimed_at, stamps, strict=True)))
        sent = attacked(said, self.workshop.target)
        rows += [self._score(network, place, "attacked", one) for place, one in zip(aimed_at, sent, strict=True)]
        return rows + [self._score(network, place, "clean_target", named[place]) for place in aimed_at]

    def _score(self, network: Network, place: int, metric: str, value: float) -> Score:
        key = self.workshop.splits.test.keys[place]
        at = condition(seed=network.seed)
        return Score(key.case, key.patient, network.name, "", self.model, metric, float(value), at)
