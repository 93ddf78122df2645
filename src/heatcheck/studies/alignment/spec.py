"""What an alignment spec may contain, and the checks that need no model."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, field_validator, model_validator

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import CaseError, InputError, SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import CaseKey
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import AllOrSeveral, Several
from heatcheck.explaining.methods import MethodParts
from heatcheck.explaining.study_models import StudyModel
from heatcheck.fitting.spec import FitPart, PixelsPart
from heatcheck.judging.sizes import Sizes
from heatcheck.maps.channels import MapOrder
from heatcheck.methods import METHODS
from heatcheck.methods.differentiable import differentiable
from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import Spec
from heatcheck.studies.alignment.vocabulary import GIVEN

MODEL = "{model}"  # replaced by the model's name in the path of an initialisation's weights
METRICS = ("mass", "rank", "hit", "iou")
FINE_TUNING = {"epochs": 25, "batch_size": 16, "learning_rate": 1e-4, "weight_decay": 0.01, "clip": 0.5}
BASE_TRAINING = {"epochs": 10, "batch_size": 128, "learning_rate": 1e-4, "weight_decay": 0.01}
Share = Annotated[float, Field(gt=0, lt=1)]


class AlignmentModel(StudyModel):
    """A model; if it comes with weights, the spec may state their origin."""

    initialisation: str = GIVEN
    pretrained: bool = False  # on other data, before its own training
    fit: dict[str, Any] = Field(default_factory=dict)  # changes to `base.fit` for this model


class InitialisationPart(BaseModel):
    """The weights that the training of a base starts from."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(min_length=1)
    channels: PositiveInt | None = None  # filled with copies of a grey image; by default the network's usual number
    start: str = ""  # a file of weights, with {model} for the model's name; by default random weights
    pretrained: bool | None = None  # in the regression; by default whether there is a file
    fine_tune: bool = True  # else such bases are trained for their AUROC alone
    optional: bool = False  # leave out bases whose file of weights is not there, instead of refusing the spec

    def file_for(self, model: AlignmentModel, folder: Path) -> Path | None:
        """The file of weights that this model's training starts from; None for random weights."""
        return folder / self.start.replace(MODEL, model.name) if self.start else None


class BasePart(BaseModel):
    """How a model that comes without weights is trained before it is fine-tuned."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    training: dict[str, Any]
    validation: dict[str, Any]
    findings: AllOrSeveral = "all"  # its outputs
    uncertainty: str = "zeros"
    blank: Literal["unknown", "zero"] = "zero"
    fit: FitPart = FitPart(**BASE_TRAINING)
    cache: bool = True  # store prepared images on disk
    seeds: int = Field(1, ge=1)  # trainings of each base, each a base network of its own in every table

    @field_validator("fit", mode="before")
    @classmethod
    def _usual_fit(cls, value: object) -> object:
        return {**BASE_TRAINING, **value} if isinstance(value, dict) else value

    def outputs(self, training: Source) -> tuple[str, ...]:
        """The findings that a base learns to predict."""
        return training.findings if self.findings == "all" else self.findings


class ReliancePart(BaseModel):
    """How reliance is measured."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    shifts: int = Field(4, ge=1)  # regions of the same shape elsewhere, for comparison with the outlined one
    films: int = Field(2, ge=1)  # without the finding, on which the same regions are hidden


