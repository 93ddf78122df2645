"""The training spec, checked before anything is read or written."""

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
from heatcheck.core.settings.lists import AllOrSeveral, Several, listed
from heatcheck.models import MODELS
from heatcheck.models.starting import start_from
from heatcheck.report.numbers import count
from heatcheck.running.cases import shared_patients
from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import Spec
from heatcheck.training import STRATEGIES, FitSettings


class FitPart(BaseModel):
    """How the network is fitted."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    epochs: int = Field(12, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: PositiveFloat | tuple[PositiveFloat, ...] = 1e-3  # of several, the best is chosen first
    weight_decay: float = Field(0.01, ge=0)
    optimizer: Literal["adam", "adamw"] = "adamw"
    schedule: Literal["cosine", "constant"] = "cosine"
    warm_up: float = Field(0.15, ge=0, lt=1)  # share of the steps in which a cosine schedule rises, or
    warm_up_steps: int | None = Field(None, ge=1)  # the number of these steps
    rotate: float = Field(0.0, ge=0, le=180)  # training images are rotated by up to this angle in degrees, either way
    hide: float = Field(0.0, ge=0, lt=1)  # probability with which each channel of a training image is hidden
    clip: PositiveFloat | None = 2.0  # longest norm of the gradients
    balanced: bool = False  # classes that exclude one another are drawn equally often

    @field_validator("learning_rate")
    @classmethod
    def _some_rate(cls, value: float | tuple[float, ...]) -> float | tuple[float, ...]:
        if isinstance(value, tuple) and (not value or len(set(value)) < len(value)):
            raise ValueError("name at least one rate, and none twice")
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
        """The settings of a fit, with the first learning rate if none is named."""
        part = self.model_dump(exclude={"learning_rate"})
        return FitSettings(**part, learning_rate=rate or self.rates[0], check_every=check_every, seed=seed)


class CheckpointsPart(BaseModel):
    """When the network is evaluated, by what, and how many checkpoints of a run are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    every_steps: int | None = Field(None, ge=1)  # by default at the end of each epoch
    keep: int = Field(1, ge=1)
    by: Literal["loss", "all"] | tuple[str, ...] = "loss"  # or the mean AUROC over these findings

    @field_validator("by", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return value if value in ("loss", "all") else listed(value)

    @field_validator("by")
    @classmethod
    def _own_names(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        return value if isinstance(value, str) else tuple(map(canonical, value))


class PixelsPart(BaseModel):
    """The input of the network; what is not named is measured on the training images."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    channels: int | None = Field(None, ge=1)  # a grey image fills them all
    mean: Several[float] | None = Field(None, min_length=1)  # subtracted from each pixel, which is between 0 and 1
    std: Several[PositiveFloat] | None = Field(None, min_length=1)  # then divides it
    scaling: Literal["fixed", "nonzero"] = "fixed"  # nonzero: each channel by its pixels that are not 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.mean is None) != (self.std is None):
            raise ValueError("give both `mean` and `std`, or leave both out to measure them on the training images")
        if self.scaling == "nonzero" and self.mean is not None:
            raise ValueError("with `scaling: nonzero` each image has its own `mean` and `std`; leave both out")
        counts = self._counts
        if len(counts) > 1 or (self.channels and counts - {self.channels}):
            raise ValueError("`mean` and `std` need one value, or one for each of the `channels`")
        return self

    @property
    def named_channels(self) -> int | None:
        """The number of channels that is named, or for which there are values."""
        return self.channels or max(self._counts, default=None)

    def scale(self, mean: float = 0.0, std: float = 1.0) -> dict[str, Any]:
        """The scaling in the contract; `mean` and `std` are used if scaling is fixed and none are named."""
        if self.scaling == "nonzero":
            return {"scaling": self.scaling}
        return {"mean": self.mean or (mean,), "std": self.std or (std,)}

    @property
    def _counts(self) -> set[int]:
        """The numbers of values of `mean` and `std` other than 1, which is for all channels."""
        return {len(values) for values in (self.mean, self.std) if values} - {1}


class MeasuredPixelsPart(PixelsPart):
    """The same where mean and standard deviation are measured on the training images."""

    sample: int | None = Field(None, ge=1)  # measured on so many of them, drawn by chance, instead of all

    @model_validator(mode="after")
    def _measured(self) -> Self:
        if self.sample and (self.scaling == "nonzero" or self.mean is not None):
            raise ValueError("`sample` is for a `mean` and `std` that are measured; leave it out")
        return self


class TrainingBody(BaseModel):
    """The part of a training spec beyond the common one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    model: str
    findings: AllOrSeveral = "all"
    size: tuple[int, ...] = (160, 160)
    pixels: MeasuredPixelsPart = MeasuredPixelsPart()
    start: Path | None = None  # a file of initial weights, used as far as they fit
    training: dict[str, Any]
    validation: dict[str, Any]
    test: dict[str, Any]
    labels: Literal["multiple", "single"] = (
        "multiple"  # findings may occur together, or are classes that exclude one another
    )
    uncertainty: Several[str] = Field(("ignore",), min_length=1)
    blank: Literal["unknown", "zero"] = "unknown"  # what a missing label means in the training data
    runs: int = Field(1, ge=1)  # per strategy
    fit: FitPart = FitPart()
    checkpoints: CheckpointsPart = CheckpointsPart()
    ensemble: int | None = Field(None, ge=1)  # checkpoints per finding
    views: Literal["each", "max"] = "each"  # evaluate images, or examinations by the view with the highest probability
    cache: bool = True  # keep prepared images on disk

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.labels == "single" and self.uncertainty != ("ignore",):
            raise ValueError("with `labels: single` no label is uncertain; leave `uncertainty` out")
        if self.labels == "single" and self.ensemble:
            raise ValueError(
                "an ensemble has members for each finding, but with `labels: single` one network recognises all "
                "classes; leave `ensemble` out"
            )
        if self.fit.balanced and self.labels != "single":
            raise ValueError(
                "`fit.balanced` draws classes equally often, but findings may occur together; set `labels: single`, or "
                "leave it out"
            )
        if self.fit.hide and self.pixels.named_channels == 1:
            raise ValueError("`fit.hide` hides channels, but the images have only one; leave it out")
        if self.fit.rotate and len(self.size) != 2:
            raise ValueError("`fit.rotate` rotates pictures, but `size` is that of a volume; leave it out")
        if len(set(self.uncertainty)) < len(self.uncertainty):
            raise ValueError("`uncertainty` names a strategy twice; remove one")
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
        """The ways to learn from the labels, each with `runs` runs."""
        return ("single_label",) if self.body.labels == "single" else self.body.uncertainty

    @property
    def by(self) -> tuple[str, ...]:
        """The findings whose mean AUROC ranks the checkpoints; empty: the loss ranks them."""
        by = self.body.checkpoints.by
        return () if by == "loss" else self.outputs if by == "all" else tuple(by)

    def settings(self, run: int, rate: float) -> FitSettings:
        """The settings of one run; the first run of each strategy has the seed of the spec."""
        return self.body.fit.settings(self.seed + run - 1, rate, self.body.checkpoints.every_steps)


def planned(spec: Spec) -> TrainingPlan:
    """The training that a spec describes, checked as far as possible without reading pixels."""
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
    if body.checkpoints.by != "all":  # with "all", findings without an AUROC are ignored
        _require_judgeable(plan.by, outputs, validation, spec.name)
    if start is not None:  # raises if the weights are of another network
        facts = MODELS[body.model]
        module = facts.build(body.pixels.channels or facts.channels, len(outputs), body.size)
        start_from(start, module, body.model)
    return plan


def _require_one_class(sources: Mapping[str, Source], classes: Sequence[str], missing: str, where: str) -> None:
    """Refuse sources in which a case has no class, several, or an uncertain one."""
    if len(classes) < 2:
        raise SpecError(f"{where}: `labels: single` needs at least two classes, got {', '.join(classes)}")
    for name, source in sources.items():
        label = 0.0 if missing == "zero" and name == "training" else math.nan
        unclear = [key.case for key in source.index() if not has_one_class(key, classes, label)]
        if unclear:
            raise SpecError(
                f"{where}: {len(unclear)} of the {name} source's cases ({_few(unclear)}) do not have exactly one of "
                f"the classes {', '.join(classes)}; label one class 1 and the others 0, or set `labels: multiple`"
            )


def has_one_class(key: CaseKey, classes: Sequence[str], missing: float = math.nan) -> bool:
    """Whether exactly one of the classes is present; a missing label counts as `missing`."""
    labels = [key.labels.get(name, math.nan) for name in classes]
    return sorted(missing if math.isnan(label) else label for label in labels) == [0.0] * (len(classes) - 1) + [1.0]


def require_apart(sources: Mapping[str, Source], where: str) -> None:
    """Refuse patients who are in two of the sources: a network tested on them would look too good."""
    for (one, first), (other, second) in combinations(sources.items(), 2):
        shared = shared_patients(first.index(), second.index())
        if shared:
            raise SpecError(
                f"{where}: `{one}` and `{other}` share {count(len(shared), 'patient')} ({_few(shared)}); remove them "
                "from one of the two, or rename them if they are different people"
            )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _require_judgeable(by: Sequence[str], outputs: Sequence[str], validation: Source, where: str) -> None:
    """Refuse findings that have no AUROC on the validation data."""
    keys = validation.index() if by else []
    for finding in by:
        if finding not in outputs:
            raise SpecError(f"{where}: checkpoints.by: {finding!r} is not an output; {suggest(finding, outputs)}")
        labels = {key.labels[finding] for key in keys}
        for value, what in ((1.0, "positive"), (0.0, "negative")):
            if value not in labels:
                raise SpecError(
                    f"{where}: checkpoints.by: the validation source has no {what} case of {finding!r}, "
                    "so it has no AUROC; leave it out"
                )
