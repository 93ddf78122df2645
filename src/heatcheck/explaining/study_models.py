"""The models of a study, each with the methods that explain it; one model at a time is in memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import model_validator

from heatcheck.core.contracts import Classifier, Source
from heatcheck.core.errors import SpecError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining.batch import Explained, Explainer
from heatcheck.explaining.dry_run import (
    ModelWithMethods,
    extra_inputs_for,
    methods_with_batch,
    tried_on,
)
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.explaining.extra_inputs import ExtraInput
from heatcheck.explaining.first_look.look import Sample, first_look
from heatcheck.explaining.methods import MethodChoice
from heatcheck.explaining.priors import LocationPriors
from heatcheck.models import MODELS, Ensemble, ModelSettings, NetworkClassifier, open_model
from heatcheck.report.numbers import count
from heatcheck.running.facts import ModelRecord, architecture_label, describe_model
from heatcheck.running.progress import Watcher
from heatcheck.runs.manifest import WeightsFrom
from heatcheck.runs.store import RunFolder


class StudyModel(ModelSettings):
    """One of a study's models: a network, or an ensemble of checkpoints."""

    label: str = ""  # its name in tables, if two models have the same `name`

    @property
    def key(self) -> str:
        """The model's name in the table of scores."""
        return self.label or self.name

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, Mapping) and value.get("ensemble") and not value.get("name"):
            return {**value, "name": Path(str(value["ensemble"])).stem}
        return value


class CaseExplainer(ModelWithMethods, Protocol):
    """A model that explains cases; a frozen dataclass, so that `replace` gives it other methods."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def extra_inputs(self) -> tuple[ExtraInput, ...]:
        """What the study provides beyond an image."""

    def __call__(self, cases: Sequence[Case]) -> tuple[list[Explained], dict[str, float]]:
        """The explanation of every case, and the seconds that each method took for the batch."""


@dataclass(frozen=True)
class Asked:
    """What a study explains with each of its models, and how they are opened."""

    findings: tuple[str, ...]
    choice: MethodChoice
    channels: str
    seed: int
    folder: Path  # where relative paths start
    device: str
    trust_code: bool
    batch_size: int


@dataclass(frozen=True)
class Split:
    """The cases of one part of the study: those to be scored, or those for tuning thresholds."""

    name: str
    source: Source
    keys: Sequence[CaseKey]


def explainer_for(settings: StudyModel, wanted: Asked) -> CaseExplainer:
    """The model that a spec names, with the study's methods."""
    model = open_model(settings, wanted.folder, wanted.device, trust_code=wanted.trust_code)
    common = (wanted.findings, wanted.choice.methods, wanted.channels, wanted.seed)
    if isinstance(model, Ensemble):
        return EnsembleExplainer(replace(model, name=settings.key), *common, batch_size=wanted.batch_size)
    return Explainer(replace(model, name=settings.key), *common)


def facts_of(settings: StudyModel, explainer: CaseExplainer) -> ModelRecord:
    """The model as the run records it."""
    classifier = explainer.classifier
    if not isinstance(classifier, NetworkClassifier):
        raise TypeError("a localization study explains a NetworkClassifier")
    ensemble = explainer.ensemble if isinstance(explainer, EnsembleExplainer) else None
    name = ensemble.architecture if ensemble else settings.name
    return ModelRecord(
        name=settings.key,
        label=settings.label or settings.name,
        description=_described(settings, name, ensemble),
        architecture=name,
        kind="single" if ensemble is None else "per_finding" if ensemble.is_single else "ensemble",
        members=len(ensemble.members) if ensemble else 1,
        weights_hash=classifier.weights_hash,
        contract=classifier.preprocessing,
        details=_origin(settings, classifier),
    )


def _origin(settings: StudyModel, classifier: NetworkClassifier) -> dict[str, WeightsFrom]:
    """Where the weights come from, where no file was named."""
    if settings.weights is not None or settings.ensemble is not None or settings.name in MODELS:
        return {}
    return {"weights_from": "chance" if classifier.is_random else "function"}


