"""What a modality spec may say, and the checks that need no model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, field_validator, model_validator

from heatcheck.core.contracts import Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import Several
from heatcheck.explaining.methods import MethodParts
from heatcheck.explaining.study_models import StudyModel
from heatcheck.fitting.spec import FitPart, PixelsPart, has_one_class
from heatcheck.judging.sizes import Sizes
from heatcheck.maps.channels import MapOrder
from heatcheck.methods import METHODS
from heatcheck.studies.modality.vocabulary import Fill, Importance, MaskSource, Measure, Weights

FOLD_FIT = {
    "epochs": 60, "batch_size": 4, "learning_rate": 5e-4, "weight_decay": 0.0, "optimizer": "adam",
    "schedule": "constant", "clip": None, "balanced": True,
}  # fmt: skip


class KnownPart(BaseModel):
    """Cases in which only one modality is informative: the accuracy there is how much the network relies on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    modality: str
    source: dict[str, Any]


class RemovalPart(BaseModel):
    """How the most salient voxels are removed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    steps: int = Field(10, ge=1, le=100)
    random: int = Field(15, ge=1)  # orders drawn for comparison


class ModalityBody(BaseModel):
    """What a modality spec says beyond the common part."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: dict[str, Any]
    model: StudyModel
    folds: int | Path | None = (
        None  # a number, a table of cases and folds, or a folder of published ones; none: weights
    )
    validation_share: float = Field(0.2, gt=0, lt=1)  # of the cases that are not tested, to choose the epoch
    start: Path | None = None  # weights with which the training of every fold begins, as far as they fit
    size: tuple[PositiveInt, ...] = ()  # of networks trained here, as are the next three
    pixels: PixelsPart = PixelsPart(scaling="nonzero")
    fit: FitPart = FitPart(**FOLD_FIT)
    plain: bool | StudyModel = (
        False  # also ask a network from which nothing was hidden: train one per fold, or a given one
    )
    cache: bool = True  # store prepared images on disk during training
    methods: MethodParts = Field(min_length=1)
    masks: MaskSource = "own"
    boxes: bool = False  # bounding boxes instead of outlines
    dilate: int = Field(0, ge=0, le=100)  # pixels by which masks are dilated in each slice before maps are scored
    map_order: MapOrder = "reduce_first"  # of dropping negative values and resizing a map
    fills: Several[Fill] = ("zero",)  # the first one is primary
    measure: Measure = "balanced"
    weights: Weights = "positive"
    importance: Importance = "lesion"
    known: Several[KnownPart] = ()
    permutations: int = Field(200, ge=4)  # orders drawn if there are more than ten modalities
    removal: RemovalPart | None = RemovalPart()
    ratings: Path | None = None
    nifti: Literal["gallery", "all", "none"] = "gallery"
    bootstrap_draws: int = Field(2000, ge=100)
    sizes: Sizes = Sizes()  # differences that matter

    @field_validator("folds", mode="before")
    @classmethod
    def _several_or_a_table(cls, value: object) -> object:
        number = isinstance(value, int) and not isinstance(value, bool) and value > 1
        if value is not None and not number and not isinstance(value, str | Path):
            raise ValueError("name two folds or more, a file with the columns case and fold, or a folder of fold files")
        return value

    @field_validator("fit", mode="before")
    @classmethod
    def _with_usual_values(cls, value: object) -> object:
        return {**FOLD_FIT, **value} if isinstance(value, Mapping) else value

    @field_validator("pixels", mode="before")
    @classmethod
    def _with_usual_scaling(cls, value: object) -> object:
        if isinstance(value, Mapping) and not {"mean", "std", "scaling"} & set(value):
            return {**value, "scaling": "nonzero"}
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.fills or len(set(self.fills)) < len(self.fills):
            raise ValueError("name at least one of `fills`, and each once")
        if self.importance == "known" and not self.known:
            raise ValueError(
                "`importance: known` needs `known`: for each modality a source in which only it is informative"
            )
        named = [part.modality for part in self.known]
        if len(set(named)) < len(named):
            raise ValueError("`known` names a modality twice; name it once")
        if len(self.fit.rates) > 1:
            raise ValueError("name one learning rate; this study does not compare several")
        if self.plain is True and (self.folds is None or not self.fit.hide):
            raise ValueError(
                "`plain: true` trains networks without `fit.hide` beside those of the folds; name `folds` and "
                "`fit.hide`, or a model with weights as `plain`"
            )
        if isinstance(self.plain, StudyModel) and self.folds is not None:
            raise ValueError("networks are trained here; set `plain: true`, or leave `folds` out")
        if self.folds is None and ({"fit", "size", "pixels", "start"} & self.model_fields_set):
            raise ValueError(
                "`fit`, `size`, `pixels` and `start` are for networks trained here; name `folds`, or leave them out"
            )
        return self


