"""What a trigger spec may say, the checks that need no model, and the pictures that it names as triggers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, field_validator, model_validator

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError, SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import CaseKey, Map
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import Several
from heatcheck.explaining.methods import MethodParts
from heatcheck.explaining.study_models import StudyModel
from heatcheck.fitting.spec import FitPart, PixelsPart, has_one_class
from heatcheck.judging.sizes import Sizes
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.methods import METHODS
from heatcheck.regions.detect import PRESETS
from heatcheck.sources.files.reading import read_alpha, read_image, read_mask
from heatcheck.triggers import Trigger
from heatcheck.triggers.picture import OpenedPicture, Picture

OWN_CHANNELS = "channels"  # the setting of a method that says how its channels are joined
ABSOLUTE = ("gradient",)  # methods whose sign does not say where the trigger is
BASELINE_FIT = {"epochs": 20, "batch_size": 32, "learning_rate": 1e-4, "weight_decay": 0.0, "optimizer": "adam"}
CONSTANT = {"schedule": "constant", "clip": None}  # as in the paper, which mentions neither
Sigma = Annotated[float, Field(ge=0, allow_inf_nan=False)]  # of the smoothing, in pixels of the model's grid
Threshold = Annotated[float, Field(ge=0, lt=1)]  # a share of the map's maximum, or of its range


class PoisonPart(BaseModel):
    """Which images get the trigger."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    training: float = 0.1  # share of the training images, relabelled to the target
    test: float = 0.5  # share of the test images that are not of the target class
    target_too: bool = False  # whether training images of the target class may be poisoned

    @field_validator("training", "test")
    @classmethod
    def _some_but_not_all(cls, value: float, info: Any) -> float:  # noqa: ANN401 - pydantic's
        if not 0 < value < 1:
            why = "the model must also see clean images"
            if info.field_name == "test":
                why = "accuracy is measured on images that are not attacked"
            raise ValueError(f"the share of poisoned images must be above 0 and below 1: {why}; got {value:g}")
        return value


class GatePart(BaseModel):
    """When an attack counts as successful; methods are graded only then."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    attack_success: float = Field(0.9, ge=0, le=1)  # at least
    accuracy_drop: float = Field(0.05, ge=0, le=1)  # of clean images, at most
    clean_target: float = Field(0.5, ge=0, le=1)  # share called the target even without the trigger, at most


class DetectionPart(BaseModel):
    """How a box is detected in a map."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    preset: str = "gradcam15"  # whose results lead; those of the others are reported too
    sigma: Sigma | None = None  # the preset's where none is given
    threshold: Threshold | None = None
    other_sigmas: Several[Sigma] = (0.0, 1.0, 4.0)  # scored where they are not a method's own
    other_thresholds: Several[Threshold] = (0.05, 0.3, 0.5)
    random_boxes: PositiveInt = 2  # drawn per box for the floor of recovery

    @field_validator("preset")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in PRESETS:
            raise ValueError(f"must be one of {', '.join(PRESETS)}")
        return value

    @model_validator(mode="after")
    def _nothing_ignored(self) -> Self:
        if not PRESETS[self.preset].adjustable and (self.sigma, self.threshold) != (None, None):
            free = " or ".join(f"`{name}`" for name, preset in PRESETS.items() if preset.adjustable)
            raise ValueError(
                f"`{self.preset}` has a rule for each method, so `sigma` and `threshold` would change nothing; leave "
                f"them out, or name the preset {free}"
            )
        return self


