"""Networks of a study: given ones are opened, others are trained, kept as files and loaded again.

An interrupted fit continues where it stopped; its state is a file next to the network until the fit is finished.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import SpecError
from heatcheck.models import MODELS, ModelSettings, NetworkClassifier, Preprocessing, save_classifier
from heatcheck.models.ensemble import Ensemble, open_model
from heatcheck.models.load import read_weights
from heatcheck.models.starting import start_from
from heatcheck.running.determinism import repeatable
from heatcheck.running.progress import Watcher
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import Spec
from heatcheck.training import Check, Job, Machine, fit, steps_done
from heatcheck.training.selection import best_checks

FOLDER = "networks"  # within a run


def new_network(model: str, contract: Preprocessing, seed: int = 0, start: Path | None = None) -> nn.Module:
    """A network before its first step: random weights from the seed, or those of the file `start` as far as they fit.

    The global random state of torch does not change.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = MODELS[model].build(contract.channels, contract.answers, contract.size)
    if start is not None:
        start_from(start, module, model)
    return module


def open_network(settings: ModelSettings, spec: Spec, options: RunOptions, why: str) -> NetworkClassifier:
    """The network that a spec names, with its weights; `why` explains why an ensemble is refused."""
    model = open_model(settings, spec.folder, options.device, trust_code=options.trust_code)
    if isinstance(model, Ensemble):
        raise SpecError(f"{spec.name}: {why}; name `weights` instead of an ensemble")
    return model


def fit_network(job: Job, label: str, machine: Machine, watcher: Watcher) -> list[Check]:
    """The checks of a fit, which continues where an earlier call stopped; the watcher receives each step."""
    job.state_file.parent.mkdir(exist_ok=True)
    watcher.start(label, job.steps, steps_done(job.state_file))

    def tick(_step: int, loss: float, auroc: float) -> None:
        watcher.advance(1, f"loss {loss:.3f}" + ("" if math.isnan(auroc) else f", AUROC {auroc:.3f}"))

    with repeatable(None):
        return fit(job, machine, tick)


@dataclass(frozen=True)
class BestNetwork:
    """Keeps the weights of the check with the lowest validation loss."""

    path: Path
    model: str
    contract: Preprocessing
    by: tuple[str, ...] = ()

    def judged(self, answers: Tensor, labels: Tensor) -> Mapping[str, float]:  # noqa: ARG002 - the loss says enough
        """Nothing: checks are ranked by the loss."""
        return {}

    def keep(self, history: Sequence[Check], module: nn.Module) -> None:
        """Store the newest weights if they are the best."""
        if best_checks(history, self.by, 1)[:1] == [history[-1]]:
            with replaced(self.path) as temporary:
                save_classifier(NetworkClassifier(self.model, module, self.contract), temporary)


@dataclass(frozen=True)
class NetworkStore:
    """Networks as files in one folder; the one loaded last stays in memory."""

    folder: Path
    build: Callable[[str], NetworkClassifier]  # by name: the classifier on its device, with any weights
    _last: dict[str, NetworkClassifier] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """The file of a network's weights."""
        return self.folder / f"{name}.safetensors"

    def state(self, name: str) -> Path:
        """The file with the state of its fit."""
        return self.path(name).with_suffix(".ckpt")

    def load(self, name: str, given: Callable[[], NetworkClassifier] | None = None) -> NetworkClassifier:
        """A network that was trained before, or the one that `given` opens, in evaluation mode."""
        if name not in self._last:
            self._last.clear()  # before the next is read: two may not fit into memory
            self._last[name] = given() if given else with_weights(self.build(name), self.path(name))
        return self._last[name]


def with_weights(classifier: NetworkClassifier, path: Path) -> NetworkClassifier:
    """The classifier with the weights of a file, in evaluation mode."""
    classifier.module.load_state_dict(read_weights(path).state)
    classifier.module.eval()
    return classifier
