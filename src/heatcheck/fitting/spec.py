"""What a training spec says, checked before anything is read or written."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, field_validator, model_validator

from heatcheck.core.contracts import Source
from heatcheck.core.errors import SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import CaseKey
from heatcheck.core.registry import suggest
from heatcheck.models import MODELS
from heatcheck.models.starting import start_from
from heatcheck.report.numbers import count
from heatcheck.running.cases import shared_patients
from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import Spec
from heatcheck.training import STRATEGIES, FitSettings


class FitPart(BaseModel):
    """How long and how fast to learn."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    epochs: int = Field(12, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: PositiveFloat | tuple[PositiveFloat, ...] = 1e-3  # of several the best is found first
    weight_decay: float = Field(0.01, ge=0)
    optimizer: Literal["adam", "adamw"] = "adamw"
    schedule: Literal["cosine", "constant"] = "cosine"
    warm_up: float = Field(0.15, ge=0, lt=1)  # share of the steps in which a cosine schedule rises
    warm_up_steps: int | None = Field(None, ge=1)  # or how many steps
    rotate: float = Field(0.0, ge=0, le=180)  # training images are turned by up to so many degrees, either way
    hide: float = Field(0.0, ge=0, lt=1)  # probability with which each channel of a training image is hidden
    clip: PositiveFloat | None = 2.0  # longest norm of the gradients
    balanced: bool = False  # classes that exclude one another are drawn equally often

    @field_validator("learning_rate")
    @classmethod
    def _some_rate(cls, value: float | tuple[float, ...]) -> float | tuple[float, ...]:
        if isinstance(value, tuple) and (not value or len(set(value)) < len(value)):
            raise ValueError("name at least one rate, and each once")
        return value

    @model_validator(mode="after")
    def _one_warm_up(self) -> Self:
        if self.warm_up_steps is not None and "warm_up" in self.model_fields_set:
            raise ValueError("name `warm_up` as a share or `warm_up_steps`, not both")
        return self

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates to choose from."""
        return self.learning_rate if isinstance(self.learning_rate, tuple) else (self.learning_rate,)

    def settings(self, seed: int, rate: float | None = None, check_every: int | None = None) -> FitSettings:
        """How a network is fitted; at the first of the learning rates where none is named."""
        part = self.model_dump(exclude={"learning_rate"})
        return FitSettings(**part, learning_rate=rate or self.rates[0], check_every=check_every, seed=seed)


class CheckpointsPart(BaseModel):
    """When the network is judged, by what, and how many of a run's checkpoints are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    every_steps: int | None = Field(None, ge=1)  # at the end of each epoch where nothing is said
    keep: int = Field(1, ge=1)
    by: Literal["loss", "all"] | tuple[str, ...] = "loss"  # or the mean AUROC over these findings

    @field_validator("by")
    @classmethod
    def _own_names(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        return value if isinstance(value, str) else tuple(map(canonical, value))


class PixelsPart(BaseModel):
    """What the network is fed; whatever is not said is taken from the training images."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    channels: int | None = Field(None, ge=1)  # a grey image fills them all
    mean: tuple[float, ...] | None = Field(None, min_length=1)  # taken from each pixel, which lies between 0 and 1
    std: tuple[PositiveFloat, ...] | None = Field(None, min_length=1)  # then divides it
    scaling: Literal["fixed", "nonzero"] = "fixed"  # nonzero: each channel by its own pixels that are not 0

    @field_validator("mean", "std", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.mean is None) != (self.std is None):
            raise ValueError("name `mean` and `std` together, or neither: they are then measured")
        if self.scaling == "nonzero" and self.mean is not None:
            raise ValueError("with `scaling: nonzero` each image has its own `mean` and `std`; leave both out")
        counts = self._counts
        if len(counts) > 1 or (self.channels and counts - {self.channels}):
            raise ValueError("`mean` and `std` need one value, or one for each of the `channels`")
        return self

    @property
    def said_channels(self) -> int | None:
        """The channels that are named, or for which there are values."""
        return self.channels or max(self._counts, default=None)

    def scale(self, mean: float = 0.0, std: float = 1.0) -> dict[str, Any]:
        """What the contract says of scaling; these values where images are scaled alike and none are named."""
        if self.scaling == "nonzero":
            return {"scaling": self.scaling}
        return {"mean": self.mean or (mean,), "std": self.std or (std,)}

    @property
    def _counts(self) -> set[int]:
        """How many values `mean` and `std` have, where it is not one for all channels."""
        return {len(values) for values in (self.mean, self.std) if values} - {1}


class TrainingBody(BaseModel):
    """What a training spec says beyond the common part."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    model: str
    findings: tuple[str, ...] | Literal["all"] = "all"
    size: tuple[int, ...] = (160, 160)
    pixels: PixelsPart = PixelsPart()
    start: Path | None = None  # a file of weights to begin with, as far as they fit
    training: dict[str, Any]
    validation: dict[str, Any]
    test: dict[str, Any]
    labels: Literal["multiple", "single"] = "multiple"  # findings occur together, or exclude one another as classes
    uncertainty: tuple[str, ...] = Field(("ignore",), min_length=1)
    blank: Literal["unknown", "zero"] = "unknown"  # what a label nobody gave means in the training data
    runs: int = Field(1, ge=1)  # per strategy
    fit: FitPart = FitPart()
    checkpoints: CheckpointsPart = CheckpointsPart()
    ensemble: int | None = Field(None, ge=1)  # checkpoints per finding
    views: Literal["each", "max"] = "each"  # judge images, or studies by the view with the highest probability
    cache: bool = True  # keep prepared images on disk

    @field_validator("uncertainty", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.labels == "single" and self.uncertainty != ("ignore",):
            raise ValueError("with `labels: single` no label is uncertain; leave `uncertainty` out")
        if self.labels == "single" and self.ensemble:
            raise ValueError(
                "an ensemble has members of its own for each finding, and with `labels: single` one network tells all "
                "classes; leave `ensemble` out"
            )
        if self.fit.balanced and self.labels != "single":
            raise ValueError(
                "`fit.balanced` draws classes equally often, and findings may occur together; set `labels: single`, or "
                "leave it out"
            )
        if self.fit.hide and self.pixels.said_channels == 1:
            raise ValueError("`fit.hide` hides channels, and the images have one; leave it out")
        if self.fit.rotate and len(self.size) != 2:
            raise ValueError("`fit.rotate` turns pictures, and `size` is that of a volume; leave it out")
        if len(set(self.uncertainty)) < len(self.uncertainty):
            raise ValueError("`uncertainty` names a strategy twice; name it once")
        if self.checkpoints.by == "loss" and len(self.uncertainty) > 1:
            raise ValueError("the losses of several strategies cannot be compared; set `checkpoints.by` to findings")
        if self.checkpoints.by == "loss" and self.ensemble:
            raise ValueError("an ensemble is chosen by AUROC; set `checkpoints.by` to findings, or to all")
        return self


@dataclass(frozen=True)
class TrainingPlan:
    """A training, checked and ready."""

    body: TrainingBody
    seed: int
    training: Source
    validation: Source
    test: Source
    outputs: tuple[str, ...]
    start: Path | None = None

    @property
    def strategies(self) -> tuple[str, ...]:
        """The ways to learn from the labels, each with its own runs."""
        return ("single_label",) if self.body.labels == "single" else self.body.uncertainty

    @property
    def by(self) -> tuple[str, ...]:
        """The findings whose mean AUROC ranks the checkpoints; none: the loss does."""
        by = self.body.checkpoints.by
        return () if by == "loss" else self.outputs if by == "all" else tuple(by)

    def settings(self, run: int, rate: float) -> FitSettings:
        """How one run is trained; the first run of each strategy has the spec's own seed."""
        return self.body.fit.settings(self.seed + run - 1, rate, self.body.checkpoints.every_steps)


def planned(spec: Spec) -> TrainingPlan:
    """The training a spec describes, with everything checked that can be known without reading pixels."""
    body = spec.checked_body(TrainingBody)
    for strategy in body.uncertainty:
        if STRATEGIES[strategy].activation == "softmax":  # an unknown one raises with a suggestion
            raise SpecError(f"{spec.name}: uncertainty: {strategy} is not about uncertain labels; set `labels: single`")
    MODELS[body.model].require_size(body.size)
    parts = {"training": body.training, "validation": body.validation, "test": body.test}
    sources = {name: open_source(part, spec.folder, spec.name) for name, part in parts.items()}
    training, validation, test = sources.values()
    outputs = training.findings if body.findings == "all" else tuple(map(canonical, body.findings))
    for name, source in sources.items():
        missing = [finding for finding in outputs if finding not in source.findings]
        if missing:
            known = ", ".join(source.findings)
            raise SpecError(f"{spec.name}: findings {missing} are not in the {name} source, which has {known}")
        if not source.index():
            raise SpecError(f"{spec.name}: the {name} source has no cases")
    require_apart(sources, spec.name)
    if body.labels == "single":
        _require_one_class(sources, outputs, body.blank, spec.name)
    start = None if body.start is None else spec.folder / body.start
    plan = TrainingPlan(body, spec.envelope.seed, training, validation, test, tuple(outputs), start)
    if body.checkpoints.by != "all":  # of all findings those count that can be judged
        _require_judgeable(plan.by, outputs, validation, spec.name)
    if start is not None:  # refused here if it is another network's
        facts = MODELS[body.model]
        module = facts.build(body.pixels.channels or facts.channels, len(outputs), body.size)
        start_from(start, module, body.model)
    return plan


def _require_one_class(sources: Mapping[str, Source], classes: Sequence[str], blank: str, where: str) -> None:
    """Refuse sources in which a case has no class, several, or one that nobody is sure of."""
    if len(classes) < 2:
        raise SpecError(f"{where}: `labels: single` needs at least two classes, got {', '.join(classes)}")
    for name, source in sources.items():
        unsaid = 0.0 if blank == "zero" and name == "training" else math.nan
        lost = [key.case for key in source.index() if not has_one_class(key, classes, unsaid)]
        if lost:
            raise SpecError(
                f"{where}: {len(lost)} of the {name} source's cases ({_few(lost)}) have not exactly one of the classes "
                f"{', '.join(classes)}; give each case one 1 and else 0, or set `labels: multiple`"
            )


def has_one_class(key: CaseKey, classes: Sequence[str], unsaid: float = math.nan) -> bool:
    """Whether exactly one of the classes is present; a label that nobody gave counts as `unsaid`."""
    labels = [key.labels.get(name, math.nan) for name in classes]
    return sorted(unsaid if math.isnan(label) else label for label in labels) == [0.0] * (len(classes) - 1) + [1.0]


def require_apart(sources: Mapping[str, Source], where: str) -> None:
    """Refuse patients who are in two of the sources: a network that knows them looks better than it is."""
    for (one, first), (other, second) in combinations(sources.items(), 2):
        shared = shared_patients(first.index(), second.index())
        if shared:
            raise SpecError(
                f"{where}: `{one}` and `{other}` share {count(len(shared), 'patient')} ({_few(shared)}); take them out "
                "of one of the two, or rename them where they are different people"
            )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _require_judgeable(by: Sequence[str], outputs: Sequence[str], validation: Source, where: str) -> None:
    """Refuse findings that have no AUROC on the validation data."""
    keys = validation.index() if by else []
    for finding in by:
        if finding not in outputs:
            raise SpecError(f"{where}: checkpoints.by: {finding!r} is no output; {suggest(finding, outputs)}")
        labels = {key.labels[finding] for key in keys}
        for value, what in ((1.0, "positive"), (0.0, "negative")):
            if value not in labels:
                raise SpecError(
                    f"{where}: checkpoints.by: the validation source has no {what} case of {finding!r}, "
                    "so nobody can say how well it is told; leave it out"
                )
