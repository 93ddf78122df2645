"""The scores of an alignment run, one metric at a time: a row for each image of a network, a column for each pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Score, condition, facts_of
from heatcheck.runs.tables import read_batches

KEYS = ["finding", "seed", "case", "patient"]  # an image of a network; what was not trained has seed 0
NO_SCORES = "no scores"

Column = tuple[str, str]  # model and method
Reasons = Mapping[tuple[str, str, str], str]  # by model, method and finding


@dataclass(frozen=True)
class Wide:
    """Values by image and pair of model and method, and why some pairs have none."""

    table: pd.DataFrame  # the index is KEYS, the columns are pairs; NaN where undefined or never scored
    reasons: Reasons

    def why_not(self, column: Column, finding: str) -> str:
        """The commonest reason of the values that a pair lacks on a finding, or on any of them."""
        return self.reasons.get((*column, finding), "")

    @property
    def pairs(self) -> list[Column]:
        """Its columns."""
        return [(str(pair[0]), str(pair[1])) for pair in self.table.columns.to_list()]

    def __sub__(self, other: "Wide") -> "Wide":
        """The differences, image by image; where one of the two is undefined, so is the difference."""
        return Wide(self.table - other.table, {**other.reasons, **self.reasons})

    def renamed(self, columns: Sequence[Column], given: Sequence[Column]) -> "Wide":
        """The given columns under other names, in their order."""
        values = self.table[list(given)].set_axis(pd.MultiIndex.from_tuples(columns), axis=1)
        findings = {key[2] for key in self.reasons}
        pairs = list(zip(columns, given, strict=True))
        reasons = {(*new, f): why for f in findings for new, old in pairs if (why := self.why_not(old, f))}
        return Wide(values, reasons)

    @staticmethod
    def labels(table: pd.DataFrame, level: str) -> Int[np.ndarray, " rows"]:
        """What each row has of one of the KEYS, as the number of its name in sorted order."""
        return np.asarray(pd.factorize(table.index.get_level_values(level), sort=True)[0])

    def of_finding(self, finding: str) -> pd.DataFrame:
        """One finding's rows."""
        return self.table[self.table.index.get_level_values("finding") == finding]


@dataclass(frozen=True)
class MetricScores:
    """All values of one metric, by their condition without the seed."""

    metric: str
    by_condition: Mapping[str, pd.DataFrame]

    def columns(self, at: str) -> list[Column]:
        """The pairs that were scored under a condition."""
        table = self.by_condition.get(at)
        return [] if table is None else sorted(set(zip(table["model"], table["method"], strict=True)))

    def wide(self, at: str, columns: Sequence[Column]) -> Wide:
        """Those pairs under a condition, whether they were scored or not."""
        names = pd.MultiIndex.from_tuples(columns, names=["model", "method"])
        table = self.by_condition.get(at)
        if table is None:
            none = pd.MultiIndex.from_arrays([[], np.array([], int), [], []], names=KEYS)
            return Wide(pd.DataFrame(np.empty((0, len(names))), none, names), {})
        # a pivot refuses two rows for one place, of which a pivot table would make a mean
        wide = table.pivot(index=KEYS, columns=["model", "method"], values="value")  # noqa: PD010
        return Wide(wide.reindex(columns=names), _reasons(table[table["value"].isna()]))


def read_scores(folder: Path, metric: str) -> MetricScores:
    """One metric's values; words stay numbers of a dictionary until they are asked for."""
    columns = ["case", "patient", "finding", "method", "model", "value", "condition", "reason"]
    batches = list(read_batches(folder / "scores.parquet", Score, columns, [("metric", "==", metric)]))
    if not batches:
        return MetricScores(metric, {})
    table = pa.Table.from_batches(batches).unify_dictionaries().to_pandas()
    seeds, rest = [], []
    for at in table["condition"].cat.categories:
        facts = dict(facts_of(str(at)))
        seeds.append(int(facts.pop("seed", 0)))
        rest.append(condition(**facts))
    codes = table["condition"].cat.codes.to_numpy()
    table = table.drop(columns="condition").assign(seed=np.array(seeds)[codes])
    places = np.array(rest, object)[codes]
    words = {name: object for name in table.columns if name not in {"value", "seed"}}
    parts = {str(at): table[places == at].astype(words) for at in sorted(set(rest))}
    return MetricScores(metric, {at: part for at, part in parts.items() if len(part)})


def _reasons(undefined: pd.DataFrame) -> Reasons:
    """The commonest reason by model, method and finding, and by model and method."""
    found: dict[tuple[str, str, str], str] = {}
    counts = undefined.groupby(["model", "method", "finding", "reason"], sort=True).size().sort_values(kind="stable")
    for model, method, finding, reason in counts.index:
        if reason:
            found[model, method, finding] = found[model, method, ALL] = reason
    return found
