"""The scores of a run as tables: read with the seed or fold as a column, split by condition, and pivoted."""

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
    """The scores of a folder that match the filters `wanted`, with the columns `words`, condition, value and `part`.

    `part`, "seed" or "fold", is taken out of the condition and becomes a column; it is `absent` if a condition does
    not have it. A folder without scores has no rows.
    """
    file, words = folder / "scores.parquet", [*words, "condition"]
    batches = list(read_batches(file, Score, [*words, "value"], wanted)) if file.exists() else []
    if not batches:
        return pd.DataFrame(columns=[*words, "value", part]).astype({"value": float, part: int})
    table = pa.Table.from_batches(batches).unify_dictionaries().to_pandas()
    numbers, rest = {}, {}
    conditions = table["condition"]
    for text in conditions.cat.categories:
        facts: dict[str, Any] = dict(facts_of(str(text)))
        numbers[text], rest[text] = int(facts.pop(part, absent)), condition_of(facts)
    # a pivot of categories would have a row for every combination, scored or not
    plain = table.astype(dict.fromkeys(words, object))
    return plain.assign(**{part: conditions.map(numbers).astype(int), "condition": conditions.map(rest).astype(object)})


def by_condition(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each condition, sorted by its text."""
    return {str(text): rows for text, rows in table.groupby("condition", sort=True)}


def pivoted(
    table: pd.DataFrame, index: Sequence[str], columns: str | Sequence[str], values: str = "value"
) -> pd.DataFrame:
    """The values with one row per combination of `index` and one column per `columns`, NaN if missing."""
    listed = columns if isinstance(columns, str) else list(columns)
    # a pivot refuses two rows for one cell; a pivot table would average them
    return table.pivot(index=list(index), columns=listed, values=values)  # noqa: PD010


def reasons_by_count(table: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Why values are undefined: each combination of the columns and a reason, the most common last."""
    undefined = table[table["value"].isna() & (table["reason"] != "")]
    counts = undefined.groupby([*columns, "reason"], sort=True).size().sort_values(kind="stable")
    return [tuple(map(str, key)) for key in counts.index]


def positions(names: pd.Series, known: Sequence[str]) -> Int[np.ndarray, " rows"]:
    """The position of each row's name among the known ones, −1 for any other."""
    words = names.astype("category")
    return np.asarray(pd.Index(known).get_indexer(words.cat.categories)[words.cat.codes])
