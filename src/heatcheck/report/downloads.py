"""Tables as CSV inside the page: a link each, which works offline and without a script."""

import base64
from dataclasses import dataclass

import pandas as pd

LARGEST = 4_000_000  # bytes of one embedded table


@dataclass(frozen=True, slots=True)
class Download:
    """A table to save; `uri` is empty when it was too large to travel with the page."""

    name: str
    about: str
    rows: int
    uri: str


def download(name: str, about: str, table: pd.DataFrame) -> Download:
    """The table as a CSV link."""
    content = base64.b64encode(table.to_csv(index=False).encode()).decode()
    uri = f"data:text/csv;charset=utf-8;base64,{content}" if len(content) <= LARGEST else ""
    return Download(name, about, len(table), uri)
