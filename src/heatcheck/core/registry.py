"""One read-only mapping from names to parts; every list a user sees is read from one of these."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from heatcheck.core.errors import UnknownNameError

Part = TypeVar("Part")


class Registry(Mapping[str, Part], Generic[Part]):
    """Named parts of one kind; adding a name twice is an error, asking for an unknown one suggests a near name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}

    def add(self, name: str, part: Part) -> Part:
        """The same part, now registered under `name`."""
        if name in self._parts:
            raise ValueError(f"{self.kind} {name!r} is registered twice; give one of them another name")
        self._parts[name] = part
        return part

    def __getitem__(self, name: str) -> Part:
        try:
            return self._parts[name]
        except KeyError:
            raise UnknownNameError(f"unknown {self.kind} {name!r}; {suggest(name, self._parts)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._parts))

    def __len__(self) -> int:
        return len(self._parts)


def suggest(name: str, known: Iterable[str]) -> str:
    """A phrase that names the nearest known word, or all of them when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names) or 'none'}"
