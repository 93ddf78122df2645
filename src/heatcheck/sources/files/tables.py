"""Reads CSV files; every problem becomes one sentence that names file and line."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heatcheck.core.errors import InputError

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
Rows = Iterator[tuple[int, list[str]]]  # line number and cells of each row


@contextmanager
def csv_rows(path: Path) -> Iterator[tuple[list[str], Rows]]:
    """The header of a CSV file and its rows, one at a time; blank lines are left out."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, strict=True)
            header = [name.strip() for name in next(lines, [])]
            if not header:
                raise InputError(f"{path} is empty; export it again")
            if len(header) == 1 and (mark := next((mark for mark in _SEPARATORS if mark in header[0]), None)):
                raise InputError(
                    f"{path} separates its columns by {_SEPARATORS[mark]}, not commas; save it with commas"
                )
            if "" in header or len(set(header)) < len(header):
                names = ", ".join(header)
                raise InputError(f"{path}: column names must be unique and not empty, got {names}; rename them")
            yield header, ((lines.line_num, _checked(row, len(header), path, lines.line_num)) for row in lines if row)
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path} is not a readable CSV file ({error}); export it again as UTF-8") from error


def _checked(row: list[str], cells: int, path: Path, line: int) -> list[str]:
    if len(row) != cells:
        raise InputError(
            f"{path}, line {line}: another number of cells than the header ({len(row)}, not {cells}); correct the line"
        )
    return row


def read_csv(path: Path) -> tuple[list[str], dict[int, dict[str, str]]]:
    """The header of a CSV file, and its rows by their line numbers."""
    with csv_rows(path) as (header, rows):
        return header, {line: dict(zip(header, cells, strict=True)) for line, cells in rows}
