"""The methods that a spec lists, by name or with settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from heatcheck.core.contracts import Method
from heatcheck.core.errors import SpecError
from heatcheck.methods import build_method


def by_name(value: object) -> object:
    """The list with names of methods as mappings without settings; anything else stays as it is."""
    if not isinstance(value, list | tuple):
        return value
    return [{"name": item} if isinstance(item, str) else item for item in value]


def built_methods(parts: Sequence[Mapping[str, Any]], where: str, besides: Sequence[str] = ()) -> dict[str, Method]:
    """The methods with their settings, in order; `besides` are keys that the study itself uses."""
    methods: dict[str, Method] = {}
    for part in parts:
        if not isinstance(part.get("name"), str):
            raise SpecError(f"{where}: each of `methods` must be a name, or a mapping with a `name` and settings")
        if part["name"] in methods:
            raise SpecError(f"{where}: method {part['name']!r} is named twice; remove one")
        settings = {key: value for key, value in part.items() if key not in {"name", *besides}}
        methods[part["name"]] = build_method(part["name"], settings)
    return methods
