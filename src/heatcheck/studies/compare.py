"""Two runs of one study: what they have in common, and by how much their scores differ there."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heatcheck.core.errors import InputError
from heatcheck.core.seeds import generator_for
from heatcheck.runs.store import Run, read_run
from heatcheck.stats.bootstrap import bca_interval
from heatcheck.stats.clusters import cluster_totals
from heatcheck.stats.ratios import differences_from_first

_KEYS = ["case", "patient", "finding", "method", "metric"]


@dataclass(frozen=True, slots=True)
class ComparedScore:
    """One metric of one method on the cases that both runs have."""

    metric: str
    finding: str
    method: str
    first: float
    second: float
    difference: float
    low: float | None  # None where there is no interval
    high: float | None
    n_cases: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two runs differ."""

    sentences: tuple[str, ...]
    rows: tuple[ComparedScore, ...]


def compare_runs(first: Path, second: Path, draws: int = 2000) -> Comparison:
    """The differences in the runs' specs, and in their scores with patient-clustered intervals."""
    runs = [_finished(path) for path in (first, second)]
    if runs[0].manifest["study"] != runs[1].manifest["study"]:
        kinds = " and a ".join(run.manifest["study"] for run in runs)
        raise InputError(f"{first} and {second} are a {kinds} study; compare runs of one kind")
    merged = _scores(runs[0]).merge(_scores(runs[1]), on=_KEYS, suffixes=("_first", "_second"))
    return Comparison((*_sentences(runs, merged),), tuple(_compared(merged, draws)))


def _finished(path: Path) -> Run:
    run = read_run(path)
    if run.manifest["status"] != "complete":
        raise InputError(f"{path} is not finished; continue it with the command that began it")
    return run


def _scores(run: Run) -> pd.DataFrame:
    shown = {metric["name"] for metric in run.manifest["metrics"]}
    scores = run.scores
    return scores.loc[scores["metric"].isin(shown) & (scores["condition"] == "{}"), [*_KEYS, "value"]]


def _sentences(runs: list[Run], merged: pd.DataFrame) -> Iterator[str]:
    one, other = (run.manifest for run in runs)
    changed = sorted(_changed(one["spec"], other["spec"]))
    yield f"Specs differ in {', '.join(changed)}." if changed else "The specs are the same."
    if one["weights_hash"] != other["weights_hash"]:
        yield "The weights of the models differ."
    cases = [set(run.scores["case"]) for run in runs]
    yield f"{merged['case'].nunique()} cases are in both runs ({len(cases[0])} and {len(cases[1])} in each)."


def _changed(one: Mapping[str, Any], other: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key in {*one, *other}:
        left, right = one.get(key), other.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            yield from _changed(left, right, f"{path}{key}.")
        elif left != right:
            yield f"{path}{key}"


def _compared(merged: pd.DataFrame, draws: int) -> Iterator[ComparedScore]:
    columns = ["value_first", "value_second"]
    defined = merged.dropna(subset=columns)
    for (metric, finding, method), rows in defined.groupby(["metric", "finding", "method"], sort=True):
        values = rows[columns].to_numpy(float)
        totals = cluster_totals(values, rows["patient"].to_numpy(str)).joined
        generator = generator_for("compare", str(metric), str(finding), str(method))
        one = bca_interval(totals, differences_from_first, draws, generator)[0]
        low, high = (None if math.isnan(bound) else bound for bound in (one.low, one.high))
        first, second = values.mean(0).tolist()
        yield ComparedScore(str(metric), str(finding), str(method), first, second, one.value, low, high, len(rows))
