"""What is missing from the numbers: undefined scores by reason, and the cases that failed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.records import condition
from heatcheck.runs.store import Run

PLAIN = condition()  # of the scores that most studies rest on
_PAIR = ["metric", "method"]


@dataclass(frozen=True, slots=True)
class UndefinedScores:
    """How many scores are undefined, by metric, method and reason, most first; `of` is all scores of that pair."""

    table: pd.DataFrame
    n_scores: int


def undefined_scores(run: Run, model: str = "", conditions: Sequence[str] = (PLAIN,)) -> UndefinedScores:
    """The run's undefined scores under these conditions, counted without holding them.

    A reader's own scores stand under a condition of their own and count in the readers' mean. With a model, only its
    scores and the readers'. What the run does not list as a metric, such as counts of pixels that rates are made of,
    is no score to miss.
    """
    metrics = [str(facts["name"]) for facts in run.manifest.get("metrics") or []]
    counted: Counter[tuple[str, str, str, bool]] = Counter()
    for scores in run.row_groups("scores", [*_PAIR, "reason", "condition", "value", "model"]):
        plain = _among(scores, "condition", conditions)
        kept = _among(plain, "model", [model, ""]) if model else plain
        counted.update(_counts(_among(kept, "metric", metrics) if metrics else kept))
    rows = [(*key, n) for key, n in counted.items()]
    table = run.shown(pd.DataFrame(rows, columns=[*_PAIR, "reason", "missing", "undefined"]))
    totals = table.groupby(_PAIR)["undefined"].sum().rename("of").reset_index()
    missing = table[table["missing"].astype(bool)].groupby([*_PAIR, "reason"], as_index=False)["undefined"].sum()
    order = ["undefined", *_PAIR, "reason"]
    ranked = missing.merge(totals, on=_PAIR).sort_values(order, ascending=[False, True, True, True])
    return UndefinedScores(ranked, counted.total())


def _among(table: Any, column: str, names: Sequence[str]) -> Any:  # noqa: ANN401 - pyarrow ships no types
    return table.filter(pc.is_in(table[column].cast(pa.string()), pa.array(list(names))))


def _counts(scores: Any) -> dict[tuple[str, str, str, bool], int]:  # noqa: ANN401 - pyarrow ships no types
    """How often each metric, method, reason and "is undefined" come together."""
    missing = pc.is_null(scores["value"], nan_is_null=True)
    keys = scores.select([*_PAIR, "reason"]).append_column("missing", missing)
    counted = keys.group_by(keys.column_names).aggregate([([], "count_all")]).to_pydict()
    sizes = counted.pop("count_all")
    return dict(zip(zip(*counted.values(), strict=True), sizes, strict=True))


def failed_cases(run: Run) -> pd.DataFrame:
    """The cases that failed, with the stage and the reason."""
    columns = ["case", "patient", "stage", "reason"]
    failed = run.cases[run.cases["status"] == "failed"]
    return failed[columns].sort_values("case")


def is_network(cases: pd.DataFrame) -> "pd.Series[bool]":
    """Which rows are of a network whose training failed, and of no patient's image."""
    return (cases["stage"] == "training") & (cases["patient"] == "")


def seconds_per_map(run: Run) -> pd.DataFrame:
    """How long each method took for one map, slowest first."""
    steps = run.timings[run.timings["step"] == "map"]
    if steps.empty:
        return pd.DataFrame({name: [] for name in ("method", "maps", "seconds", "seconds_per_map")})
    table = steps.groupby("method", as_index=False)[["maps", "seconds"]].sum()
    table["seconds_per_map"] = table["seconds"] / table["maps"].where(table["maps"] > 0)
    return table.sort_values("seconds_per_map", ascending=False)
