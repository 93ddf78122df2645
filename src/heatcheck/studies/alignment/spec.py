"""What an alignment spec may say, and the checks that need no model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, field_validator, model_validator

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import CaseError, InputError, SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import CaseKey
from heatcheck.core.registry import suggest
from heatcheck.explaining.methods import by_name
from heatcheck.explaining.study_models import StudyModel
from heatcheck.fitting.spec import FitPart, PixelsPart
from heatcheck.methods import METHODS
from heatcheck.methods.differentiable import differentiable
from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import Spec
from heatcheck.studies.alignment.vocabulary import GIVEN

MODEL = "{model}"  # stands for the model's name in the path of an initialisation's weights
METRICS = ("mass", "rank", "hit", "iou")
FINE_TUNING = {"epochs": 25, "batch_size": 16, "learning_rate": 1e-4, "weight_decay": 0.01, "clip": 0.5}
BASE_TRAINING = {"epochs": 10, "batch_size": 128, "learning_rate": 1e-4, "weight_decay": 0.01}
Share = Annotated[float, Field(gt=0, lt=1)]


class AlignmentModel(StudyModel):
    """A model; one that comes with weights may say how those began."""

    initialisation: str = GIVEN
    pretrained: bool = False  # on other data, before its own training
    fit: dict[str, Any] = Field(default_factory=dict)  # what of `base.fit` is different for this model


class InitialisationPart(BaseModel):
    """With which weights the training of a base begins."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(min_length=1)
    channels: PositiveInt | None = None  # a grey image fills them all; the network's usual number where nothing is said
    start: str = ""  # a file of weights, with {model} in place of the model's name; none: random ones
    pretrained: bool | None = None  # what the regression calls it; by itself, whether there is a file
    fine_tune: bool = True  # else such bases are trained for their AUROC alone


class BasePart(BaseModel):
    """How a model that comes without weights is trained before it is fine-tuned."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    training: dict[str, Any]
    validation: dict[str, Any]
    findings: tuple[str, ...] | Literal["all"] = "all"  # its outputs
    uncertainty: str = "zeros"
    blank: Literal["unknown", "zero"] = "zero"
    fit: FitPart = FitPart(**BASE_TRAINING)
    cache: bool = True  # keep prepared images on disk

    @field_validator("fit", mode="before")
    @classmethod
    def _usual_fit(cls, value: object) -> object:
        return {**BASE_TRAINING, **value} if isinstance(value, dict) else value


class ReliancePart(BaseModel):
    """How it is asked what the model itself relies on."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    shifts: int = Field(4, ge=2)  # regions of the same shape elsewhere, with which the outlined one is compared


