"""The end of every page: what is missing from the numbers, how the run was made, and the tables to download."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.vocabulary import PLAIN
from heatcheck.report.downloads import Download, download
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.numbers import listed
from heatcheck.report.page import Section, record_of
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run

_PAIR = ["metric", "method"]
_SHARED = ("metric", "reason", "undefined", "of")
LEFT_OUT = "They are left out of the means, never counted as 0."
SHOWN = 100  # rows of a list of gaps on the page; the download has all


@dataclass(frozen=True, slots=True)
class UndefinedScores:
    """How many scores are undefined, by metric, method and reason, most first; `of` is all scores of that pair."""

    table: pd.DataFrame
    n_scores: int


def undefined_scores(run: Run, model: str = "", conditions: Sequence[str] = (PLAIN,)) -> UndefinedScores:
    """The run's undefined scores under these conditions, counted without holding them.

    With a model, only its scores and the readers' mean are counted. Values that the run does not list as metrics, such
    as the pixel counts behind rates, are left out.
    """
    metrics = [entry.name for entry in run.manifest_as(Manifest).metrics]
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
    """Which rows record a failed training instead of a patient's image."""
    return (cases["stage"] == "training") & (cases["patient"] == "")


def seconds_per_map(run: Run) -> pd.DataFrame:
    """How long each method took for one map, slowest first."""
    steps = run.timings[run.timings["step"] == "map"]
    if steps.empty:
        return pd.DataFrame({name: [] for name in ("method", "maps", "seconds", "seconds_per_map")})
    table = steps.groupby("method", as_index=False)[["maps", "seconds"]].sum()
    table["seconds_per_map"] = table["seconds"] / table["maps"].where(table["maps"] > 0)
    return table.sort_values("seconds_per_map", ascending=False)


def gaps(
    evidence: Evidence, scores: UndefinedScores, hint: str, *, every_model: bool = False, treated: str = LEFT_OUT
) -> Section:
    """Failed cases and undefined scores, how means treat them, and a hint about which of them are not failures.

    The scores are those of the primary model, or of `every_model`.
    """
    one_of_several = len(evidence.models) > 1 and not every_model
    failed, undefined = failed_cases(evidence.run), scores.table
    networks = int(is_network(failed).sum())
    joined = _joined(undefined, evidence)
    content = {
        "undefined": joined[:SHOWN],
        "model": f"{evidence.models[0].label} and the readers" if one_of_several else "",
        "n_undefined": int(undefined["undefined"].sum()),
        "n_scores": scores.n_scores,
        "more_undefined": max(0, len(joined) - SHOWN),
        "treated": treated,
        "hint": hint,
        "failed": _rows(failed.head(SHOWN)),
        "n_listed": len(failed),
        "n_failed": len(failed) - networks,
        "n_networks": networks,
        "n_cases": len(evidence.run.cases) - networks,
        "measures": {name: measure.label for name, measure in evidence.metrics.items()},
    }
    return Section("gaps", "What is missing", "Gaps", "gaps.html", content)


def _joined(undefined: pd.DataFrame, evidence: Evidence) -> list[dict[str, object]]:
    """The rows in their order; rows that differ only in the method are joined."""
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    together: dict[tuple[object, ...], list[str]] = {}
    for row in _rows(undefined):
        facts = tuple(row[key] for key in _SHARED)
        together.setdefault(facts, []).append(str(row["method"]))
    return [
        dict(zip(_SHARED, facts, strict=True)) | {"methods": _named(methods, labels)}
        for facts, methods in together.items()
    ]


def _named(methods: Sequence[str], labels: Mapping[str, str]) -> str:
    if len(methods) > 1 and set(methods) == set(labels):
        return "every method"
    every = {**labels, READERS.name: READERS.label, "": "the model itself"}
    return listed([every.get(name, name) for name in methods])


def record(evidence: Evidence) -> Section:
    """How the run was made: settings, versions, methods and their times."""
    speed = {row["method"]: row["seconds_per_map"] for row in _rows(seconds_per_map(evidence.run))}
    content = {
        "record": record_of(evidence),
        "source": evidence.manifest.source_description,
        "entrants": [*evidence.methods, *evidence.floors],
        "speed": speed,
    }
    return Section("record", "How this was made", "Record", "record.html", content)


def downloads(evidence: Evidence, undefined: pd.DataFrame) -> tuple[Download, ...]:
    """The run's tables as downloads; empty ones are left out."""
    run = evidence.run
    tables = (
        ("estimates.csv", "every number of this report with its interval, counts and reasons", run.estimates),
        ("undefined.csv", "undefined scores by metric, method and reason", undefined),
        ("failed_cases.csv", "cases that failed, with stage and reason", failed_cases(run)),
        ("seconds_per_map.csv", "how long each method took", seconds_per_map(run)),
    )
    return tuple(download(name, about, table) for name, about, table in tables if len(table))


def _rows(table: pd.DataFrame) -> list[dict[str, object]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]
