"""The methods that a spec lists, by name or with settings."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from heatcheck.core.contracts import Method
from heatcheck.core.errors import SpecError
from heatcheck.core.lists import listed
from heatcheck.methods import build_method


def _by_name(value: object) -> object:
    """One method or several, with names as mappings without settings; anything else stays as it is."""
    several = listed(value)
    if not isinstance(several, list | tuple):
        return several
    return [{"name": item} if isinstance(item, str) else item for item in several]


MethodParts = Annotated[tuple[dict[str, Any], ...], BeforeValidator(_by_name)]


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
