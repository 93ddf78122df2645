"""Reports contain no absolute paths, because they are passed on."""

from dataclasses import replace

import pandas as pd

from heatcheck.core.paths import text_without_paths, without_paths
from heatcheck.runs.store import Run

_TEXT_COLUMNS = ("case", "reason", "family", "stage")


def run_without_paths(run: Run) -> Run:
    """The run with every absolute path shortened to its last name, in tables when they are read."""
    return replace(
        run,
        manifest=without_paths(run.manifest),
        gallery=without_paths(run.gallery),
        shown=_clean_table,
    )


def _clean_table(table: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in _TEXT_COLUMNS if name in table.columns]
    new = {}
    for name in columns:
        words = table[name].unique()
        cleaned = {word: text_without_paths(word) for word in words if isinstance(word, str)}
        if any(before != after for before, after in cleaned.items()):
            new[name] = table[name].map(cleaned)
    return table.assign(**new)
