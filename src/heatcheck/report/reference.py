"""Published tables that come with the package, as they were printed."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def rows(table: str) -> tuple[Mapping[str, str], ...]:
    """The rows of one table, words as in the file."""
    file = resources.files("heatcheck") / "reference" / f"{table}.csv"
    return tuple(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