class AlignmentBody(BaseModel):
    """An alignment spec without the part that all studies share."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    finetune: dict[str, Any]  # the source of the fine-tuning images
    evaluation: dict[str, Any]  # other patients, on whom everything is measured
    models: Several[AlignmentModel] = Field(min_length=1)
    initialisations: Several[InitialisationPart] = ()  # of models without weights
    base: BasePart | None = None  # how those are trained
    size: tuple[int, ...] | None = None  # of their input; by default the network's usual one
    pixels: PixelsPart = PixelsPart(mean=(0.5,), std=(0.5,))
    findings: AllOrSeveral = "all"
    several: bool = False  # one network for all findings, instead of one per finding
    methods: MethodParts = Field(min_length=1)  # through which networks are aligned and misaligned
    judged: MethodParts = ()  # further methods, scored on networks aligned through another
    through: str = ""  # that other method; by default the first of `methods`
    alpha: float = Field(1.0, ge=0, allow_inf_nan=False)  # the weight of the map loss
    seeds: int = Field(3, ge=1)
    selection: Share = 1 / 3  # of the fine-tuning patients, for choosing the checkpoint
    fit: FitPart = FitPart(**FINE_TUNING, schedule="constant")
    at_once: PositiveInt | None = None  # images per pass through the network; by default the whole batch
    precision: Literal["32-true", "bf16-mixed"] = "32-true"
    softplus: PositiveFloat | None = None  # β of the softplus that replaces ReLUs in fine-tuning
    reliance: ReliancePart = ReliancePart()
    blame_by: Literal["mass", "rank", "hit", "iou"] = "mass"  # the score that the blame table reads
    map_order: MapOrder = "reduce_first"  # of dropping negative values and resizing a map
    keep_networks: bool = False  # keep the weights of every network
    bootstrap_draws: int = Field(2000, ge=100)
    sizes: Sizes = Sizes()  # differences that matter

    @field_validator("findings", mode="after")
    @classmethod
    def _one_name_each(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        return value if isinstance(value, str) else tuple(dict.fromkeys(map(canonical, value)))

    @field_validator("fit", mode="before")
    @classmethod
    def _usual_fit(cls, value: object) -> object:
        return {**FINE_TUNING, "schedule": "constant", **value} if isinstance(value, dict) else value

    @field_validator("alpha", mode="before")
    @classmethod
    def _not_against(cls, value: object) -> object:
        if isinstance(value, int | float) and value < 0:
            raise ValueError("must not be negative, which would misalign networks that should be aligned")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key, names in (
            ("models", [model.key for model in self.models]),
            ("initialisations", [part.name for part in self.initialisations]),
        ):
            twice = next((name for number, name in enumerate(names) if name in names[:number]), "")
            if twice:
                raise ValueError(f"two of `{key}` are called {twice!r}; rename one of them")
        if self.initialisations and not any(part.fine_tune for part in self.initialisations):
            raise ValueError("none of `initialisations` is fine-tuned; set `fine_tune: true` for one of them")
        if bool(self.initialisations) != bool(self.base):
            raise ValueError("`initialisations` and `base` need each other; name both or neither")
        if len(self.fit.rates) > 1:
            raise ValueError("`fit.learning_rate` must be one number, because networks are compared; name one")
        if self.fit.balanced or (self.base and self.base.fit.balanced):
            raise ValueError("`balanced` is for classes that exclude each other, and findings do not; leave it out")
        if self.fit.rotate:
            raise ValueError("`fit.rotate` would rotate images without their masks; use it in `base.fit` only")
        return self

    @property
    def through_method(self) -> str:
        """The method through which the networks of judged methods are aligned."""
        return self.through or str(self.methods[0].get("name", ""))


def require_roles(body: AlignmentBody, trained: Mapping[str, Method], judged: Mapping[str, Method], where: str) -> None:
    """Refuse methods under the wrong key, and a `through` that is not one of `methods`."""
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
        raise SpecError(f"{where}: `through` {body.through!r} is not one of `methods`; {near}")
    for name in judged:
        if METHODS[name].wants_priors:
            raise SpecError(f"{where}: `judged` method {name} is one of the floors of every run; leave it out")
        if METHODS[name].wants_donors:
            raise SpecError(
                f"{where}: `judged` method {name} needs other patients' data, which this study does not provide; "
                "leave it out"
            )


def open_sources(body: AlignmentBody, spec: Spec) -> dict[str, Source]:
    """The sources by their keys in the spec; what is lacking, in sources and weights, is named in one message."""
    parts = {"finetune": body.finetune, "evaluation": body.evaluation}
    if body.base is not None:
        parts |= {"training": body.base.training, "validation": body.base.validation}
    sources, problems = dict[str, Source](), dict[str, list[str]]()
    for name, part in parts.items():
        try:
            sources[name] = open_source(part, spec.folder, spec.name)
            if not sources[name].index():
                problems.setdefault(f"{spec.name}: the source has no cases; check its paths", []).append(name)
        except InputError as error:
            problems.setdefault(str(error), []).append(name)
    said = [f"{' and '.join(f'`{name}`' for name in names)}: {problem}" for problem, names in problems.items()]
    if files := [str(file) for _, part, file in lacking_weights(body, spec.folder) if not part.optional]:
        remedy = "put them there, or set `optional: true` under `initialisations` to leave out bases without them"
        said.append(f"{spec.name}: no weights in {', '.join(dict.fromkeys(files))}; {remedy}")
    if said:
        raise SpecError("; also ".join(said))
    return sources


def lacking_weights(body: AlignmentBody, folder: Path) -> Iterator[tuple[str, InitialisationPart, Path]]:
    """The bases whose training would start from weights that are not there: name, initialisation and file."""
    for model in body.models:
        for part in () if model.has_weights else body.initialisations:
            file = part.file_for(model, folder)
            if file is not None and not file.is_file():
                yield f"{model.key}/{part.name}", part, file


def findings_of(body: AlignmentBody, sources: Mapping[str, Source], where: str) -> tuple[str, ...]:
    """The findings to study; each must have positive cases with a usable mask in both sources."""
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
    """Refuse a finding if too few patients have a mask that leaves a part of the image free."""
    positives = [key for key in source.index() if key.labels.get(finding) == 1]
    if not positives:
        raise SpecError(f"{where}: `{name}` has no positive case of {finding!r}; leave the finding out")
    patients: set[str] = set()
    kinds: set[str] = set()
    for key, kind in _mask_kinds(source, positives, finding):
        kinds.add(kind)
        if kind == "usable":
            patients.add(key.patient)
        if len(patients) >= needed:
            return
    if kinds == {"full"}:
        raise SpecError(
            f"{where}: every mask of {finding!r} in `{name}` covers the whole image and leaves nothing to misalign "
            "with; leave the finding out, or outline where it is"
        )
    if not patients:
        raise SpecError(
            f"{where}: no positive case of {finding!r} in `{name}` has a mask; state their path in `{name}` "
            "(a folder source takes `masks` or `truth`), or leave the finding out"
        )
    raise SpecError(
        f"{where}: {finding!r} has masks of {len(patients)} patient in `{name}`; at least {needed} are needed, "
        "one to learn from and one to choose the checkpoint; add masks, or leave the finding out"
    )


def _mask_kinds(source: Source, keys: Sequence[CaseKey], finding: str) -> Iterator[tuple[CaseKey, str]]:
    for key in keys:
        try:
            mask = source.truth(key).get(finding)
        except CaseError:  # recorded when the images are read
            continue
        if mask is None or not mask.any():
            yield key, "none"
        else:
            yield key, "full" if mask.all() else "usable"
