"""A run in a few lines, and its methods in one table."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

import pandas as pd

from heatcheck.core.errors import UnknownNameError
from heatcheck.core.records import HUMAN
from heatcheck.core.registry import suggest
from heatcheck.core.vocabulary import MEAN, Condition, condition_of, facts_of
from heatcheck.runs.manifest import Manifest, ModelEntry

COLUMNS = ("method", "kind", "value", "low", "high", "n_cases")  # as many as 80 characters show
_TABLES = "estimates, scores, predictions, cases, timings, shapes"
_HOW_TO_GO_ON = 'run.table("hit") has one row for each method; run.estimates has every number of the report'


def facts_in_words(path: Path, manifest: Manifest) -> dict[str, str]:
    """What a run is, in a few facts by name; those that it does not record are left out."""
    floors = sum(entry.kind == "floor" for entry in manifest.methods)
    methods = f"{len(manifest.methods) - floors}" + (f", and {_many(floors, 'floor')}" if floors else "")
    report = path / "report.html"
    facts = {
        "run": str(path),
        "title": manifest.title,
        "study": f"{manifest.study} ({_status(manifest)})".strip(),
        "data": manifest.source_description,
        "models": ", ".join(entry.label for entry in _models(manifest)),
        "cases": _cases(manifest),
        "methods": methods if manifest.methods else "",
        "metrics": ", ".join(entry.name for entry in manifest.metrics),
        "findings": ", ".join(manifest.findings),
        "report": str(report) if report.exists() else "",
        "tables": _TABLES,
    }
    return {name: _short(text) for name, text in facts.items() if text}


def text_of(facts: Mapping[str, str]) -> str:
    """The facts in lines, for a terminal."""
    width = max(map(len, facts))
    return "\n".join([*(f"{name:<{width}}  {text}" for name, text in facts.items()), _HOW_TO_GO_ON])


def html_of(facts: Mapping[str, str]) -> str:
    """The facts as a table, for a notebook."""
    rows = (
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in facts.items()
    )
    return f"<table>{''.join(rows)}</table><p>{escape(_HOW_TO_GO_ON)}</p>"


def method_table(
    estimates: pd.DataFrame, manifest: Manifest, asked: tuple[str, str, str], facts: Condition
) -> pd.DataFrame:
    """One row for each method, floor and reader: the mean of a metric on a finding for a model under one condition.

    Where a mean is undefined, a column `reason` says why.

    Raises:
        UnknownNameError: there is no such mean; the message names what there is.
    """
    metric, finding, model = asked
    rows = estimates[(estimates["statistic"] == MEAN) & (estimates["method"] != "")]
    rows = _narrowed(rows, "metric", metric)
    rows = _narrowed(rows, "finding", finding)
    rows = _of_model(rows, manifest, model)
    chosen = rows[rows["condition"] == condition_of(facts)]
    if chosen.empty:
        raise UnknownNameError(
            f"{metric!r} has no mean {_under(condition_of(facts))}; ask for one that exists: {_conditions(rows)}"
        )
    kinds = {entry.name: str(entry.kind) for entry in manifest.methods} | {HUMAN: "human"}
    described = chosen.assign(kind=[kinds.get(name, "method") for name in chosen["method"]])
    shown = [*COLUMNS, *(["reason"] if described["value"].isna().any() else [])]
    return described[shown].reset_index(drop=True)


def _narrowed(rows: pd.DataFrame, column: str, wanted: str) -> pd.DataFrame:
    found = rows[rows[column] == wanted]
    if found.empty:
        what = f"of the metric {wanted!r}" if column == "metric" else f"on the finding {wanted!r}"
        raise UnknownNameError(f"this run has no mean {what}; {suggest(wanted, rows[column].unique())}")
    return found


def _of_model(rows: pd.DataFrame, manifest: Manifest, model: str) -> pd.DataFrame:
    """The rows of a model, by default the first; those of no listed model belong to every one."""
    listed = [entry.name for entry in _models(manifest)]
    if model and model not in listed:
        raise UnknownNameError(f"no model of this run is named {model!r}; {suggest(model, listed)}")
    others = {*listed} - {model or next(iter(listed), "")}
    return rows[~rows["model"].isin(others)]


def _models(manifest: Manifest) -> list[ModelEntry]:
    """The models, the first of which the report speaks of."""
    single = [manifest.model] if manifest.model else []
    return sorted(manifest.models, key=lambda entry: not entry.primary) or single


def _conditions(rows: pd.DataFrame) -> str:
    """Every condition of the rows as the words that ask for it, the shortest first."""
    found = sorted(rows["condition"].unique(), key=lambda text: (len(facts_of(text)), text))
    asked = [", ".join(f"{name}={value!r}" for name, value in facts_of(text).items()) for text in found]
    return "; ".join(asked[:8]) + ("; …" if len(asked) > 8 else "")


def _under(condition: str) -> str:
    facts = facts_of(condition)
    words = ", ".join(f"{name}={value!r}" for name, value in facts.items())
    return f"with {words}" if facts else "without a condition"


def _status(manifest: Manifest) -> str:
    return "finished" if manifest.status == "complete" else "not finished"


def _cases(manifest: Manifest) -> str:
    if manifest.n_cases is None:
        return ""
    return f"{manifest.n_cases:,}" + (f", of which {manifest.n_failed:,} failed" if manifest.n_failed else "")


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _short(text: str, most: int = 160) -> str:
    """The text on one line; a list of a hundred findings ends early."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"
