"""Compared runs with their names and those of their methods and metrics: what the page and the terminal show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.estimating.compared_scores import Compared, ComparedScore, RunMean
from heatcheck.report.evidence import Entrant, Evidence, ReportMetric, evidence_of
from heatcheck.running.compare.pairing import compared_runs, finished_runs, run_names

_MAIN = 3  # metrics, where the first run judged none
_BETWEEN = " · "  # a method and the kind of network
MODEL = Entrant("", "The model itself", "method")


@dataclass(frozen=True)  # without slots: what is looked up often is kept
class SideBySide:
    """Runs of one study, the first of which the others are compared with."""

    names: tuple[str, ...]
    evidences: tuple[Evidence, ...]
    compared: Compared
    entrants: Mapping[str, Entrant]
    metrics: Mapping[str, ReportMetric]

    @cached_property
    def main(self) -> list[str]:
        """The compared metrics by which the first run judges methods; the first ones, where it judges none."""
        every = list(dict.fromkeys(row.metric for row in self.rows() if self.entrant(row.method).kind == "method"))
        judged = {row.metric for row in _estimates(self.evidences[0]) if row.size == row.size}  # NaN is no size
        order = list(self.metrics)
        ranked = sorted(every, key=lambda name: order.index(name) if name in order else len(order))
        return [name for name in ranked if _base(name, " (") in judged] or ranked[:_MAIN]

    @property
    def other_metrics(self) -> list[str]:
        """All other compared metrics."""
        return [name for name in dict.fromkeys(row.metric for row in self.rows()) if name not in self.main]

    def rows(self, metric: str = "", run: int = 0) -> list[ComparedScore]:
        """The differences over all findings, or on the only one; of one metric or one run, if either is given."""
        return [
            row
            for row in self.compared.rows
            if (not metric or row.metric == metric) and (not run or row.run == run) and self._is_overall(row)
        ]

    def by_finding(self, metric: str, run: int) -> list[ComparedScore]:
        """The differences on single findings, of methods that have several."""
        return [
            row for row in self.compared.rows if row.metric == metric and row.run == run and not self._is_overall(row)
        ]

    def means(self, metric: str) -> dict[tuple[str, int], RunMean]:
        """The means over all findings, or on the only one, by method and run."""
        found = (mean for mean in self.compared.means if mean.metric == metric and self._is_overall(mean))
        return {(mean.method, mean.run): mean for mean in found}

    def _is_overall(self, row: ComparedScore | RunMean) -> bool:
        return row.finding == ALL_FINDINGS or (row.metric, row.method) not in self._over_findings

    @cached_property
    def _over_findings(self) -> set[tuple[str, str]]:
        return {(row.metric, row.method) for row in self.compared.rows if row.finding == ALL_FINDINGS}

    def entrant(self, name: str) -> Entrant:
        """The method, floor or readers of this name; what is neither is named after itself, such as a modality."""
        base, _, kind = name.partition(_BETWEEN)
        known = self.entrants.get(base)
        if known is None:
            return Entrant(name, name, "")
        return Entrant(name, f"{known.label}{_BETWEEN}{kind}" if kind else known.label, known.kind, known.family)

    def metric(self, name: str) -> ReportMetric:
        """The metric with its label; what was added to its name, such as the weights, is kept."""
        base = _base(name, " (")
        known = self.metrics.get(base, ReportMetric(base, base))
        return ReportMetric(
            name, f"{known.label}{name[len(base) :]}", known.summary, known.higher_is_better, known.unit
        )


def side_by_side(paths: Sequence[Path], draws: int = 2000) -> SideBySide:
    """The runs in these folders, compared."""
    runs = finished_runs(paths)
    evidences = tuple(evidence_of(run) for run in runs)
    entrants, metrics = {HUMAN: evidences[0].readers, MODEL.name: MODEL}, dict[str, ReportMetric]()
    for evidence in evidences:
        listed = {entry.name for entry in evidence.manifest.methods}
        known = {each.name: each for each in (*evidence.methods, *evidence.floors) if each.name in listed}
        entrants, metrics = {**known, **entrants}, {**evidence.metrics, **metrics}
    return SideBySide(tuple(run_names(runs)), evidences, compared_runs(runs, draws), entrants, metrics)


def _estimates(evidence: Evidence) -> Iterator[Estimate]:
    yield from (row for rows in evidence.slices.values() for row in rows.values())


def _base(name: str, mark: str) -> str:
    return name.partition(mark)[0]