def _described(settings: StudyModel, architecture: str, ensemble: Ensemble | None) -> str:
    """The network and the origin of its weights."""
    if ensemble is not None:
        checkpoints = count(len(ensemble.members), "checkpoint")
        best = f"the best checkpoint of each finding, {checkpoints} in all"
        kind = best if ensemble.is_single else f"an ensemble of {checkpoints}"
        return f"{architecture_label(architecture)}, {kind}"
    if settings.weights is None and architecture in MODELS:
        return MODELS[architecture].summary
    return describe_model(settings)


class StudyModels:
    """The study's models; the previous one is released before the next is loaded."""

    def __init__(self, models: Sequence[StudyModel], wanted: Asked) -> None:
        self._models = {model.key: model for model in models}
        self._wanted = wanted
        self._loaded: dict[str, CaseExplainer] = {}  # at most one, and so below
        self._ready: dict[tuple[str, str], CaseExplainer] = {}
        self._priors: dict[str, LocationPriors] = {}  # by split; independent of the model

    @property
    def names(self) -> tuple[str, ...]:
        """The models' names in the table of scores, in order."""
        return tuple(self._models)

    @property
    def choice(self) -> MethodChoice:
        """The methods, which are the same for all models; once `checked`, without those that cannot explain one."""
        return self._wanted.choice

    def checked(self, *samples: Sample) -> tuple[ModelRecord, ...]:
        """The record of each model, after it was shown some images and every method was tried on it."""
        # backwards, so that the first model, which is needed first, stays in memory
        records = [self._checked(name, samples) for name in reversed(self.names)]
        self._narrow(self.choice.settled())
        return tuple(reversed(records))

    def _checked(self, name: str, samples: Sequence[Sample]) -> ModelRecord:
        explainer = self._explainer(name)
        _require_outputs(explainer.classifier, self._wanted.findings)
        record = facts_of(self._models[name], explainer)
        classifier = explainer.classifier
        known = classifier if isinstance(classifier, NetworkClassifier) else None
        self._narrow(tried_on(self.choice, classifier, *(sample.keys for sample in samples)))
        looks = [first_look(sample, record.contract, name, known, self.choice.methods) for sample in samples]
        return replace(record, cautions=tuple(dict.fromkeys(chain(*looks))))

    def _narrow(self, choice: MethodChoice) -> None:
        self._wanted = replace(self._wanted, choice=choice)
        self._loaded = {name: replace(each, methods=choice.methods) for name, each in self._loaded.items()}

    def each(self) -> Iterator[tuple[str, CaseExplainer]]:
        """Every model by its name, one at a time in memory; the first, which is needed first, comes last."""
        for name in reversed(self.names):
            yield name, self._explainer(name)

    def _explainer(self, name: str) -> CaseExplainer:
        if name not in self._loaded:
            self._ready.clear()
            self._loaded.clear()
            self._loaded[name] = explainer_for(self._models[name], self._wanted)
        return self._loaded[name]

    def ready(self, name: str, split: Split, folder: RunFolder, watcher: Watcher) -> CaseExplainer:
        """The model with what its methods need from the study: location priors, donors, the fastest batch."""
        if (split.name, name) not in self._ready:
            explainer = self._explainer(name)
            priors = self._priors.get(split.name)
            extra_inputs = extra_inputs_for(explainer, split.source, split.keys, watcher, priors)
            for extra_input in extra_inputs:
                if isinstance(extra_input, LocationPriors):
                    self._priors[split.name] = extra_input
            fact = "max_batch" if name == self.names[0] else f"max_batch of {name}"
            methods = methods_with_batch(explainer, folder, fact)
            self._ready.clear()
            self._ready[split.name, name] = replace(explainer, extra_inputs=extra_inputs, methods=methods)
        return self._ready[split.name, name]


def _require_outputs(classifier: Classifier, findings: Sequence[str]) -> None:
    missing = [finding for finding in findings if finding not in classifier.outputs]
    if missing:
        raise SpecError(
            f"model {classifier.name} has no output for {', '.join(missing)}; its outputs are "
            f"{', '.join(classifier.outputs)}. Choose `findings` among them, or correct the contract's `outputs`"
        )
