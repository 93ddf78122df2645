"""A run's scores as tables: read with the seed or fold as a column, split by condition, and pivoted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int

from heatcheck.core.records import Score
from heatcheck.core.vocabulary import condition_of, facts_of
from heatcheck.runs.tables import read_batches


def read_scores(
    folder: Path, words: Sequence[str], wanted: Sequence[tuple[str, str, object]], part: str, absent: int = 0
) -> pd.DataFrame:
    """The wanted rows of a folder's scores: some words, the value, a numbered part of the condition, and its rest.

    The part, "seed" or "fold", becomes a column of its own, with the number `absent` where a condition does not have
    it; the column `condition` is what else the condition says. A folder without scores has no rows.
    """
    file, words = folder / "scores.parquet", [*words, "condition"]
    batches = list(read_batches(file, Score, [*words, "value"], wanted)) if file.exists() else []
    if not batches:
        return pd.DataFrame(columns=[*words, "value", part]).astype({"value": float, part: int})
    table = pa.Table.from_batches(batches).unify_dictionaries().to_pandas()
    numbers, rest = {}, {}
    for at in table["condition"].cat.categories:
        facts: dict[str, Any] = dict(facts_of(str(at)))
        numbers[at], rest[at] = int(facts.pop(part, absent)), condition_of(facts)
    under = table["condition"]
    # categories would make every combination of a pivot, whether it was scored or not
    plain = table.astype(dict.fromkeys(words, object))
    return plain.assign(**{part: under.map(numbers).astype(int), "condition": under.map(rest).astype(object)})


def by_condition(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each condition, in the order of their text."""
    return {str(at): rows for at, rows in table.groupby("condition", sort=True)}


def pivoted(
    table: pd.DataFrame, index: Sequence[str], columns: str | Sequence[str], values: str = "value"
) -> pd.DataFrame:
    """The values with a row for each combination of `index` and a column for each of `columns`, NaN where none is."""
    named = columns if isinstance(columns, str) else list(columns)
    # a pivot refuses two rows for one cell, of which a pivot table would make a mean
    return table.pivot(index=list(index), columns=named, values=values)  # noqa: PD010


def reasons_by_count(table: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Why values are undefined: each combination of the columns with a reason at its end, the commonest last."""
    undefined = table[table["value"].isna() & (table["reason"] != "")]
    counts = undefined.groupby([*columns, "reason"], sort=True).size().sort_values(kind="stable")
    return [tuple(map(str, key)) for key in counts.index]


def positions(names: pd.Series, known: Sequence[str]) -> Int[np.ndarray, " rows"]:
    """The position of each row's name among the known ones, −1 for any other."""
    words = names.astype("category")
    return np.asarray(pd.Index(known).get_indexer(words.cat.categories)[words.cat.codes])
