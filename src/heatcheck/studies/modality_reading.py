"""The tables of a modality run as estimates need them: a row for each case of a fold."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from heatcheck.core.records import Score, condition, facts_of
from heatcheck.runs.tables import read_batches

KEYS = ["fold", "case", "patient"]
_WORDS = ["case", "patient", "finding", "method", "metric", "condition", "reason"]


def read_scores(folder: Path, metrics: Sequence[str], model: str) -> pd.DataFrame:
    """The rows of these metrics, with the fold and the rest of the condition (`at`) as columns of their own."""
    path = folder / "scores.parquet"
    wanted = [("metric", "in", list(metrics)), ("model", "==", model)]
    batches = list(read_batches(path, Score, [*_WORDS, "value"], wanted)) if path.exists() else []
    if not batches:
        return pd.DataFrame(columns=[*_WORDS, "value", "fold", "at"]).astype({"value": float, "fold": int})
    table = pa.Table.from_batches(batches).unify_dictionaries().to_pandas()
    folds: dict[str, int] = {}
    rest: dict[str, str] = {}
    for under in table["condition"].cat.categories:
        facts = dict(facts_of(str(under)))
        folds[under] = int(facts.pop("fold", 1))
        rest[under] = condition(**facts)
    codes = table["condition"]
    # categories would make every combination of a pivot, whether it was scored or not
    plain = table.astype(dict.fromkeys(_WORDS, object))
    return plain.assign(fold=codes.map(folds).astype(int), at=codes.map(rest).astype(object))


def wide(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A row for each case of a fold and a column for each combination of the named columns that was scored."""
    # a pivot refuses two rows for one place, of which a pivot table would make a mean
    return table.pivot(index=KEYS, columns=list(columns), values="value")  # noqa: PD010


def commonest_reasons(table: pd.DataFrame, columns: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Why values are undefined, by the named columns: the commonest reason."""
    undefined = table[table["value"].isna() & (table["reason"] != "")]
    counts = undefined.groupby([*columns, "reason"], sort=True).size().sort_values(kind="stable")
    return {tuple(key[:-1]): str(key[-1]) for key in counts.index}
