"""Tables as CSV inside the page or beside it, and how many bytes of pictures a page may carry with them."""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heatcheck.core.atomic_files import replaced
from heatcheck.report.evidence import Evidence

LARGEST = 4_000_000  # bytes of one embedded table
Pieces = Callable[[], Iterable[str]]  # the text of a file, made anew at each call


@dataclass(frozen=True, slots=True)
class Download:
    """A table to save; `uri` is empty when it was too large to travel with the page, and then lies beside it."""

    name: str
    about: str
    rows: int
    uri: str
    pieces: Pieces | None = None  # of a table that is too large for the page


def download(name: str, about: str, table: pd.DataFrame) -> Download:
    """The table as a CSV link."""
    return piecewise(name, about, lambda: (table.to_csv(index=False),), LARGEST, rows=len(table))


def piecewise(name: str, about: str, pieces: Pieces, largest: int, rows: int | None = None) -> Download:
    """A table that is written piece by piece, as a CSV link unless its link is longer than `largest`.

    Without `rows`, lines are counted.
    """
    kept: list[bytes] = []
    size = lines = 0
    for piece in pieces():
        content = piece.encode()
        size, lines = size + len(content), lines + content.count(b"\n")
        kept.append(content)
        if size * 4 / 3 > largest:
            kept.clear()
    n = max(0, lines - 1) if rows is None else rows
    if size * 4 / 3 > largest:
        return Download(name, about, n, "", pieces)
    return Download(name, about, n, f"data:text/csv;charset=utf-8;base64,{base64.b64encode(b''.join(kept)).decode()}")


def write_beside(files: Sequence[Download], folder: Path) -> None:
    """Write the tables that are too large for the page into the folder that holds it."""
    for file in files:
        if file.pieces is None:
            continue
        with replaced(folder / file.name) as temporary, temporary.open("w", encoding="utf-8", newline="") as opened:
            opened.writelines(file.pieces())


PICTURES = 9_000_000  # bytes of pictures in the page
TEXT_AND_PICTURES = 13_500_000  # with the embedded tables
TEXT_PER_ESTIMATE = 120  # bytes of tables and plots, about


def room_for_pictures(evidence: Evidence, files: Sequence[Download]) -> int:
    """The bytes that pictures may take beside these downloads and the run's tables and plots."""
    text = TEXT_PER_ESTIMATE * len(evidence.run.estimates)
    room = TEXT_AND_PICTURES - text - sum(len(file.uri) for file in files)
    return int(max(0, min(PICTURES, room)))
