"""Reading a CSV file; whatever is wrong with it becomes one sentence that names file and line."""

import csv
from pathlib import Path

from heatcheck.core.errors import InputError


def read_csv(path: Path) -> tuple[list[str], dict[int, dict[str, str]]]:
    """The header of a CSV file, and its rows by their line numbers."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            header = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = header
            rows = {reader.line_num: row for row in reader}  # noqa: B035 - it moves on with every row
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path} is not a readable CSV file ({error}); export it again as UTF-8") from error
    if "" in header or len(set(header)) < len(header):
        raise InputError(f"{path}: two columns have one name, or one has none ({', '.join(header)}); rename it")
    ragged = next((n for n, row in rows.items() if None in row or None in row.values()), None)
    if ragged is not None:
        raise InputError(f"{path}, line {ragged}: another number of cells than the header; correct the line")
    return header, rows
