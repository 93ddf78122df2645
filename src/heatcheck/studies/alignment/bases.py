"""The networks that an alignment study starts from: given with their weights, or trained here first."""

import copy
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from heatcheck.core.contracts import Source
from heatcheck.core.errors import SpecError
from heatcheck.core.records import Prediction
from heatcheck.core.seeds import seed_for
from heatcheck.explaining.batch import answers_of
from heatcheck.fitting.examples import CaseExamples, StoredExamples
from heatcheck.fitting.networks import BestNetwork, NetworkStore, fit_network, new_network, open_network
from heatcheck.fitting.spec import FitPart
from heatcheck.fitting.stage import FitStage, FitTask
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.load import read_weights, usable_device
from heatcheck.models.predicting import require_network
from heatcheck.running.identity import weights_hash_of
from heatcheck.running.progress import Watcher
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import Spec, checked
from heatcheck.studies.alignment.images import FOLDER, as_stored, file_of
from heatcheck.studies.alignment.spec import (
    AlignmentBody,
    AlignmentModel,
    BasePart,
    InitialisationPart,
    lacking_weights,
)
from heatcheck.studies.alignment.vocabulary import VALIDATION, Base
from heatcheck.training import Job, LabelObjective, Machine, quick
from heatcheck.training.batches import Examples
from heatcheck.training.labels import STRATEGIES

AT_ONCE = 32  # images per forward pass
UNTRAINED_NETWORKS = 3  # that a base is compared with; their reliance is averaged


@dataclass(frozen=True)
class PlannedBase:
    """A base with its input contract and the origin of its weights."""

    facts: Base
    settings: AlignmentModel
    contract: Preprocessing
    weights_hash: str = ""  # of the weights that are given, or that its training starts from
    start: Path | None = None  # weights that its training starts from
    fit: FitPart | None = None  # of its training here

    @property
    def trained(self) -> bool:
        """Whether it is trained here."""
        return self.fit is not None

    @property
    def key(self) -> str:
        """Its name in the tables."""
        return self.facts.key

    @property
    def file(self) -> str:
        """The name of its file, without the suffix."""
        return file_name(*self.key.split("/"))


def planned_bases(
    body: AlignmentBody, spec: Spec, options: RunOptions, outputs: tuple[str, ...]
) -> tuple[PlannedBase, ...]:
    """Every base; `outputs` are the findings that those trained here will predict."""
    bases: list[PlannedBase] = []
    left_out = {base for base, *_ in lacking_weights(body, spec.folder)}
    for model in body.models:
        if model.has_weights:
            bases.append(_given(model, spec, options))
        else:
            fit = _base_fit(model, body, spec)
            for part in body.initialisations:
                if f"{model.key}/{part.name}" not in left_out:
                    bases += _trainings(_to_train(model, part, body, spec.folder, outputs, fit), body)
    if not any(base.facts.fine_tuned for base in bases):
        files = ", ".join(str(file) for *_, file in lacking_weights(body, spec.folder))
        raise SpecError(f"{spec.name}: no base is left to fine-tune; put weights in {files}")
    trained = any(base.trained for base in bases)
    if body.base is not None and not trained:
        raise SpecError(f"{spec.name}: every model comes with weights; leave out `base` and `initialisations`")
    if not trained and body.model_fields_set & {"size", "pixels"}:
        raise SpecError(f"{spec.name}: every model comes with its own `size` and `pixels`; leave them out")
    return tuple(bases)


def _trainings(base: PlannedBase, body: AlignmentBody) -> list[PlannedBase]:
    """The base itself, or one for each of several trainings, which differ in their first weights and their order."""
    count = body.base.seeds if body.base else 1
    if count == 1:
        return [base]
    named = [replace(base.facts, key=f"{base.key}/{number}") for number in range(1, count + 1)]
    return [replace(base, facts=facts) for facts in named]


def _base_fit(model: AlignmentModel, body: AlignmentBody, spec: Spec) -> FitPart:
    """How a model without weights is trained."""
    MODELS[model.name]  # raises with a suggestion
    if body.base is None:
        raise SpecError(
            f"{spec.name}: model {model.name} comes without weights; name `weights`, or state under "
            "`initialisations` and `base` how it is trained first"
        )
    changed = {**body.base.fit.model_dump(exclude_unset=True), **model.fit}
    fit = checked(FitPart, changed, f"{spec.name}: fit of model {model.key}")
    if fit.balanced:
        raise SpecError(f"{spec.name}: fit of model {model.key}: findings may occur together; leave out `balanced`")
    return fit


