"""Text for a terminal: lines no wider than it, in which no word is divided, and columns."""

import json
import math
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence

_WIDEST = 100  # a longer line is hard to read
_NARROWEST = 40
MISSING = "–"  # instead of a number that is undefined


def width() -> int:
    """The characters of a line: those of the terminal, within what can be read."""
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))


def wrapped(text: str, room: int, *, first: str = "", other: str = "") -> list[str]:
    """The text in lines that begin with `first` and `other`; only a word longer than a line makes a longer line."""
    return textwrap.wrap(
        text, room, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )


def decimals(value: float, places: int, *, signed: bool = False) -> str:
    """The value with so many decimals; a dash where it is undefined."""
    if math.isnan(value):
        return MISSING
    return f"{value:+.{places}f}" if signed else f"{value:.{places}f}"


def json_text(value: object) -> str:
    """The value as JSON, which has no word for undefined numbers: they are null."""
    return json.dumps(_without_nan(value), indent=1, allow_nan=False)


def _without_nan(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows with their cells below one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        yield "  ".join(map(str.ljust, cells, widths)).rstrip()
