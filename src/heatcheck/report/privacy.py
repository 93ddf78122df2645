"""Absolute paths say who works where; a report that travels must not carry them."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pandas as pd

from heatcheck.runs.store import Run

_WHOLE = re.compile(r"(?:file:/+|~?/|[A-Za-z]:[\\/]|\\\\)[^\n]*")
_QUOTED = re.compile(r"(?P<quote>['\"`])(?P<path>(?:file:/+|~?/|[A-Za-z]:[\\/]|\\\\)[^'\"`\n]+)(?P=quote)")
_LOOSE = re.compile(r"(?:file:/+|(?<![\w./<~…])~?/(?!/)|(?<!\w)[A-Za-z]:[\\/](?!/)|\\\\)[^\s'\"`,;:()<>]+")
_TEXT_COLUMNS = ("case", "reason", "family", "stage")


def run_without_paths(run: Run) -> Run:
    """The run with every absolute path in its words cut down to the last name, in tables when they are read."""
    return replace(
        run,
        manifest=without_paths(run.manifest),
        gallery=without_paths(run.gallery),
        shown=_clean_table,
    )


def without_paths(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same JSON value, absolute paths in its strings replaced by "…/name"."""
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, Mapping):
        return {key: without_paths(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(inner) for inner in value]
    return value


def _clean_table(table: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in _TEXT_COLUMNS if name in table.columns]
    new = {}
    for name in columns:
        words = table[name].unique()
        cleaned = {word: _clean_text(word) for word in words if isinstance(word, str)}
        if any(before != after for before, after in cleaned.items()):
            new[name] = table[name].map(cleaned)
    return table.assign(**new)


def _clean_text(text: str) -> str:
    if "/" not in text and "\\" not in text:
        return text
    if _WHOLE.fullmatch(text) and _looks_like_one_path(text):
        return _last_name(text)
    text = text.replace(str(Path.home()) + "/", "/~/")  # a home folder may hold spaces
    text = _QUOTED.sub(lambda found: found["quote"] + _last_name(found["path"]) + found["quote"], text)
    return _LOOSE.sub(lambda found: _last_name(found[0]), text)


def _looks_like_one_path(text: str) -> bool:
    """Whether the text is one path rather than a sentence that begins with one."""
    return not re.search(r"[:;,]\s|\s/|\.\s|\s(?:is|has|was|cannot|does|not)\s", text)


def _last_name(path: str) -> str:
    flavour = PureWindowsPath if "\\" in path or re.match(r"[A-Za-z]:", path) else PurePosixPath
    return f"…/{flavour(path).name}"
