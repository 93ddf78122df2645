"""Text for a terminal: lines no wider than it, in which no word is divided, and columns."""

import shutil
import textwrap
from collections.abc import Iterator, Sequence

_WIDEST = 100  # a longer line is hard to read
_NARROWEST = 40


def width() -> int:
    """The characters of a line: those of the terminal, within what can be read."""
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))


def wrapped(text: str, room: int, *, first: str = "", other: str = "") -> list[str]:
    """The text in lines that begin with `first` and `other`; only a word longer than a line makes a longer line."""
    return textwrap.wrap(
        text, room, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows with their cells below one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        yield "  ".join(map(str.ljust, cells, widths)).rstrip()
