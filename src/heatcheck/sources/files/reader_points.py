"""Readers' most representative points, from a CSV or, of a single reader, from JSON."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import Point
from heatcheck.sources.files.annotations import read_points
from heatcheck.sources.files.tables import read_csv

PointRow = tuple[str, str, str, str, Point]  # where it is (for errors), reader, image, finding and point


def point_rows(path: Path, readers: Sequence[str]) -> Iterator[PointRow]:
    """The points of a file, whose format its ending says."""
    return _in_json(path, readers) if path.suffix.lower() == ".json" else _in_csv(path)


def _in_json(path: Path, readers: Sequence[str]) -> Iterator[PointRow]:
    """The points of a JSON file, which belong to the only reader."""
    if len(readers) != 1:
        raise SpecError(f"{path} holds one reader's points; name one reader, or give a CSV with a column 'reader'")
    for image, by_finding in read_points(path).items():
        for finding, positions in by_finding.items():
            for x, y in positions:
                yield f"{path}, image {image}", readers[0], image, finding, Point((y, x))


def _in_csv(path: Path) -> Iterator[PointRow]:
    header, rows = read_csv(path)
    for column in ("reader", "image", "finding", "x", "y"):
        if column not in header:
            raise SpecError(f"{path} has no column {column!r}; its columns are {', '.join(header)}")
    for number, row in rows.items():
        where = f"{path}, line {number}"
        yield where, row["reader"], row["image"].strip(), canonical(row["finding"]), _point(row, where)


def _point(row: Mapping[str, str], where: str) -> Point:
    try:
        position = float(row["y"]), float(row["x"])
    except ValueError:
        position = math.nan, math.nan
    if not all(map(math.isfinite, position)):
        raise InputError(f"{where}: x and y must be numbers; correct them")
    return Point(position)