def opened(model: AlignmentModel, spec: Spec, options: RunOptions) -> NetworkClassifier:
    """A model with its weights."""
    classifier = open_network(model, spec, options, "one network is fine-tuned at a time")
    require_network(model.name, classifier.module, "only a network can be fine-tuned")
    return replace(classifier, name=model.key)


def _given(model: AlignmentModel, spec: Spec, options: RunOptions) -> PlannedBase:
    if model.fit:
        raise SpecError(f"{spec.name}: model {model.key} comes with weights and is not trained; leave out its `fit`")
    classifier = opened(model, spec, options)
    if classifier.preprocessing.activation != "sigmoid":
        raise SpecError(
            f"{spec.name}: the outputs of model {model.key} exclude each other (softmax); findings are aligned "
            "separately, so use a model with one sigmoid output per finding"
        )
    family = MODELS[model.name].family if model.name in MODELS else model.key
    facts = Base(model.key, model.name, family, model.initialisation, model.pretrained)
    return PlannedBase(facts, model, classifier.preprocessing, weights_hash_of(classifier))


def _to_train(
    model: AlignmentModel,
    part: InitialisationPart,
    body: AlignmentBody,
    folder: Path,
    outputs: tuple[str, ...],
    fit: FitPart,
) -> PlannedBase:
    facts = MODELS[model.name]
    pixels = body.pixels
    contract = Preprocessing(
        outputs=outputs,
        size=facts.checked_size(body.size),
        channels=part.channels or pixels.named_channels or facts.channels,
        **pixels.scale(0.5, 0.5),
    )
    start = part.file_for(model, folder)
    digest = ""
    if start is not None:  # raises if the weights are those of another network
        new_network(model.name, contract, start=start)
        digest = read_weights(start).digest
    pretrained = part.start != "" if part.pretrained is None else part.pretrained
    base = Base(f"{model.key}/{part.name}", model.name, facts.family, part.name, pretrained, part.fine_tune)
    return PlannedBase(base, model, contract, digest, start, fit)


@dataclass(frozen=True)
class BaseNetworks:
    """The bases with their weights; the one used last stays in memory."""

    bases: tuple[PlannedBase, ...]
    spec: Spec
    options: RunOptions
    folder: Path  # of the networks' files

    def base(self, key: str) -> PlannedBase:
        """The base of this name."""
        return next(base for base in self.bases if base.key == key)

    def classifier(self, key: str) -> NetworkClassifier:
        """The base with its weights."""
        base = self.base(key)
        given = None if base.trained else lambda: opened(base.settings, self.spec, self.options)
        return self.store.load(base.file, given)

    @cached_property
    def store(self) -> NetworkStore:
        """The files of the bases that are trained here."""
        return NetworkStore(self.folder, self._built)

    def _built(self, file: str) -> NetworkClassifier:
        base = next(base for base in self.bases if base.file == file)
        module = new_network(base.settings.name, base.contract).to(usable_device(self.options.device))
        return NetworkClassifier(base.key, module, base.contract)

    def untrained(self, key: str, seed: int) -> list[NetworkClassifier]:
        """Networks like the base with the weights that a training starts from; none if it cannot be made anew."""
        base, classifier = self.base(key), self.classifier(key)
        found = []
        for number in range(UNTRAINED_NETWORKS):
            first = seed_for(seed, key, "untrained", number)
            if base.settings.name in MODELS:
                module: nn.Module | None = new_network(base.settings.name, base.contract, first)
            else:
                module = started_anew(classifier.module, first)
            if module is None:
                return []
            found.append(replace(classifier, module=module.to(classifier.device).eval()))
        return found

    def copy(self, key: str) -> nn.Module:
        """A copy of the base's network, to be fine-tuned."""
        return copy.deepcopy(self.classifier(key).module)


def started_anew(module: nn.Module, seed: int) -> nn.Module | None:
    """A copy whose layers draw their first weights again; None where a layer with weights cannot."""
    twin = copy.deepcopy(module)
    layers = [layer for layer in twin.modules() if any(True for _ in layer.parameters(recurse=False))]
    resets = [layer.reset_parameters for layer in layers if hasattr(layer, "reset_parameters")]
    if len(resets) < len(layers):
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for reset in resets:
            reset()  # type: ignore[operator] # a layer's own method
    return twin


