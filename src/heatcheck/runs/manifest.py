"""What run.json says of a run: written by the plan and by the engine, read by the report, declared once.

A study extends `Manifest` in its vocabulary. Every field has a default, so that a run that stopped early, or a part of
a manifest, can be read; `facts` gives back only what was set.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from heatcheck.core.errors import RunFolderError


class Entry(BaseModel):
    """A part of a manifest. A null in the file counts as absent."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, values: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(values, Mapping):
            return values
        return {key: value for key, value in values.items() if value is not None}

    def facts(self) -> dict[str, Any]:
        """What was set, as run.json holds it."""
        return self.model_dump(mode="json", exclude_unset=True)


class NamedEntry(Entry):
    """A part with a name for tables and a label for people, which is the name where none is given."""

    name: str
    label: str = ""

    @model_validator(mode="before")
    @classmethod
    def _labelled(cls, values: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(values, Mapping) and not values.get("label"):
            return {**values, "label": values.get("name")}
        return values


class SettingEntry(Entry):
    """A setting of a method that differs from the usual one."""

    name: str
    value: Any = None
    usual: Any = None


class MethodEntry(NamedEntry):
    """A method or a floor."""

    family: str = ""
    kind: Literal["method", "floor"] = "method"
    note: str = ""
    summary: str = ""
    changed: tuple[SettingEntry, ...] = ()
    settings: dict[str, Any] | None = None  # all that were in force; None where that is not known
    paper: str = ""


class SkippedEntry(NamedEntry):
    """A method that the run does without, since it cannot explain one of its models."""

    model: str = ""
    reason: str = ""


class MetricEntry(NamedEntry):
    """A metric in words for a reader who has never seen a paper."""

    summary: str = ""
    higher_is_better: bool = True
    unit: str = "score"


# per_finding: of each finding one checkpoint, the best for it; nothing is averaged
WeightsFrom = Literal["file", "function", "chance"]  # the user's function has them, or draws them
ModelKind = Literal["single", "per_finding", "ensemble"]


class ModelEntry(NamedEntry):
    """One of the run's models."""

    description: str = ""
    architecture: str = ""
    kind: ModelKind = "single"
    members: int = 1
    weights_hash: str = ""
    weights_from: WeightsFrom = "file"
    primary: bool = False
    outputs: tuple[str, ...] = ()


class SourceEntry(Entry):
    """The data of the run."""

    name: str = ""
    description: str = ""
    drawn: bool = False  # by heatcheck: no patient's images
    published_as: str = ""  # the data set of which a paper publishes numbers


class RetryEntry(Entry):
    """Failed cases that were run again after they were repaired."""

    started: str = ""
    finished: str = ""
    cases: int = 0


class Manifest(Entry):
    """The part of run.json that all studies share."""

    # how it was made
    study: str = ""
    title: str = ""
    paper: str = ""  # whose protocol the study carries out
    preset: str = ""
    status: Literal["running", "complete"] = "running"
    spec: dict[str, Any] = {}
    spec_hash: str = ""
    weights_hash: str | list[str] = ""
    cases_hash: str = ""
    seed: int | None = None
    device: str = ""
    threads: int | None = None
    batch_size: int | None = None
    shard_size: int | None = None
    limit: int | None = None
    machine: str = ""
    versions: dict[str, str] = {}
    started: str = ""
    finished: str = ""
    pseudonymised: bool = False
    trusted_code: bool = False
    n_cases: int | None = None
    n_failed: int | None = None
    retries: tuple[RetryEntry, ...] = ()
    rest_hash: str = ""  # of everything but the cases that failed, where they may be run again
    # what was studied
    findings: tuple[str, ...] = ()
    methods: tuple[MethodEntry, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()
    metrics: tuple[MetricEntry, ...] = ()
    model: ModelEntry | None = None  # the one whose results come first
    models: tuple[ModelEntry, ...] = ()
    source: SourceEntry = SourceEntry()
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()  # what weakens every answer, seen before the work began
    sizes: dict[str, Any] = {}  # that matter, as `judging.sizes.Sizes` declares them
    seeds: tuple[int, ...] = ()  # of the trainings

    @property
    def source_description(self) -> str:
        """The data in words, or the source's name."""
        return self.source.description or self.source.name

    @property
    def model_description(self) -> str:
        """The first model in words, or its name."""
        return (self.model.description or self.model.name) if self.model else ""


AnyManifest = TypeVar("AnyManifest", bound=Manifest)


def parse_manifest(
    values: Mapping[str, Any],
    kind: type[AnyManifest],
    source: str,
    remedy: str = "remove the folder and run the study again",
) -> AnyManifest:
    """The values as a manifest of this kind, or one sentence on what is wrong."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise RunFolderError(f"{source} cannot be used: {where}: {first['msg']}; {remedy}") from error