def modalities_of(body: ModalityBody, source: Source, where: str) -> tuple[str, ...]:
    """The names of the channels, from the source."""
    names = tuple(getattr(source, "modalities", ()))
    if not names:
        raise SpecError(
            f"{where}: the source does not name its channels; a folder's are listed as `modalities: [CT, PET]`"
        )
    if len(names) < 2 or len(set(names)) < len(names) or any(map(_is_reserved, names)):
        raise SpecError(
            f"{where}: `modalities` needs two or more different names without +, / and \\, none of them `all`, "
            f"got {list(names)}"
        )
    for part in body.known:
        if part.modality not in names:
            raise SpecError(f"{where}: `known` {part.modality!r} is not a modality; {suggest(part.modality, names)}")
    return names


def _is_reserved(name: str) -> bool:
    """Whether a modality cannot have this name: tables join names by +, files by /, and `all` means every modality."""
    return not name or name == "all" or any(sign in name for sign in "+/\\")


def classes_of(source: Source, where: str) -> tuple[str, ...]:
    """The classes, of which every case has exactly one."""
    classes = tuple(source.findings)
    if len(classes) < 2:
        raise SpecError(f"{where}: the source has {len(classes)} class; the study needs two or more")
    unclear = next((key.case for key in source.index() if not has_one_class(key, classes)), "")
    if unclear:
        raise SpecError(f"{where}: {unclear} must belong to exactly one of {', '.join(classes)}; give it one label 1")
    if not source.index():
        raise SpecError(f"{where}: the source has no cases; check its path")
    return classes


def require_known(known: Mapping[str, Source], source: Source, axes: int, where: str) -> None:
    """Refuse cases of known importance whose classes, modalities or axes differ from those of the study."""
    wanted, classes = tuple(getattr(source, "modalities", ())), tuple(source.findings)
    for modality, other in known.items():
        here = f"{where}: the source of `known` {modality}"
        names = tuple(getattr(other, "modalities", ()))
        if names != wanted:
            raise SpecError(
                f"{here} must have the study's modalities in the same order ({', '.join(wanted)}), got "
                f"{', '.join(names) or 'none'}; choose another source"
            )
        if classes_of(other, here) != classes:
            raise SpecError(f"{here} must have the classes of the study's source; choose another source")
        other_axes = _axes(other)
        if other_axes not in (None, axes):
            raise SpecError(f"{here} must have images with {axes} axes, got {other_axes}; choose another source")


def _axes(source: Source) -> int | None:
    """The number of axes of the first case's image; None where it cannot be read."""
    try:
        return source.load(source.index()[0]).image.ndim - 1
    except InputError:
        raise
    except Exception:  # noqa: BLE001 - recorded when the case's turn comes
        return None


def require_sound(body: ModalityBody, where: str) -> None:
    """Refuse methods that know where lesions usually are."""
    for part in body.methods:
        facts = METHODS[str(part.get("name"))]
        if facts.wants_priors:
            raise SpecError(
                f"{where}: {facts.name} knows where lesions usually are, and the study has such a floor; leave it out"
            )