def fresh(base: PlannedBase, seed: int) -> nn.Module:
    """The base's network before its training."""
    first = seed_for(seed, base.key, "initial weights")
    return new_network(base.settings.name, base.contract, first, base.start)


class GreyCopies(Dataset[tuple[Tensor, ...]]):
    """Examples of one channel, repeated for every channel of the network."""

    def __init__(self, examples: Examples, channels: int) -> None:
        self.examples, self.channels = examples, channels

    def __len__(self) -> int:
        return len(self.examples)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        image, *more = self.examples[index]
        return (image.expand(self.channels, *image.shape[1:]), *more)


@dataclass(frozen=True)
class BaseTrainer:
    """Trains the bases that come without weights."""

    part: BasePart
    networks: BaseNetworks
    sources: tuple[Source, Source]  # training and validation
    folder: Path  # of the run
    seed: int
    machine: Machine
    watcher: Watcher

    @property
    def stage(self) -> FitStage:
        """The stage in which they are trained; they are measured later, as all networks are."""
        return FitStage([self._task(base) for base in self.networks.bases if base.trained], "bases")

    def _task(self, base: PlannedBase) -> FitTask:
        state = self.networks.store.state(base.file)
        label = f"training {base.key}"
        return FitTask(
            "base",
            base.key,
            state,
            lambda: fit_network(self._job(base), label, self.machine, self.watcher),
            predictions=lambda: self._answers(base),
        )

    def _answers(self, base: PlannedBase) -> Iterator[Prediction]:
        """What the trained base says of the validation images, with their labels as it learned them."""
        source, findings = self.sources[1], base.contract.outputs
        classifier, keys = self.networks.classifier(base.key), source.index()
        examples, strategy = self._examples(source, base.contract, VALIDATION), STRATEGIES[self.part.uncertainty]
        self.watcher.start(f"answers of {base.key}", len(keys))
        loader = DataLoader(examples, AT_ONCE, num_workers=self.machine.workers)
        for start, (images, labels) in zip(range(0, len(keys), AT_ONCE), loader, strict=True):
            readable = images.isfinite().flatten(1).all(1)  # others are NaN
            answers = [values.cpu() for values in answers_of(classifier, images[readable].to(classifier.device))]
            rows = zip(readable.nonzero().flatten().tolist(), strategy.learned(labels)[readable], *answers, strict=True)
            for row, known, logits, probabilities in rows:
                key = keys[start + row]
                for finding, *numbers in zip(findings, known, logits, probabilities, strict=True):
                    yield Prediction(key.case, key.patient, finding, base.key, *map(float, numbers))
            self.watcher.advance(len(images))

    def _job(self, base: PlannedBase) -> Job:
        training, validation = (
            self._examples(source, base.contract, name)
            for source, name in zip(self.sources, ("training", VALIDATION), strict=True)
        )
        return Job(
            quick(fresh(base, self.seed)),
            LabelObjective(self.part.uncertainty),
            training,
            validation,
            (base.fit or self.part.fit).settings(seed_for(self.seed, base.key, "base")),
            self.networks.store.state(base.file),
            BestNetwork(self.networks.store.path(base.file), base.settings.name, base.contract),
        )

    def _examples(self, source: Source, contract: Preprocessing, name: str) -> Examples:
        """The examples of a split, stored once for all networks with the same preprocessing."""
        if not self.part.cache:
            return CaseExamples(source, contract, self.part.blank)
        stored = as_stored(contract, 1)
        file = self.folder / FOLDER / f"base-{name}" / file_of(contract)
        file.parent.mkdir(parents=True, exist_ok=True)
        examples = CaseExamples(source, stored, self.part.blank)
        kept = StoredExamples(examples, file, self.watcher, self.machine.workers, remedy="set `base.cache: false`")
        return GreyCopies(kept, contract.channels) if stored.channels == 1 else kept


def file_name(*parts: str) -> str:
    """The parts joined into a file name; where characters must be replaced, a digest keeps it unique."""
    plain = [re.sub(r"[^A-Za-z0-9_.]+", "_", part) for part in parts if part]
    if [part.replace(" ", "_") for part in parts if part] != plain:
        plain.append(hashlib.sha256("/".join(parts).encode()).hexdigest()[:8])
    return "-".join(plain)
