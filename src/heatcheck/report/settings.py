"""The settings of methods in words: all that were in force, and those that are not the usual ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from heatcheck.runs.manifest import SettingEntry

_UNSEEN = {"max_batch"}  # changes no map


def in_force(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Each setting with its value, such as "20 steps" or "window 16", numbers of things first."""
    seen = [(name, value) for name, value in settings.items() if name not in _UNSEEN]
    return tuple(_said(*each) for each in sorted(seen, key=lambda each: not _is_count(*each)))


def in_words(changed: Sequence[SettingEntry]) -> tuple[str, ...]:
    """Each changed setting with the usual value, such as "100 samples (usual: 500)"."""
    return tuple(words for each in changed for words in _setting(each.name, each.value, each.usual))


def is_smaller(changed: Sequence[SettingEntry]) -> bool:
    """Whether some number is below the usual one, which saves time."""
    return any(a < b for each in changed for _, a, b in _numbers("", each.value, each.usual))


def _numbers(name: str, value: Any, usual: Any) -> list[tuple[str, float, float]]:  # noqa: ANN401 - any setting
    if isinstance(value, Mapping) and isinstance(usual, Mapping):
        return [pair for key in value if key in usual for pair in _numbers(key, value[key], usual[key])]
    number = isinstance(value, int | float) and isinstance(usual, int | float) and not isinstance(value, bool)
    return [(name, value, usual)] if number else []


def _setting(name: str, value: Any, usual: Any) -> list[str]:  # noqa: ANN401 - any setting
    if isinstance(value, Mapping) and isinstance(usual, Mapping) and value.get("kind") == usual.get("kind"):
        inner = [
            words
            for key in value
            if value[key] != usual.get(key)
            for words in _setting(key, value[key], usual.get(key))
        ]
        return [f"{_plain(name)}: {words}" for words in inner]
    return [f"{_said(name, value, in_full=False)} (usual: {_in_words(usual)})"]


def _said(name: str, value: Any, *, in_full: bool = True) -> str:  # noqa: ANN401 - any setting
    if _is_count(name, value):
        return f"{value:,} {_plain(name)}"
    if isinstance(value, Mapping) and in_full and value.get("kind"):
        inner = [_said(key, each) for key, each in value.items() if key != "kind"]
        return f"{_plain(name)} {value['kind']}" + (f" ({', '.join(inner)})" if inner else "")
    return f"{_plain(name)} {_in_words(value)}"


def _is_count(name: str, value: Any) -> bool:  # noqa: ANN401 - any setting
    """Whether it is a number of such things."""
    return isinstance(value, int) and not isinstance(value, bool) and name.endswith("s")


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _in_words(value: Any) -> str:  # noqa: ANN401 - any setting
    if isinstance(value, Mapping):
        return str(value.get("kind") or ", ".join(f"{key} {_in_words(inner)}" for key, inner in value.items()))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "automatic"
    return f"{value:,}" if isinstance(value, int) else str(value) or "automatic"
