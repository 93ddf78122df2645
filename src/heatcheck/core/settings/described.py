"""Settings in words: the fields of a dataclass or model with type, default and the comment that stands beside them."""

import ast
import dataclasses
import inspect
import io
import textwrap
import tokenize
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from heatcheck.core.settings.meanings import USUAL

REQUIRED = "required"
AUTOMATIC = "automatic"
_WORDS: tuple[tuple[object, str], ...] = (
    (dataclasses.MISSING, REQUIRED),
    (None, AUTOMATIC),
    ("", AUTOMATIC),
    ((), "none"),
    ({}, "none"),
)
_PLAIN: dict[object, str] = {int: "whole number", float: "number", bool: "yes or no", str: "text", Any: "anything"}
_BOUNDS = {"ge": "from {}", "gt": "above {}", "le": "to {}", "lt": "below {}"}


@dataclasses.dataclass(frozen=True, slots=True)
class Described:
    """One setting."""

    name: str
    takes: str  # its type in words
    default: str
    meaning: str
    parts: tuple[type[Any], ...] = ()  # the classes of its own settings


def described(settings: type[Any]) -> Iterator[Described]:
    """Every setting of a class."""
    meanings = comments_of(settings)
    for name, annotation, default in _fields(settings):
        meaning = meanings.get(name) or USUAL.get(f"{settings.__name__}.{name}") or USUAL.get(name, "")
        takes, parts = type_in_words(annotation), parts_in(annotation)
        is_left_out = default is None and (parts or "mapping" in takes or "path" in takes)
        yield Described(name, takes, "none" if is_left_out else default_in_words(default), meaning, parts)


def parts_in(annotation: object) -> tuple[type[Any], ...]:
    """The classes of settings in a type such as `Settings | None` or `tuple[Settings, ...]`."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)):
        return (annotation,)
    return tuple(part for inner in get_args(annotation) for part in parts_in(inner))


def _fields(settings: type[Any]) -> Iterator[tuple[str, object, object]]:
    """Name, annotation and default of each field that a spec may set."""
    if issubclass(settings, BaseModel):
        hints = get_type_hints(settings, include_extras=True)
        for name, field in settings.model_fields.items():
            bounds = tuple(field.metadata)
            annotation = Annotated[hints[name], *bounds] if bounds else hints[name]
            default = dataclasses.MISSING if field.is_required() else field.get_default(call_default_factory=True)
            yield name, annotation, default
        return
    hints = get_type_hints(settings, include_extras=True)
    for one in dataclasses.fields(settings):
        if one.init and not one.metadata.get("from_study"):
            yield one.name, hints[one.name], _default_of(one)


def _default_of(one: "dataclasses.Field[Any]") -> object:
    if one.default_factory is not dataclasses.MISSING:
        return one.default_factory()
    return one.default


def type_in_words(annotation: object) -> str:
    """A type in words, such as "number from 0 to 1" or "list of text"."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return " ".join(filter(None, (type_in_words(parts[0]), _bounds(parts[1:]))))
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in {Union, types.UnionType}:
        return " or ".join(dict.fromkeys(type_in_words(part) for part in parts if part is not types.NoneType))
    if origin in {tuple, list, frozenset, set}:
        return _list_of(parts)
    if origin in {dict, Mapping} or (origin is not None and issubclass(origin, Mapping)):
        return "mapping"
    return _class_in_words(annotation)


def _list_of(parts: tuple[object, ...]) -> str:
    if len(parts) == 2 and parts[1] is not Ellipsis:
        return f"two values, each {type_in_words(parts[0])}"
    return f"list of {type_in_words(parts[0])}"


def _class_in_words(annotation: object) -> str:
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if parts_in(annotation):
        return "settings"
    return "mapping" if annotation in {dict, Mapping} else str(getattr(annotation, "__name__", annotation)).lower()


def _bounds(metadata: tuple[object, ...]) -> str:
    found = [
        words.format(f"{value:g}") for each in _constraints(metadata) for name, words in _BOUNDS.items()
        if (value := getattr(each, name, None)) is not None
    ]  # fmt: skip
    return " ".join(dict.fromkeys(found))


def _constraints(metadata: tuple[object, ...]) -> Iterator[object]:
    """The constraints, also those within a pydantic field."""
    for each in metadata:
        yield each
        yield from getattr(each, "metadata", ())


def default_in_words(value: object) -> str:
    """A default as a spec would write it; what is found from model or data is automatic."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return _changes(value)
    if isinstance(value, tuple | list) and value:
        return f"[{', '.join(default_in_words(part) for part in value)}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return next((word for meant, word in _WORDS if type(meant) is type(value) and meant == value), str(value))


def _changes(value: Any) -> str:  # noqa: ANN401 - any class of settings
    """What differs from the defaults of its class."""
    usual = {name: default for name, _, default in _fields(type(value))}
    changed = {name: getattr(value, name) for name in usual if getattr(value, name) != usual[name]}
    return ", ".join(f"{name}: {default_in_words(inner)}" for name, inner in changed.items()) or "its defaults"


def comments_of(settings: type[Any]) -> dict[str, str]:
    """The comment beside each field, of the class and of those that it extends."""
    found: dict[str, str] = {}
    for one in reversed(settings.__mro__):
        if one.__module__.startswith(("builtins", "pydantic", "abc", "typing")):
            continue
        try:
            found |= _comments_in(textwrap.dedent(inspect.getsource(one)))
        except (OSError, TypeError):  # a class that was not written in a file
            continue
    return found


def _comments_in(source: str) -> dict[str, str]:
    """The first comment within the lines of each field."""
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith(("# fmt", "# noqa", "# type"))
    }
    (tree,) = ast.parse(source).body
    fields = [node for node in ast.iter_child_nodes(tree) if isinstance(node, ast.AnnAssign)]
    return {
        node.target.id: comments[line]
        for node in fields
        if isinstance(node.target, ast.Name)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if line in comments
    }
