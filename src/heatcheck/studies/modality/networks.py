"""The networks of a modality study: the one whose weights are given, or one for each fold, trained here.

A network is a file in the run's folder. A fit that was stopped goes on where it was; a network whose shard is on disk
is never trained again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import Subset

from heatcheck.core.contracts import Source
from heatcheck.core.errors import InputError, briefly
from heatcheck.core.records import Score, ShardTables, Timing, condition
from heatcheck.core.seeds import seed_for
from heatcheck.fitting.best_network import BestNetwork
from heatcheck.fitting.examples import CaseExamples, StoredExamples
from heatcheck.fitting.folds import Fold
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.load import read_weights
from heatcheck.running.determinism import repeatable
from heatcheck.running.progress import Watcher
from heatcheck.studies.modality.cases import named
from heatcheck.studies.modality.spec import ModalityBody
from heatcheck.training import FitSettings, Job, LabelObjective, Machine, fit, quick, steps_done
from heatcheck.training.batches import Examples
from heatcheck.training.selection import best_checks

FOLDER = "networks"
IMAGES = "images"  # the folder of prepared images, while networks are trained


@dataclass(frozen=True)
class Networks:
    """Gives out the network of a fold; the last one is kept loaded."""

    body: ModalityBody
    contract: Preprocessing
    folder: Path  # of the run
    device: torch.device
    given: NetworkClassifier | None = None
    _loaded: dict[int, NetworkClassifier] = field(default_factory=dict)

    def of(self, fold: int) -> NetworkClassifier:
        """The network that is tested on that fold."""
        if self.given is not None:
            return self.given
        if fold not in self._loaded:
            self._loaded.clear()
            module = self.built()
            module.load_state_dict(read_weights(self.path(fold)).state)
            self._loaded[fold] = NetworkClassifier(
                self.body.model.key, quick(module.to(self.device)).eval(), self.contract
            )
        return self._loaded[fold]

    def built(self) -> nn.Module:
        """The architecture, untrained."""
        wanted = self.contract
        return MODELS[self.body.model.name].build(wanted.channels, wanted.answers, wanted.size)

    def path(self, fold: int) -> Path:
        """Where the network of a fold lies."""
        return self.folder / FOLDER / f"fold-{fold}.safetensors"


@dataclass(frozen=True)
class FoldsStage:
    """Every fold's network; a shard is a fold."""

    networks: Networks
    folds: Sequence[Fold]
    source: Source
    seed: int
    machine: Machine
    watcher: Watcher
    name: str = "training"
    what: str = "networks"

    @property
    def shards(self) -> int:
        """As many as there are folds."""
        return len(self.folds)

    def cases_in(self, shard: int) -> int:  # noqa: ARG002 - each is one
        """One network."""
        return 1

    def work(self, shard: int) -> ShardTables:
        """Train the network of a fold; how well it does is seen on the cases it is tested on."""
        fold = self.folds[shard]
        path = self.networks.path(fold.number)
        path.parent.mkdir(exist_ok=True)
        begun = time.perf_counter()
        job = self._job(fold, path)
        self.watcher.start(f"training fold {fold.number}", job.steps, steps_done(job.state_file))
        with repeatable(None):
            history = fit(job, self.machine, lambda _, loss, __: self.watcher.advance(1, f"loss {loss:.3f}"))
        job.state_file.unlink(missing_ok=True)
        best = best_checks(history, (), 1)[0]
        model, at = self.networks.body.model.key, condition(fold=fold.number)
        scores = (
            Score("", "", "", "", model, "epoch", float(best.epoch + 1), at),
            Score("", "", "", "", model, "validation_loss", best.validation_loss, at),
        )
        spent = Timing(shard, "training", f"fold {fold.number}", 1, time.perf_counter() - begun, model)
        return ShardTables(scores=scores, timings=(spent,))

    def _job(self, fold: Fold, path: Path) -> Job:
        body, contract = self.networks.body, self.networks.contract
        seed = seed_for(self.seed, fold.number, "fold")
        settings = FitSettings(
            **body.fit.model_dump(exclude={"learning_rate"}), learning_rate=body.fit.rates[0], seed=seed
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(seed, "initial weights"))
            module = quick(self.networks.built())
        examples, labels = self._examples(fold)
        return Job(
            module,
            LabelObjective("single_label"),
            Subset(examples, fold.training),
            Subset(examples, fold.validation),
            settings,
            path.with_suffix(".ckpt"),
            BestNetwork(path, body.model.name, contract),
            save_every=60,
            classes=labels[list(fold.training)].argmax(1).numpy(),
        )

    def _examples(self, fold: Fold) -> tuple[Examples, torch.Tensor]:
        """The cases on the model's grid with their labels, kept on disk once for all folds where that is wished."""
        examples = CaseExamples(self.source, self.networks.contract)
        for what, places in (("training", fold.training), ("validation", fold.validation)):
            _require_some(examples, places, f"{what} images of fold {fold.number}")
        if not self.networks.body.cache:
            return examples, examples.labels
        file = self.networks.folder / IMAGES / "cases.npy"
        file.parent.mkdir(exist_ok=True)
        stored = StoredExamples(examples, file, self.watcher, self.machine.workers)
        return stored, examples.labels


def _require_some(examples: CaseExamples, places: Sequence[int], what: str) -> None:
    """Refuse to train where no image can be read, and say what is wrong with the first of them."""
    first = ""
    for place in places:
        problem = examples.problem(place)
        if problem is None:
            return
        key = examples.keys[place]
        told = briefly(named(problem, key, examples.modalities))
        first = first or (told if key.case in told else f"{key.case}: {told}")
    raise InputError(f"none of the {len(places)} {what} can be used ({first}); check the source")
