"""The index of a run's gallery: entries are written and read as the study's own record.

A field whose default is None is left out of the file where it is None. Any other field is always written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

Entry = TypeVar("Entry")


def index_of(entries: Iterable[object]) -> dict[str, Any]:
    """The index that holds these entries, as JSON has it."""
    return {"items": [_written(entry) for entry in entries]}


def items_of(index: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The entries of an index as they stand in the file; none where the run has no gallery."""
    items: Sequence[Mapping[str, Any]] = index.get("items", [])
    return items


def read_entry(record: type[Entry], item: Mapping[str, Any]) -> Entry:
    """An entry of the index as the record that wrote it.

    Raises:
        ValueError: a field is missing or is not of its type.
    """
    return _adapter(record).validate_python(item)  # type: ignore[arg-type]


@cache
def _adapter(record: type[Entry]) -> TypeAdapter[Entry]:
    return TypeAdapter(record)


def _written(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if is_dataclass(value):
        named = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _written(each) for field, each in named if each is not None or field.default is not None}
    return [_written(each) for each in value] if isinstance(value, list | tuple) else value
