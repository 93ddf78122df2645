"""Tables as CSV inside the page, and how many bytes of pictures a page may carry beside them."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from heatcheck.report.evidence import Evidence

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


PICTURES = 9_000_000  # bytes of pictures in the page
TEXT_AND_PICTURES = 13_500_000  # with the embedded tables
TEXT_PER_ESTIMATE = 120  # bytes of tables and plots, about


def room_for_pictures(evidence: Evidence, files: Sequence[Download]) -> int:
    """The bytes that pictures may take beside these downloads and the run's tables and plots."""
    text = TEXT_PER_ESTIMATE * len(evidence.run.estimates)
    room = TEXT_AND_PICTURES - text - sum(len(file.uri) for file in files)
    return int(max(0, min(PICTURES, room)))
