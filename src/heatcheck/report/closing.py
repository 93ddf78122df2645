"""What every study's page ends with: what is missing, how it was made, and the tables to download."""

from collections.abc import Mapping, Sequence

import pandas as pd

from heatcheck.report import words
from heatcheck.report.downloads import Download, download
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.gaps import UndefinedScores, failed_cases, is_network, seconds_per_map
from heatcheck.report.numbers import listed
from heatcheck.report.page import Section, description, record_of

_SHARED = ("metric", "reason", "undefined", "of")
LEFT_OUT = "They are left out of the means, never counted as 0."
SHOWN = 100  # rows of a list of gaps on the page; the download has all


def gaps(
    evidence: Evidence, scores: UndefinedScores, hint: str, *, every_model: bool = False, treated: str = LEFT_OUT
) -> Section:
    """Cases that failed and scores that are undefined, how means treat these, and a hint which of them are no failure.

    The scores are those of the primary model unless they are of `every_model`.
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
        "measures": {name: words.plain(measure).name for name, measure in evidence.measures.items()},
    }
    return Section("gaps", "What is missing", "Gaps", "gaps.html", content)


def _joined(undefined: pd.DataFrame, evidence: Evidence) -> list[dict[str, object]]:
    """The rows in their order; those that differ in nothing but the method are one."""
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
    """The run's own account of itself, its methods and their times."""
    speed = {row["method"]: row["seconds_per_map"] for row in _rows(seconds_per_map(evidence.run))}
    content = {
        "record": record_of(evidence),
        "source": description(evidence, "source"),
        "entrants": [*evidence.methods, *evidence.floors],
        "speed": speed,
    }
    return Section("record", "How this was made", "Record", "record.html", content)


def downloads(evidence: Evidence, undefined: pd.DataFrame) -> tuple[Download, ...]:
    """The run's tables that hold a row."""
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