class TriggersBody(BaseModel):
    """The part of a trigger spec beyond the common one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    model: StudyModel
    start: Path | None = None  # weights with which the baseline's training begins
    size: tuple[PositiveInt, ...] = ()  # of a baseline that is trained here
    pixels: PixelsPart = PixelsPart()  # of such a baseline: only scaled to [0, 1] by default, as published
    training: dict[str, Any] | None = None
    validation: dict[str, Any] | None = None
    test: dict[str, Any] | None = None
    target: str = ""  # the first class by default
    triggers: Several[str | dict[str, Any]] = ()
    seeds: PositiveInt = 5
    poison: PoisonPart = PoisonPart()
    fit: FitPart = FitPart(**BASELINE_FIT, **CONSTANT)
    retrain: FitPart = FitPart(**BASELINE_FIT, **CONSTANT)
    gate: GatePart = GatePart()
    methods: MethodParts = Field(min_length=1)
    detection: DetectionPart = DetectionPart()
    paper_mutual_information: bool = False  # also report the uncorrected one, of 256 bins
    artefacts: dict[str, Any] | None = None  # a source whose truth masks are real artefacts
    bootstrap_draws: int = Field(2000, ge=100)
    sizes: Sizes = Sizes()  # differences that matter

    @field_validator("target")
    @classmethod
    def _canonical(cls, value: str) -> str:
        return canonical(value)

    @field_validator("fit", "retrain", mode="before")
    @classmethod
    def _with_defaults(cls, value: object) -> object:
        return {**BASELINE_FIT, **CONSTANT, **value} if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.triggers and self.artefacts is None:
            raise ValueError("name at least one of `triggers`, or `artefacts`")
        if self.triggers:
            for name in ("training", "validation", "test"):
                if getattr(self, name) is None:
                    raise ValueError(f"{name!r} is missing; a trigger study needs training, validation and test data")
        for part in (self.fit, self.retrain):
            if len(part.rates) > 1:
                raise ValueError("name one learning rate; this study does not select among several")
            if part.balanced:
                raise ValueError("`balanced` would change how often a trigger is seen; leave it out")
        return self

    @property
    def own_channels(self) -> dict[str, str]:
        """How methods join their channels where they do not sum the positive parts."""
        named = {part["name"]: part[OWN_CHANNELS] for part in self.methods if OWN_CHANNELS in part}
        return dict.fromkeys(ABSOLUTE, "absolute") | named


def require_sound(body: TriggersBody, where: str) -> None:
    """Refuse unknown channel rules, and methods that are given the answer."""
    for rule in body.own_channels.values():
        CHANNEL_RULES[rule]  # raises with a suggestion
    for part in body.methods:
        facts = METHODS[str(part.get("name"))]
        if facts.wants_priors:
            raise SpecError(
                f"{where}: {facts.name} is given the usual position of a trigger, which is the answer; leave it out"
            )


def classes_of(sources: Mapping[str, Source], where: str) -> tuple[str, ...]:
    """The classes that all sources share, of which every image has exactly one."""
    classes = tuple(sources["training"].findings)
    for name, source in sources.items():
        if tuple(source.findings) != classes:
            raise SpecError(
                f"{where}: `{name}` has the classes {', '.join(source.findings)}, `training` {', '.join(classes)}; "
                "name the same classes in the same order"
            )
        keys = source.index()
        if not keys:
            raise SpecError(f"{where}: the {name} source has no cases; check its path")
        unclear = next((key.case for key in keys if not has_one_class(key, classes)), "")
        if unclear:
            raise SpecError(
                f"{where}: {unclear} of `{name}` does not belong to exactly one class; an attack that sends images to "
                "another class needs single-label data"
            )
    return classes


def target_of(body: TriggersBody, classes: Sequence[str], sources: Mapping[str, Source], where: str) -> str:
    """The class that the trigger stands for; every source needs images of it and of other classes."""
    target = body.target or classes[0]
    if target not in classes:
        raise SpecError(f"{where}: `target` {target!r} is not a class of the data; {suggest(target, classes)}")
    for name, source in sources.items():
        if not any(key.labels[target] for key in source.index()):
            raise SpecError(f"{where}: no image of `{name}` is of the target class {target!r}; choose another `target`")
        if all(key.labels[target] for key in source.index()):
            raise SpecError(
                f"{where}: every image of `{name}` is of the target class {target!r}, so none can be attacked; "
                "choose another `target`"
            )
    return target


def require_marked(artefacts: Source, where: str) -> None:
    """Refuse artefacts of which no image has a mask under one of the source's findings; stops at the first mask."""
    for key in artefacts.index():
        try:
            if any(name in artefacts.findings and mask.any() for name, mask in artefacts.truth(key).items()):
                return
        except CaseError:  # recorded when the case is scored
            return
    raise SpecError(
        f"{where}: no image of `artefacts` has a mask of {', '.join(artefacts.findings)}; "
        "put masks into masks/<artefact>/<image>.png, and leave out `labels` or give them a column of that name"
    )


def require_enough(body: TriggersBody, keys: Sequence[CaseKey], target: str, where: str) -> None:
    """Refuse a share of poisoned training images that the other classes cannot supply."""
    wanted = max(1, round(body.poison.training * len(keys)))
    available = len(keys) if body.poison.target_too else sum(not key.labels[target] for key in keys)
    if wanted > available:
        raise SpecError(
            f"{where}: poison.training {body.poison.training:g} needs {wanted} images, but only {available} are not of "
            "the target class; lower it, or set poison.target_too"
        )


def with_picture(trigger: Trigger, folder: Path, where: str) -> Trigger:
    """The trigger with its picture read, where it has one; files are relative to the folder."""
    picture = trigger.patch
    if not isinstance(picture, Picture):
        return trigger
    if not picture.image:
        raise SpecError(f"{where}: trigger {trigger.name}: name its file, as in {{kind: picture, image: sticker.png}}")
    try:
        pixels = _pixels(picture, folder)
        alpha = _alpha(picture, folder, pixels.shape)
    except CaseError as error:
        raise SpecError(f"{where}: trigger {trigger.name}: {error}") from error
    return replace(trigger, patch=picture.with_pixels(pixels, alpha))


def picture_digests(triggers: tuple[Trigger, ...]) -> list[str]:
    """A text for each picture, which changes with its pixels."""
    return [trigger.patch.digest for trigger in triggers if isinstance(trigger.patch, OpenedPicture)]


def _pixels(picture: Picture, folder: Path) -> Map:
    values = read_image(folder / picture.image, picture.image, value_range=picture.value_range)
    if values.ndim != 3:
        raise CaseError(f"{picture.image} is a volume; save one slice of it")
    low, high = float(values.min()), float(values.max())
    if picture.value_range is None and not (low >= 0 and high <= 1):
        raise CaseError(
            f"{picture.image} has values from {low:g} to {high:g}; say which are black and white, as in "
            f"`value_range: [{low:g}, {high:g}]`"
        )
    return np.asarray(values.mean(0).clip(0, 1), np.float32)


def _alpha(picture: Picture, folder: Path, shape: tuple[int, ...]) -> Map:
    """The mask where one is named, else the picture's alpha, else 1."""
    if picture.mask:
        alpha = read_mask(folder / picture.mask, picture.mask, shape).astype(np.float32)
        if not alpha.any():
            raise CaseError(f"{picture.mask} is 0 everywhere; mark the pixels of the picture")
        return alpha
    stored = read_alpha(folder / picture.image, picture.image)
    if stored is None:
        return np.ones(shape, np.float32)
    if not stored.any():
        raise CaseError(f"{picture.image} is transparent everywhere; save it with what is to be seen")
    return stored
