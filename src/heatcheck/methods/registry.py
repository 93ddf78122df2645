"""The methods that a study can name, with the facts that lists and reports show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from heatcheck.core.contracts import Method
from heatcheck.core.errors import SpecError
from heatcheck.core.registry import Registry, suggest
from heatcheck.core.settings.problems import of_value

Settings = TypeVar("Settings", bound=type)


class Access(Enum):
    """How much of the model a method must have access to."""

    INTERNALS = "model internals"
    PREDICTIONS = "predictions only"
    NOTHING = "nothing of the model"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of methods with the access it needs, its models and its speed (Table 1 of the modality study)."""

    name: str
    access: str
    models: str  # that it can explain
    speed: str  # "fast" or "slow"


ACTIVATION = Group("activation-based", "model internals", "deep neural networks", "fast")
GRADIENT = Group("gradient-based", "model internals", "differentiable models", "fast")
PERTURBATION = Group("perturbation-based", "predictions only", "any model", "slow")
FLOOR = Group("floor", "nothing of the model", "any model", "fast")
_GROUPS = {
    "CAM": ACTIVATION,
    "attention": ACTIVATION,
    "gradient": GRADIENT,
    "modified backward": GRADIENT,
    "masks": PERTURBATION,
    "floor": FLOOR,
}
_OTHER_GROUPS = {  # for a family that is not in the paper's table
    Access.INTERNALS: Group("other", "model internals", "deep neural networks", "fast"),
    Access.PREDICTIONS: PERTURBATION,
    Access.NOTHING: FLOOR,
}


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """One method with the facts that tables and reports show."""

    name: str
    label: str
    family: str
    needs: Access
    cost: str  # in forward passes, for all targets together
    summary: str  # one sentence for a clinician
    paper: str
    settings: type[Any]  # the frozen dataclass that holds its settings and is called
    wants_priors: bool = False  # the study must hand it the mean truth masks of other cases
    wants_donors: bool = False  # the study must hand it other images
    same_for_all_targets: bool = False
    same_for_all_channels: bool = False  # with any settings; `shares_modalities` also looks at the settings
    differentiable: bool = False  # its maps can be differentiated with respect to the weights
    models: str = "any"  # the networks it can be used on, in words
    trial: Mapping[str, Any] = field(default_factory=dict)  # settings for the cheapest call that still shows it runs

    @property
    def is_floor(self) -> bool:
        """Whether it ignores the model, so that a useful method must beat it."""
        return self.needs is Access.NOTHING

    @property
    def group(self) -> Group:
        """The group of its family; an unknown family is grouped by the access that it needs."""
        return _GROUPS.get(self.family, _OTHER_GROUPS[self.needs])


METHODS: Registry[MethodFacts] = Registry("method")


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes through the network that the maps of one image need, all targets together.

    A backward pass goes from an output back to the image; one that ends at a late layer costs hardly anything and is
    not counted. A method states its own: `passes(shape, targets)`, with the image's shape as channels and sides.
    """

    forward: float = 0.0
    backward: float = 0.0
    covered: float = 0.0  # forward passes of covered copies, which are laid out in memory so that they take less time
    extra: float = 0.0  # other work, in the time of forward passes: writing down each operation, computing one twice

    @property
    def total(self) -> float:
        """All passes together."""
        return self.forward + self.backward + self.covered + self.extra

    def __add__(self, other: "Passes") -> "Passes":
        return Passes(
            self.forward + other.forward,
            self.backward + other.backward,
            self.covered + other.covered,
            self.extra + other.extra,
        )


def passes_of(name: str, method: Method, shape: tuple[int, ...], targets: int) -> Passes:
    """The passes of a method with its settings; one that states none is taken for a plain gradient."""
    stated = getattr(method, "passes", None)
    if stated is not None:
        passes: Passes = stated(shape, targets)
        return passes
    return Passes() if METHODS[name].is_floor else Passes(1, targets)


def method(name: str, **facts: Any) -> Callable[[Settings], Settings]:  # noqa: ANN401 - the fields of MethodFacts
    """A decorator that registers a settings class as the method `name` and returns it unchanged."""

    def register(settings: Settings) -> Settings:
        METHODS.add(name, MethodFacts(name=name, settings=settings, **facts))
        return settings

    return register


def shares_modalities(method: Method) -> bool:
    """Whether the method, with its settings, gives one map for all channels and so cannot tell modalities apart."""
    per_channel: bool | None = getattr(getattr(method, "segments", method), "per_channel", None)
    if per_channel is not None:
        return not per_channel
    return any(facts.same_for_all_channels for facts in METHODS.values() if facts.settings is type(method))


def build_method(name: str, settings: Mapping[str, Any]) -> Method:
    """The method with the given settings, each checked by name and type."""
    facts = METHODS[name]
    settable = (setting for setting in fields(facts.settings) if setting.init)
    known = [setting.name for setting in settable if not setting.metadata.get("from_study")]
    for key in settings:
        if key not in known:
            hint = suggest(key, known) if known else "it has no settings"
            raise SpecError(f"method {name}: unknown setting {key!r}; {hint}")
    try:
        built: Method = TypeAdapter(facts.settings).validate_python(dict(settings))
    except ValidationError as error:
        raise SpecError(f"method {name}: {of_value(error)}") from error
    return built


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting that differs from its default (`usual`); both values as JSON can hold them."""

    name: str
    value: Any
    usual: Any


def changed_settings(name: str, method: Method) -> list[ChangedSetting]:
    """The settings in which the method differs from its defaults; what the study supplies is not counted."""
    usual = plain_settings(METHODS[name].settings())
    return [
        ChangedSetting(key, value, usual[key]) for key, value in plain_settings(method).items() if value != usual[key]
    ]


def plain_settings(method: Method) -> dict[str, Any]:
    """The settings as JSON can hold them, without what the caller supplies, such as other images."""
    if not is_dataclass(method):
        return {}
    names = [setting.name for setting in fields(method) if setting.init and not setting.metadata.get("from_study")]
    return {name: _plain(getattr(method, name)) for name in names}


def _plain(value: Any) -> Any:  # noqa: ANN401 - any setting
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Tensor):  # segments supplied by the user
        return f"{'×'.join(map(str, value.shape))} numbers"
    return value
