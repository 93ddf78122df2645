"""A run, indexed for the report: its methods, findings and metrics by name, its estimates by key."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Unpack

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS, COMMON_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN, PLAIN, Condition, Statistic, condition, facts_of
from heatcheck.report.numbers import SCORE, UNITS, Unit
from heatcheck.report.privacy import run_without_paths
from heatcheck.report.settings import in_force, in_words, is_smaller
from heatcheck.runs.manifest import Manifest, MethodEntry, MetricEntry, ModelEntry
from heatcheck.runs.store import Run

Key = tuple[Statistic, str, str, str, str]  # statistic, metric, finding, method, other_method
_NOT_OURS = (MEAN, AUROC)  # statistics of the readers and the model, which no threshold or cutoff changes


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
    settings: tuple[str, ...] | None = None  # all that were in force, in words; None where the run does not say
    paper: str = ""


READERS = Entrant(HUMAN, "Human readers", "human")


@dataclass(frozen=True, slots=True)
class ReportMetric:
    """A metric as the report shows it: its name in tables, its label, its unit and one sentence on what it means."""

    name: str
    label: str
    summary: str = ""
    higher_is_better: bool = True
    unit: Unit = SCORE

    @property
    def axis_title(self) -> str:
        """The label with the unit's sign, for an axis whose numbers have none."""
        return self.label + (f" ({self.unit.sign.strip()})" if self.unit.sign else "")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run, indexed; it holds no absolute path.

    `estimates` holds one model under one condition, at first the primary model under the usual one.
    """

    run: Run
    methods: tuple[Entrant, ...]
    floors: tuple[Entrant, ...]
    findings: tuple[str, ...]
    metrics: Mapping[str, ReportMetric]
    estimates: Mapping[Key, Estimate]
    models: tuple[ModelEntry, ...]  # the primary one first
    slices: Mapping[tuple[str, str], Mapping[Key, Estimate]]  # by model and condition

    @property
    def manifest(self) -> Manifest:
        """What run.json says of every run; a study's own part is read by `run.manifest_as`."""
        return self.run.manifest_as(Manifest)

    @property
    def primary(self) -> str:
        """The name of the model that the page describes."""
        return self.models[0].name

    def under(self, model: str = "", *, readers: bool = False, **facts: Unpack[Condition]) -> "Evidence":
        """The same run with the estimates of another model or another condition.

        With `readers`, the human readers' scores and the AUROC are taken from the plain estimates where it has none.
        """
        name = model or self.primary
        estimates = self.slices.get((name, condition(**facts)), {})
        plain = self.slices.get((name, PLAIN), {}) if readers else {}
        shared = {key: row for key, row in plain.items() if key[0] in _NOT_OURS and key[3] in {HUMAN, ""}}
        return replace(self, estimates={**shared, **estimates})

    def rows(self, statistic: Statistic, *, every_model: bool = False) -> list[tuple[Estimate, Condition]]:
        """The statistic's estimates under every condition, each with the facts of its condition."""
        return [
            (row, facts_of(under))
            for (model, under), rows in self.slices.items()
            if every_model or model == self.primary
            for key, row in rows.items()
            if key[0] == statistic
        ]

    def find(
        self, statistic: Statistic, metric: str, finding: str, method: str = "", other: str = ""
    ) -> Estimate | None:
        """The estimate, or None when the run has none."""
        return self.estimates.get((statistic, metric, finding, method, other))

    def value(self, statistic: Statistic, metric: str, finding: str, method: str = "", other: str = "") -> float:
        """The estimate's value; NaN when it is undefined or missing."""
        estimate = self.find(statistic, metric, finding, method, other)
        return estimate.value if estimate else math.nan

    def label_of(self, metric: str) -> str:
        """The metric's label; its name where the run does not describe it."""
        return self.metrics[metric].label if metric in self.metrics else metric

    @property
    def readers(self) -> Entrant:
        """The row of the readers, by the name that says whether they are people."""
        return replace(READERS, label="Simulated readers") if self.manifest.source.drawn else READERS

    @property
    def has_readers(self) -> bool:
        """Whether human readers were scored."""
        return any(key[0] == MEAN and key[3] == HUMAN for key in self.estimates)

    @property
    def finished(self) -> bool:
        """Whether the run is complete."""
        return self.manifest.status == "complete"

    def metrics_of(self, statistic: Statistic) -> list[str]:
        """The metrics that have this statistic, in the run's order."""
        names = {key[1]: None for key in self.estimates if key[0] == statistic}
        known = list(self.metrics)
        return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def evidence_of(run: Run) -> Evidence:
    """The run's evidence, cleared of absolute paths."""
    run = run_without_paths(run)
    manifest = run.manifest_as(Manifest)
    rows = estimates_in(run.estimates)
    entrants = _entrants(manifest, rows)
    models = _models(manifest, rows)
    slices = _sliced(rows, models)
    return Evidence(
        run=run,
        methods=tuple(e for e in entrants if e.kind != "floor"),
        floors=tuple(e for e in entrants if e.kind == "floor"),
        findings=_findings(manifest, rows),
        metrics=_metrics(manifest, rows),
        estimates=slices.get((models[0].name, PLAIN), {}),
        models=models,
        slices=slices,
    )


