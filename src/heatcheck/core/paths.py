"""Absolute paths say who works where; what travels must not carry them."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

_WHOLE = re.compile(r"(?:file:/+|~?/|[A-Za-z]:[\\/]|\\\\)[^\n]*")
_QUOTED = re.compile(r"(?P<quote>['\"`])(?P<path>(?:file:/+|~?/|[A-Za-z]:[\\/]|\\\\)[^'\"`\n]+)(?P=quote)")
_LOOSE = re.compile(r"(?:file:/+|(?<![\w./<~…])~?/(?!/)|(?<!\w)[A-Za-z]:[\\/](?!/)|\\\\)[^\s'\"`,;:()<>]+")


def last_name(path: str) -> str:
    """The path's last name behind three dots."""
    flavour = PureWindowsPath if "\\" in path or re.match(r"[A-Za-z]:", path) else PurePosixPath
    return f"…/{flavour(path).name}"


def without_paths(value: Any, shown: Callable[[str], str] = last_name) -> Any:  # noqa: ANN401 - any JSON value
    """The same JSON value, every absolute path in its strings replaced by what `shown` makes of it."""
    if isinstance(value, str):
        return text_without_paths(value, shown)
    if isinstance(value, Mapping):
        return {key: without_paths(inner, shown) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(inner, shown) for inner in value]
    return value


def text_without_paths(text: str, shown: Callable[[str], str] = last_name) -> str:
    """The text, every absolute path in it replaced by what `shown` makes of it."""
    if "/" not in text and "\\" not in text:
        return text
    if _WHOLE.fullmatch(text) and _looks_like_one_path(text):
        return shown(text)
    text = text.replace(str(Path.home()) + "/", "/~/")  # a home folder may hold spaces
    text = _QUOTED.sub(lambda match: match["quote"] + shown(match["path"]) + match["quote"], text)
    return _LOOSE.sub(lambda match: shown(match[0]), text)


def _looks_like_one_path(text: str) -> bool:
    """Whether the text is one path rather than a sentence that begins with one."""
    return not re.search(r"[:;,]\s|\s/|\.\s|\s(?:is|has|was|cannot|does|not)\s", text)