class AlignmentBody(BaseModel):
    """What an alignment spec says beyond the common part."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    finetune: dict[str, Any]  # the data that models are fine-tuned on
    evaluation: dict[str, Any]  # other patients' data, on which everything is measured
    models: tuple[AlignmentModel, ...] = Field(min_length=1)
    initialisations: tuple[InitialisationPart, ...] = ()  # of models without weights
    base: BasePart | None = None  # how those are trained
    size: tuple[int, ...] | None = None  # of their input; the network's usual one where nothing is said
    pixels: PixelsPart = PixelsPart(mean=(0.5,), std=(0.5,))
    findings: tuple[str, ...] | Literal["all"] = "all"
    several: bool = False  # all findings at once in one network, instead of a network each
    methods: tuple[dict[str, Any], ...] = Field(min_length=1)  # through which networks are aligned and misaligned
    judged: tuple[dict[str, Any], ...] = ()  # further methods, judged on networks aligned through another
    through: str = ""  # that other method; the first of `methods` where nothing is said
    alpha: float = Field(1.0, ge=0, allow_inf_nan=False)  # the weight of the map loss
    seeds: int = Field(3, ge=1)
    selection: Share = 1 / 3  # share of the fine-tuning patients by whom the checkpoint is chosen
    fit: FitPart = FitPart(**FINE_TUNING, schedule="constant")
    at_once: PositiveInt | None = (
        None  # images that go through the network together; the whole batch if nothing is said
    )
    precision: Literal["32-true", "bf16-mixed"] = "32-true"
    softplus: PositiveFloat | None = None  # ReLUs become softplus of this β while fine-tuning
    reliance: ReliancePart = ReliancePart()
    blame_by: Literal["mass", "rank", "hit", "iou"] = "mass"  # the score that the blame table reads
    keep_networks: bool = False  # store the weights of every network
    bootstrap_draws: int = Field(2000, ge=100)

    @field_validator("findings", mode="after")
    @classmethod
    def _one_name_each(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        return value if isinstance(value, str) else tuple(dict.fromkeys(map(canonical, value)))

    @field_validator("methods", "judged", mode="before")
    @classmethod
    def _methods_by_name(cls, value: object) -> object:
        return by_name(value)

    @field_validator("fit", mode="before")
    @classmethod
    def _usual_fit(cls, value: object) -> object:
        return {**FINE_TUNING, "schedule": "constant", **value} if isinstance(value, dict) else value

    @field_validator("alpha", mode="before")
    @classmethod
    def _not_against(cls, value: object) -> object:
        if isinstance(value, int | float) and value < 0:
            raise ValueError("must not be negative: a negative weight would misalign where alignment is meant")
        return value

    @model_validator(mode="after")
    def _own_names(self) -> Self:
        for what, names in (
            ("models", [model.key for model in self.models]),
            ("initialisations", [part.name for part in self.initialisations]),
        ):
            twice = next((name for number, name in enumerate(names) if name in names[:number]), "")
            if twice:
                raise ValueError(f"two of `{what}` are called {twice!r}; give one of them a name of its own")
        if self.initialisations and not any(part.fine_tune for part in self.initialisations):
            raise ValueError("none of `initialisations` is fine-tuned; set `fine_tune: true` for one of them")
        if bool(self.initialisations) != bool(self.base):
            raise ValueError("`initialisations` and `base` go together: with what a base begins, and how it is trained")
        if len(self.fit.rates) > 1:
            raise ValueError("`fit.learning_rate` must be one number: networks are compared with each other")
        if self.fit.balanced or (self.base and self.base.fit.balanced):
            raise ValueError("`balanced` draws classes equally often, and findings may occur together; leave it out")
        if self.fit.rotate:
            raise ValueError("`fit.rotate` would turn images and leave their masks; only `base.fit` may have it")
        return self

    @property
    def through_method(self) -> str:
        """The method through which the networks of judged methods are aligned."""
        return self.through or str(self.methods[0].get("name", ""))


def require_roles(body: AlignmentBody, trained: Mapping[str, Method], judged: Mapping[str, Method], where: str) -> None:
    """Refuse methods that cannot have the part they were given, and a `through` that is not trained."""
    for method in trained.values():
        try:
            differentiable(method)
        except SpecError as error:
            raise SpecError(f"{where}: {error}, or name it under `judged`") from error
    both = [name for name in judged if name in trained]
    if both:
        raise SpecError(f"{where}: {both[0]} is under `methods` and under `judged`; leave it out of one of them")
    if body.through_method not in trained:
        near = suggest(body.through, list(trained))
        raise SpecError(f"{where}: `through` {body.through!r} is none of `methods`; {near}")
    for name in judged:
        if METHODS[name].wants_priors or METHODS[name].wants_donors:
            raise SpecError(
                f"{where}: `judged` method {name} needs other patients' data, which this study does not hand out; "
                "leave it out"
            )


def open_sources(parts: Mapping[str, Mapping[str, Any]], spec: Spec) -> dict[str, Source]:
    """The sources by their keys in the spec, each with cases."""
    sources = {}
    for name, part in parts.items():
        try:
            sources[name] = open_source(part, spec.folder, spec.name)
        except InputError as error:
            raise SpecError(f"`{name}`: {error}") from error
        if not sources[name].index():
            raise SpecError(f"{spec.name}: the {name} source has no cases; check its paths")
    return sources


def findings_of(body: AlignmentBody, sources: Mapping[str, Source], where: str) -> tuple[str, ...]:
    """The findings to study; each must be known to both sources and have positives with a usable mask in both."""
    both = [name for name in sources["finetune"].findings if name in sources["evaluation"].findings]
    wanted = both if body.findings == "all" else list(body.findings)
    if not wanted:
        raise SpecError(f"{where}: `finetune` and `evaluation` have no finding in common")
    for finding in wanted:
        if finding not in both:
            raise SpecError(f"{where}: finding {finding!r} is not in both sources; {suggest(finding, both)}")
    for name, needed in (("finetune", 2), ("evaluation", 1)):
        for finding in wanted:
            _require_masks(sources[name], name, finding, needed, where)
    return tuple(wanted)


def _require_masks(source: Source, name: str, finding: str, needed: int, where: str) -> None:
    """Refuse a finding of which too few patients have a mask that leaves a part of the image free."""
    positives = [key for key in source.index() if key.labels.get(finding) == 1]
    if not positives:
        raise SpecError(f"{where}: `{name}` has no positive case of {finding!r}; leave the finding out")
    found: set[str] = set()
    kinds: set[str] = set()
    for key, kind in _mask_kinds(source, positives, finding):
        kinds.add(kind)
        if kind == "usable":
            found.add(key.patient)
        if len(found) >= needed:
            return
    if kinds == {"full"}:
        raise SpecError(
            f"{where}: every mask of {finding!r} in `{name}` covers the whole image; there is nothing outside to "
            "misalign with. Leave the finding out, or draw where it is"
        )
    if not found:
        raise SpecError(
            f"{where}: no positive case of {finding!r} in `{name}` has a mask; name where its masks lie in `{name}` "
            "(a folder source takes `masks` or `truth`), or leave the finding out"
        )
    raise SpecError(
        f"{where}: {finding!r} has masks of {len(found)} patient in `{name}`; at least {needed} are needed, "
        "one to learn from and one to choose the checkpoint by"
    )


def _mask_kinds(source: Source, keys: Sequence[CaseKey], finding: str) -> Iterator[tuple[CaseKey, str]]:
    for key in keys:
        try:
            mask = source.truth(key).get(finding)
        except CaseError:  # recorded when its turn comes
            continue
        empty = mask is None or not mask.any()
        yield key, "none" if empty else "full" if mask is not None and mask.all() else "usable"