def estimates_in(table: pd.DataFrame) -> list[Estimate]:
    """The table's rows as records."""
    names = [field.name for field in fields(Estimate)]
    return [Estimate(**dict(zip(names, row, strict=True))) for row in table[names].itertuples(index=False)]


def _models(manifest: Manifest, rows: list[Estimate]) -> tuple[ModelEntry, ...]:
    """The run's models, the primary one first; a run that lists none has one."""
    if manifest.models:
        return tuple(sorted(manifest.models, key=lambda model: not model.primary))
    return (manifest.model or ModelEntry(name=next((row.model for row in rows), "model")),)


def _sliced(rows: list[Estimate], models: tuple[ModelEntry, ...]) -> dict[tuple[str, str], dict[Key, Estimate]]:
    """The rows by model and condition; rows of no listed model count as the primary model's."""
    names = {model.name for model in models}
    slices: dict[tuple[str, str], dict[Key, Estimate]] = {}
    for row in rows:
        part = slices.setdefault((row.model if row.model in names else models[0].name, row.condition), {})
        part.setdefault((row.statistic, row.metric, row.finding, row.method, row.other_method), row)
    return slices


def _entrants(manifest: Manifest, rows: list[Estimate]) -> list[Entrant]:
    listed = [_entrant(entry) for entry in manifest.methods]
    names = {entrant.name for entrant in listed}
    others = {row.method: None for row in rows if row.method not in {*names, "", HUMAN}}
    return listed + [Entrant(name, name, "method") for name in others]


def _entrant(entry: MethodEntry) -> Entrant:
    words = entry.family, entry.note, entry.summary
    settings = None if entry.settings is None else in_force(entry.settings)
    changed = in_words(entry.changed), is_smaller(entry.changed)
    return Entrant(entry.name, entry.label, entry.kind, *words, *changed, settings, entry.paper)


def _findings(manifest: Manifest, rows: list[Estimate]) -> tuple[str, ...]:
    known = {*manifest.findings, "", ALL_FINDINGS, COMMON_FINDINGS}
    others = {row.finding: None for row in rows if row.finding not in known}
    return (*manifest.findings, *others)


def _metrics(manifest: Manifest, rows: list[Estimate]) -> dict[str, ReportMetric]:
    listed = {entry.name: _metric(entry) for entry in manifest.metrics}
    return listed | {row.metric: ReportMetric(row.metric, row.metric) for row in rows if row.metric not in listed}


def _metric(entry: MetricEntry) -> ReportMetric:
    return ReportMetric(entry.name, entry.label, entry.summary, entry.higher_is_better, UNITS.get(entry.unit, SCORE))
