"""The triggers that a study can plant, with the facts that tables and reports show."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import StringConstraints, TypeAdapter, ValidationError

from heatcheck.core.errors import CaseError, InputError, SpecError
from heatcheck.core.records import Image
from heatcheck.core.registry import Registry, suggest
from heatcheck.core.settings.problems import in_plain_words
from heatcheck.triggers.placing import REFERENCE_SIDE
from heatcheck.triggers.stamp import Stamp

Settings = TypeVar("Settings", bound=type)
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]  # becomes part of file names


class Patch(Protocol):
    """The settings of one kind of trigger, which know how to draw it."""

    def describe(self) -> str:
        """A few words for a table."""

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the largest box that the patch may take on an image of this height and width."""

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:
        """The patch for this image; all randomness comes from the generator."""


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """One kind of trigger with the facts that tables and reports show."""

    kind: str
    label: str
    summary: str  # one sentence for a clinician
    settings: type[Any]  # the frozen dataclass of its settings, which draws it
    short: tuple[str, ...] = ()  # the settings in its short name, in order: square-corner-20
    needs_gradient: bool = False  # the study must pass the gradient of the baseline's loss
    needs_file: bool = False  # the study must read a picture of the user's own
    published: bool = False  # whether the paper uses this kind

    @property
    def needs(self) -> str:
        """What drawing it needs beyond the image, in words."""
        if self.needs_file:
            return "a file with the picture"
        return "the gradient of the baseline's loss" if self.needs_gradient else "nothing"


TRIGGERS: Registry[TriggerFacts] = Registry("trigger")
PUBLISHED = (
    *(f"square-corner-{size}" for size in (20, 40, 60)),
    "square-center-20",
    "square-random-20",
    *(f"circle-{position}-20" for position in ("corner", "center", "random")),
    *(f"dynamic-{size}" for size in (20, 40, 60)),
)  # the eleven triggers of the paper, in its order


def trigger(kind: str, **facts: Any) -> Callable[[Settings], Settings]:  # noqa: ANN401 - the fields of TriggerFacts
    """A decorator that registers a settings class as the trigger `kind`."""

    def register(settings: Settings) -> Settings:
        TRIGGERS.add(kind, TriggerFacts(kind=kind, settings=settings, **facts))
        return settings

    return register


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger with its settings; called with an image, it returns the patch for that image."""

    name: str
    facts: TriggerFacts
    patch: Patch

    @property
    def kind(self) -> str:
        """Its name in the registry."""
        return self.facts.kind

    @property
    def label(self) -> str:
        """A few words for a table."""
        return self.patch.describe()

    @property
    def needs_gradient(self) -> bool:
        """Whether drawing it needs the gradient of the baseline's loss with respect to the image."""
        return self.facts.needs_gradient

    def extent(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Height and width in pixels of the largest box that the patch may take on an image of this shape."""
        height, width = shape[-2:]
        return self.patch.extent((height, width))

    def require_fit(self, shape: tuple[int, ...]) -> None:
        """Raise InputError if the patch does not fit on an image of this shape, of which the last two axes count."""
        patch, image = self.extent(shape), shape[-2:]
        if patch[0] > image[0] or patch[1] > image[1]:
            raise InputError(
                f"trigger {self.name} is {_size_text(patch)} px on images of {_size_text(image)} px; "
                f"make it smaller (sizes are given for images of {REFERENCE_SIDE} px and scale with the shorter side)"
            )

    def __call__(self, image: Image, seed: int, gradient: Image | None = None) -> Stamp:
        """The patch for this image [channel, row, column] with values in [0, 1]; all randomness comes from `seed`."""
        if image.ndim != 3 or not np.issubdtype(image.dtype, np.floating):
            raise ValueError(
                f"trigger {self.name} expects an image of floats [channel, height, width], "
                f"got {image.dtype} of shape {image.shape}"
            )
        low, high = float(image.min()), float(image.max())
        if not (low > -0.01 and high < 1.01):  # false for NaN; resampling may leave the range a little
            raise CaseError(
                f"triggers need grey values from 0 to 1, got {low:.3g} to {high:.3g}; give the source its value range",
                stage="trigger",
            )
        self.require_fit(image.shape)
        return self.patch.draw(image, np.random.default_rng(seed), gradient)


def build_trigger(part: str | Mapping[str, Any]) -> Trigger:
    """The trigger for a short name (square-corner-20) or for a mapping with `kind` and settings, which are checked.

    Its name is `name`, or else the short name followed by every other setting that differs from its default.
    """
    given = _settings_in(part) if isinstance(part, str) else dict(part)
    if "kind" not in given:
        raise SpecError(f"a trigger needs its kind, got {given}; known: {', '.join(TRIGGERS)}")
    facts, name = TRIGGERS[str(given.pop("kind"))], given.pop("name", None)
    known = [setting.name for setting in fields(facts.settings)]
    for key in given:
        if key not in known:
            raise SpecError(f"trigger {facts.kind}: unknown setting {key!r}; {suggest(str(key), known)}")
    patch: Patch = _checked(facts, facts.settings, given)
    return Trigger(_short_name(facts, patch) if name is None else _checked(facts, Name, name), facts, patch)


def default_settings(kind: str) -> dict[str, Any]:
    """The default settings of a kind."""
    return asdict(TRIGGERS[kind].settings())


def _settings_in(name: str) -> dict[str, Any]:
    """The settings that a short name contains."""
    kind, *words = name.split("-")
    facts = TRIGGERS[kind]
    if len(words) > len(facts.short):
        pattern = "-".join([kind, *(word.upper() for word in facts.short)])
        raise SpecError(
            f"trigger {name!r} has more parts than {kind} has short settings; write {pattern} or a mapping of settings"
        )
    return {"kind": kind, **dict(zip(facts.short, words, strict=False))}


def _checked(facts: TriggerFacts, expected: Any, given: Any) -> Any:  # noqa: ANN401 - a value of the expected type
    try:
        return TypeAdapter(expected).validate_python(given)
    except ValidationError as error:
        problem = error.errors()[0]
        setting = ".".join(map(str, problem["loc"])) or "name"
        wrong = problem["input"]
        hint = ""
        if problem["type"] == "literal_error" and isinstance(wrong, str):
            choices = [choice.strip("' ") for choice in problem["ctx"]["expected"].replace(" or ", ",").split(",")]
            hint = f"; {suggest(wrong, choices)}"
        raise SpecError(f"trigger {facts.kind}: {setting}: {in_plain_words(problem)}{hint}") from error


def _short_name(facts: TriggerFacts, patch: Patch) -> str:
    """The kind, the settings of a short name, and each other setting that differs from its default."""
    default = facts.settings()
    words = [facts.kind, *(str(getattr(patch, key)) for key in facts.short)]
    for key in (setting.name for setting in fields(facts.settings) if setting.name not in facts.short):
        if getattr(patch, key) != getattr(default, key):
            words += [key, str(getattr(patch, key))]
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(words))


def _size_text(size: tuple[int, ...]) -> str:
    return str(size[0]) if size[0] == size[1] else "×".join(map(str, size))
