"""Specs: YAML files whose common part is checked here, and whose other part the study checks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heatcheck.core.errors import SpecError
from heatcheck.core.registry import suggest
from heatcheck.core.study_packages import specs_folder, study_packages

Model = TypeVar("Model", bound=BaseModel)
_TRAININGS = Path(__file__).parents[1] / "fitting" / "specs"


class Envelope(BaseModel):
    """What every spec may say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str
    title: str = ""
    seed: int = 0
    batch_size: int = Field(8, ge=1)
    shard_size: int = Field(16, ge=1)
    threads: int | None = Field(None, ge=1)
    keep_maps: Literal["gallery", "all", "none"] = "gallery"
    gallery: int = Field(18, ge=0, le=200)
    strict: bool = False  # a method that cannot explain the model stops the run, instead of being skipped


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec: the common part, the study's part, and where relative paths start."""

    name: str
    envelope: Envelope
    body: Mapping[str, Any]
    folder: Path

    def checked_body(self, model: type[Model]) -> Model:
        """The study's part, checked against its model."""
        return checked(model, self.body, self.name, also=tuple(Envelope.model_fields))


def shipped_specs() -> dict[str, Path]:
    """The installed specs of studies and trainings, by name."""
    folders = [_TRAININGS, *filter(None, map(specs_folder, study_packages()))]
    specs: dict[str, Path] = {}
    for path in (path for folder in folders for path in folder.glob("*.yaml")):
        specs.setdefault(path.stem, path)  # heatcheck's own come first, and nobody replaces them
    return dict(sorted(specs.items()))


def read_spec(name: str, seed: int | None = None) -> Spec:
    """The spec in a YAML file, or the shipped one of that name; `seed` replaces its seed.

    Relative paths start at the file, those of a shipped spec in the current folder.
    """
    path = _find(name)
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader
    except OSError as error:
        raise SpecError(f"{path.name} cannot be read ({error.strerror}); check its permissions") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        what = " ".join(str(error).split())
        raise SpecError(f"{path.name} is not valid YAML ({what}); correct it") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise SpecError(f"{path.name} must be a mapping of names to values; start from `heatcheck init`")
    common = {key: value for key, value in values.items() if key in Envelope.model_fields}
    if seed is not None:
        common["seed"] = seed
    envelope = checked(Envelope, common, path.name)
    body = {key: value for key, value in values.items() if key not in Envelope.model_fields}
    return Spec(path.name, envelope, body, Path() if path == shipped_specs().get(name) else path.parent)


class _Loader(yaml.SafeLoader):
    """YAML without code, and without keys that are given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; refuses a key that is given twice, of which the last would win silently."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _find(name: str) -> Path:
    shipped = shipped_specs()
    if name in shipped:
        return shipped[name]
    path = Path(name)
    if path.is_file():
        return path
    if path.suffix in {".yaml", ".yml"} or len(path.parts) > 1:
        neighbours = [file.name for file in path.parent.glob("*.y*ml")]
        near = suggest(path.name, [*neighbours, *shipped])
        raise SpecError(f"{name}: no such file; {near} (`heatcheck init {path.name}` writes one to start from)")
    raise SpecError(f"no spec named {name!r}; {suggest(name, shipped)}")


def checked(model: type[Model], values: object, where: str, also: tuple[str, ...] = ()) -> Model:
    """The values as that model, or one sentence on what is wrong with them; `also` are further keys to suggest."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise SpecError(f"{where}: {_first_problem(error, model, also)}") from error


def _first_problem(error: ValidationError, model: type[BaseModel], also: tuple[str, ...]) -> str:
    # an unknown key is most likely the misspelt one that another error calls missing
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    keys = [str(part) for part in problem["loc"]]
    key = ".".join(keys)
    if problem["type"] == "extra_forbidden":
        known = [*_fields_at(model, keys[:-1]), *(also if len(keys) == 1 else ())]
        return f"unknown key {key!r}; {suggest(keys[-1], known)}"
    if problem["type"] == "missing":
        return f"{key!r} is missing; add it"
    message = problem["msg"].removeprefix("Value error, ")
    plain = isinstance(problem["input"], str | int | float | bool | list | tuple | None)
    got = f", got {problem['input']!r}" if plain else ""  # a mapping is in the spec, and too long for a sentence
    return f"{key!r}: {message}{got}" if key else message


def _fields_at(model: type[BaseModel], keys: list[str]) -> list[str]:
    for key in keys:
        field = model.model_fields.get(key)
        model = (_model_in(field.annotation) if field else None) or model
    return list(model.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model in a type such as `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
