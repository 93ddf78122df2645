"""Open the source a spec names."""

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heatcheck.core.contracts import Source
from heatcheck.core.errors import SpecError
from heatcheck.runs.spec import checked
from heatcheck.sources import SOURCES


def open_source(part: Mapping[str, Any], folder: Path, where: str) -> Source:
    """The source described by a mapping of `name` and settings; relative paths start at `folder`."""
    if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
        raise SpecError(f"{where}: a source needs a `name`; choose one of {', '.join(SOURCES)}")
    facts = SOURCES[part["name"]]
    settings = checked(facts.settings, {k: v for k, v in part.items() if k != "name"}, f"{where}, source {facts.name}")
    try:
        return facts.open(settings.resolved(folder))
    except ValueError as error:
        raise SpecError(f"{where}: {error}") from error


def cautions_of(sources: Iterable[Source], *, named: bool = True) -> tuple[str, ...]:
    """What the sources say before the work begins, each sentence once; a source without `cautions` says nothing.

    Where cases may not be named, `named=False` goes to every source whose `cautions` takes it.
    """
    said: list[str] = []
    for source in sources:
        cautions = getattr(source, "cautions", None)
        if cautions is not None:
            names = not named and "named" in inspect.signature(cautions).parameters
            said += cautions(named=False) if names else cautions()
    return tuple(dict.fromkeys(said))
