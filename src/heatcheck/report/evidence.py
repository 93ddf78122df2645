"""What a run says, ready to be asked: its methods, findings and metrics by name, its estimates by key."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.report.privacy import run_without_paths
from heatcheck.report.settings import in_words, is_smaller
from heatcheck.runs.store import Run

Key = tuple[str, str, str, str, str]  # statistic, metric, finding, method, other_method


@dataclass(frozen=True, slots=True)
class Entrant:
    """One row of the tables: a method, a floor or the human readers."""

    name: str
    label: str
    kind: str  # method, floor or human
    family: str = ""
    note: str = ""
    summary: str = ""
    changed: tuple[str, ...] = ()  # settings that are not the usual ones, in words
    saves_time: bool = False  # some of them are smaller numbers


READERS = Entrant(HUMAN, "Human readers", "human")


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric as the run describes it."""

    name: str
    label: str
    summary: str = ""
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run, indexed; it holds no absolute path."""

    run: Run
    methods: tuple[Entrant, ...]
    floors: tuple[Entrant, ...]
    findings: tuple[str, ...]
    measures: Mapping[str, Measure]
    estimates: Mapping[Key, Estimate]

    def find(self, statistic: str, metric: str, finding: str, method: str = "", other: str = "") -> Estimate | None:
        """The estimate, or None when the run did not make it."""
        return self.estimates.get((statistic, metric, finding, method, other))

    def value(self, statistic: str, metric: str, finding: str, method: str = "", other: str = "") -> float:
        """The estimate's value; NaN when it is undefined or was not made."""
        found = self.find(statistic, metric, finding, method, other)
        return found.value if found else math.nan

    @property
    def has_readers(self) -> bool:
        """Whether human readers were scored."""
        return any(key[0] == "mean" and key[3] == HUMAN for key in self.estimates)

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return self.run.manifest.get("status") == "complete"

    def measures_of(self, statistic: str) -> list[str]:
        """The metrics this statistic was made for, in the run's order."""
        made = {key[1]: None for key in self.estimates if key[0] == statistic}
        known = list(self.measures)
        return sorted(made, key=lambda name: (known.index(name) if name in known else len(known), name))


def evidence_of(run: Run) -> Evidence:
    """The run's evidence, cleared of absolute paths."""
    run = run_without_paths(run)
    rows = estimates_in(run.estimates)
    entrants = _entrants(run.manifest, rows)
    return Evidence(
        run=run,
        methods=tuple(e for e in entrants if e.kind != "floor"),
        floors=tuple(e for e in entrants if e.kind == "floor"),
        findings=_findings(run.manifest, rows),
        measures=_measures(run.manifest, rows),
        estimates=_indexed(rows),
    )


def estimates_in(table: pd.DataFrame) -> list[Estimate]:
    """The table's rows as records."""
    names = [field.name for field in fields(Estimate)]
    return [Estimate(**dict(zip(names, row, strict=True))) for row in table[names].itertuples(index=False)]


def _indexed(rows: list[Estimate]) -> dict[Key, Estimate]:
    index: dict[Key, Estimate] = {}
    for row in sorted(rows, key=lambda row: row.condition != "{}"):  # the unconditional row speaks for its key
        index.setdefault((row.statistic, row.metric, row.finding, row.method, row.other_method), row)
    return index


def _entrants(manifest: Mapping[str, Any], rows: list[Estimate]) -> list[Entrant]:
    told = [_entrant(facts) for facts in manifest.get("methods", [])]
    names = {entrant.name for entrant in told}
    untold = {row.method: None for row in rows if row.method not in {*names, "", HUMAN}}
    return told + [Entrant(name, name, "method") for name in untold]


def _entrant(facts: Mapping[str, Any]) -> Entrant:
    words = {key: str(facts.get(key) or "") for key in ("family", "note", "summary")}
    changed = facts.get("changed") or []
    label, kind = facts.get("label") or facts["name"], facts.get("kind") or "method"
    return Entrant(facts["name"], label, kind, **words, changed=in_words(changed), saves_time=is_smaller(changed))


def _findings(manifest: Mapping[str, Any], rows: list[Estimate]) -> tuple[str, ...]:
    told = list(manifest.get("findings", []))
    untold = {row.finding: None for row in rows if row.finding not in {*told, "", ALL_FINDINGS}}
    return (*told, *untold)


def _measures(manifest: Mapping[str, Any], rows: list[Estimate]) -> dict[str, Measure]:
    told = {facts["name"]: _measure(facts) for facts in manifest.get("metrics", [])}
    untold = {row.metric: Measure(row.metric, row.metric) for row in rows if row.metric not in told}
    return told | untold


def _measure(facts: Mapping[str, Any]) -> Measure:
    label, summary = facts.get("label") or facts["name"], str(facts.get("summary") or "")
    return Measure(facts["name"], label, summary, bool(facts.get("higher_is_better", True)))
