"""Settings in which a method differs from its usual ones, as words."""

from collections.abc import Mapping, Sequence
from typing import Any


def in_words(changed: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Each changed setting with what is usual, such as "100 samples (usual: 500)"."""
    return tuple(words for each in changed for words in _setting(str(each["name"]), each["value"], each["usual"]))


def is_smaller(changed: Sequence[Mapping[str, Any]]) -> bool:
    """Whether some number is below the usual one: what is done to save time."""
    return any(a < b for each in changed for _, a, b in _numbers("", each["value"], each["usual"]))


def _numbers(name: str, value: Any, usual: Any) -> list[tuple[str, float, float]]:  # noqa: ANN401 - any setting
    if isinstance(value, Mapping) and isinstance(usual, Mapping):
        return [pair for key in value if key in usual for pair in _numbers(key, value[key], usual[key])]
    number = isinstance(value, int | float) and isinstance(usual, int | float) and not isinstance(value, bool)
    return [(name, value, usual)] if number else []


def _setting(name: str, value: Any, usual: Any) -> list[str]:  # noqa: ANN401 - any setting
    plain = name.replace("_", " ")
    if isinstance(value, Mapping) and isinstance(usual, Mapping) and value.get("kind") == usual.get("kind"):
        inner = [
            words for key in value if value[key] != usual.get(key) for words in _setting(key, value[key], usual[key])
        ]
        return [f"{plain}: {words}" for words in inner]
    if isinstance(value, int) and not isinstance(value, bool):
        return [f"{value:,} {plain} (usual: {_told(usual)})"]
    return [f"{plain} {_told(value)} (usual: {_told(usual)})"]


def _told(value: Any) -> str:  # noqa: ANN401 - any setting
    if isinstance(value, Mapping):
        return str(value.get("kind") or ", ".join(f"{key} {_told(inner)}" for key, inner in value.items()))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value) or "automatic"
