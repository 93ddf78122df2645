"""The networks that an alignment study begins with: given with their weights, or trained here first."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from heatcheck.core.contracts import Source
from heatcheck.core.errors import SpecError
from heatcheck.core.seeds import seed_for
from heatcheck.fitting.spec import FitPart
from heatcheck.models import MODELS, Ensemble, NetworkClassifier, Preprocessing, open_model
from heatcheck.models.load import PYTHON_PREFIX, digest_of, read_weights, usable_device
from heatcheck.models.predicting import require_network
from heatcheck.models.starting import start_from
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import Spec, checked
from heatcheck.studies.alignment_cells import file_name
from heatcheck.studies.alignment_rule import Base
from heatcheck.studies.alignment_spec import MODEL, AlignmentBody, AlignmentModel, BasePart, InitialisationPart


@dataclass(frozen=True)
class PlannedBase:
    """A base, what it expects, and where it comes from."""

    facts: Base
    settings: AlignmentModel
    contract: Preprocessing
    weights_hash: str = ""  # of the weights it comes with, or begins with
    start: Path | None = None  # weights with which its training begins
    fit: FitPart | None = None  # how it is trained here

    @property
    def trained(self) -> bool:
        """Whether it is trained here."""
        return self.fit is not None

    @property
    def key(self) -> str:
        """Its name in the tables."""
        return self.facts.key


def planned_bases(
    body: AlignmentBody, spec: Spec, options: RunOptions, outputs: Sequence[str]
) -> tuple[PlannedBase, ...]:
    """Every base; `outputs` are the findings that those to be trained will tell."""
    found = [base for model in body.models for base in _of_model(model, body, (spec, options), outputs)]
    if body.base is not None and not any(base.trained for base in found):
        raise SpecError(f"{spec.name}: every model comes with weights; leave out `base` and `initialisations`")
    if not any(base.trained for base in found) and body.model_fields_set & {"size", "pixels"}:
        raise SpecError(f"{spec.name}: every model comes with its own `size` and `pixels`; leave them out")
    return tuple(found)


def _of_model(
    model: AlignmentModel, body: AlignmentBody, asked: tuple[Spec, RunOptions], outputs: Sequence[str]
) -> Iterator[PlannedBase]:
    spec, options = asked
    if comes_with_weights(model):
        if model.fit:
            raise SpecError(
                f"{spec.name}: model {model.key} comes with weights and is not trained; leave out its `fit`"
            )
        yield _given(model, spec, options)
        return
    MODELS[model.name]  # raises with a suggestion
    if body.base is None:
        raise SpecError(
            f"{spec.name}: model {model.name} comes without weights; name `weights`, or say under `initialisations` "
            "and `base` how it is trained first"
        )
    changed = {**body.base.fit.model_dump(exclude_unset=True), **model.fit}
    fit = checked(FitPart, changed, f"{spec.name}: fit of model {model.key}")
    if fit.balanced:
        raise SpecError(f"{spec.name}: fit of model {model.key}: findings may occur together; leave out `balanced`")
    for part in body.initialisations:
        yield replace(_to_train(model, part, body, (spec.folder, tuple(outputs))), fit=fit)


def comes_with_weights(model: AlignmentModel) -> bool:
    """Whether nothing need be trained."""
    shipped = model.name in MODELS and MODELS[model.name].weights
    return bool(shipped or model.weights or model.ensemble or model.name.startswith(PYTHON_PREFIX))


def opened(model: AlignmentModel, spec: Spec, options: RunOptions) -> NetworkClassifier:
    """A model with its weights."""
    found = open_model(model, spec.folder, options.device, trust_code=options.trust_code)
    if isinstance(found, Ensemble):
        raise SpecError(f"{spec.name}: one network is fine-tuned at a time; name `weights` instead of an ensemble")
    require_network(model.name, found.module, "only a network can be fine-tuned")
    return replace(found, name=model.key)


def _given(model: AlignmentModel, spec: Spec, options: RunOptions) -> PlannedBase:
    classifier = opened(model, spec, options)
    if classifier.preprocessing.activation != "sigmoid":
        raise SpecError(
            f"{spec.name}: the outputs of model {model.key} exclude each other (softmax); findings are aligned one by "
            "one, so each needs a sigmoid output of its own"
        )
    facts = Base(model.key, model.name, _family(model), model.initialisation, model.pretrained)
    digest = classifier.weights_hash or digest_of(classifier.module)
    return PlannedBase(facts, model, classifier.preprocessing, digest)


def _family(model: AlignmentModel) -> str:
    return MODELS[model.name].family if model.name in MODELS else model.key


def _to_train(
    model: AlignmentModel, part: InitialisationPart, body: AlignmentBody, known: tuple[Path, tuple[str, ...]]
) -> PlannedBase:
    folder, outputs = known
    facts = MODELS[model.name]
    size = body.size or facts.size
    facts.require_size(size)
    pixels = body.pixels
    contract = Preprocessing(
        outputs=outputs,
        size=size,
        channels=part.channels or pixels.said_channels or facts.channels,
        **pixels.scale(0.5, 0.5),
    )
    start = folder / part.start.replace(MODEL, model.name) if part.start else None
    digest = ""
    if start is not None:  # refused here if it is another network's
        start_from(start, facts.build(contract.channels, contract.answers, size), model.name)
        digest = read_weights(start).digest
    pretrained = part.start != "" if part.pretrained is None else part.pretrained
    base = Base(f"{model.key}/{part.name}", model.name, facts.family, part.name, pretrained, part.fine_tune)
    return PlannedBase(base, model, contract, digest, start)


def base_outputs(part: BasePart | None, training: Source | None) -> tuple[str, ...]:
    """What a base that is trained here tells."""
    if part is None or training is None:
        return ()
    return training.findings if part.findings == "all" else tuple(part.findings)


@dataclass(frozen=True)
class Bench:
    """Gives out the bases; the last one is kept loaded."""

    bases: tuple[PlannedBase, ...]
    spec: Spec
    options: RunOptions
    folder: Path  # where those trained here lie
    _loaded: dict[str, NetworkClassifier] = field(default_factory=dict)

    def base(self, key: str) -> PlannedBase:
        """What is known of a base."""
        return next(base for base in self.bases if base.key == key)

    def classifier(self, key: str) -> NetworkClassifier:
        """The base, ready to be asked."""
        if key not in self._loaded:
            self._loaded.clear()
            base = self.base(key)
            self._loaded[key] = self._trained(base) if base.trained else self._opened(base)
        return self._loaded[key]

    def _opened(self, base: PlannedBase) -> NetworkClassifier:
        return opened(base.settings, self.spec, self.options)

    def _trained(self, base: PlannedBase) -> NetworkClassifier:
        module = fresh(base, 0)
        module.load_state_dict(read_weights(self.path(base)).state)
        return NetworkClassifier(base.key, module.to(usable_device(self.options.device)).eval(), base.contract)

    def path(self, base: PlannedBase) -> Path:
        """Where a base that is trained here lies."""
        return self.folder / f"{file_name(*base.key.split('/'))}.safetensors"

    def copy(self, key: str) -> nn.Module:
        """A network of its own with the base's weights."""
        return copy.deepcopy(self.classifier(key).module)


def fresh(base: PlannedBase, seed: int) -> nn.Module:
    """The base's network before its training."""
    wanted = base.contract
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(seed, base.key, "initial weights"))
        module = MODELS[base.settings.name].build(wanted.channels, wanted.answers, wanted.size)
    if base.start is not None:
        start_from(base.start, module, base.settings.name)
    return module
