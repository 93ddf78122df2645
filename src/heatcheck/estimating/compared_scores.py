"""How much the scores of several runs differ on the cases they share: each run against the first one."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.errors import RunFolderError
from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import DIFFERENCE, PLAIN, condition, facts_of
from heatcheck.judging.patients import judged_together
from heatcheck.judging.sizes import stored_sizes
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.clusters import totals_by_code
from heatcheck.stats.resampling.studentised import (
    TOO_WIDE,
    Linearised,
    contrast,
    linearised_macro,
    linearised_ratios,
    side_by_side,
    simultaneous_intervals,
    studentised_intervals,
)

_KEYS = ["case", "patient", "finding", "method", "metric", "condition"]
SizeOf = Callable[[str, str], float]  # the size that matters, of a metric and a method; NaN: nothing is claimed
ONE_TRAINING = "its interval says nothing of other trainings"


@dataclass(frozen=True, slots=True)
class ComparedScore:
    """One metric of one method in the first run and in another, on the cases that the runs share."""

    metric: str
    finding: str
    method: str  # or the modality, if the metric is its importance
    first: float
    second: float
    difference: float
    low: float | None  # None if there is no interval
    high: float | None
    n_cases: int
    reason: str = ""  # why there is no interval, or why nothing is claimed
    run: int = 1  # which run the second is; the first one is 0
    n_patients: int = 0
    p_adjusted: float = math.nan
    family: str = ""  # the comparisons that were corrected together
    size: float = math.nan  # that matters
    n_needed: int = 0

    @property
    def estimate(self) -> Estimate:
        """The difference as an estimate, by which it is judged."""
        low, high = (math.nan if end is None else end for end in (self.low, self.high))
        return Estimate(
            DIFFERENCE, self.metric, self.finding, self.method, value=self.difference, low=low, high=high,
            p_adjusted=self.p_adjusted, family=self.family, n_cases=self.n_cases, n_patients=self.n_patients,
            reason=self.reason, size=self.size, n_needed=self.n_needed,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunMean:
    """One metric of one method in one run, on the cases that the runs share."""

    metric: str
    finding: str
    method: str
    run: int
    value: float
    low: float | None
    high: float | None
    n_cases: int


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences of several runs: one row per score and run, the means behind them, and sentences on the rest."""

    rows: tuple[ComparedScore, ...]
    sentences: tuple[str, ...] = ()
    means: tuple[RunMean, ...] = ()


@dataclass(frozen=True, slots=True)
class Paired:
    """The scores of one method by one metric in the runs that have any: means, and differences from the first run."""

    metric: str
    finding: str
    method: str
    runs: tuple[int, ...]
    means: Linearised
    differences: Linearised
    n_cases: int
    size: float

    def rows(self) -> list[ComparedScore]:
        """A row for each run but the first, still without intervals."""
        first, *others = map(float, self.means.values)
        patients = int(self.means.n_patients.max(initial=0))
        return [
            ComparedScore(
                self.metric, self.finding, self.method, first, other, float(difference), None, None, self.n_cases,
                run=run, n_patients=patients, size=self.size,
            )
            for run, other, difference in zip(self.runs[1:], others, self.differences.values, strict=True)
        ]  # fmt: skip


def compared_by_case(runs: Sequence[Run], names: Mapping[str, str], draws: int) -> Compared:
    """The scores of the runs paired case by case, under the conditions that are the keys of `names`.

    The name of the condition is added to that of the method, which has scores for each kind of network. Scores of
    networks that a run trained are shown with intervals, but nothing is claimed of them.
    """
    sizes = stored_sizes(runs[0].manifest_as(Manifest).sizes, str(runs[0].path / "run.json"))
    trained = {name for under, name in names.items() if "seed" in facts_of(under)}

    def size(metric: str, method: str) -> float:
        named = f" · {method.rpartition(' · ')[2]}" if " · " in method else ""
        return math.nan if named in trained else sizes.between_methods(metric)

    found = [*compared_scores(paired([_scores(run, names) for run in runs]), draws, size)]
    return Compared(
        tuple(row for rows, _ in found for row in rows), means=tuple(mean for _, means in found for mean in means)
    )


def seed_conditions(seeds: Iterable[int]) -> dict[str, str]:
    """The conditions of scores that differ at most in the seed of their network, all without a name."""
    return dict.fromkeys([PLAIN, *(condition(seed=seed) for seed in seeds)], "")


def paired(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One row per score, with a column `value_N` for each run; NaN where a run lacks it."""
    named = [table.rename(columns={"value": f"value_{run}"}) for run, table in enumerate(tables)]
    keys = [name for name in named[0].columns if not name.startswith("value_")]
    return reduce(lambda one, other: one.merge(other, on=keys, how="outer"), named)


def _scores(run: Run, names: Mapping[str, str]) -> pd.DataFrame:
    """The scores of the run's main model and of its readers, with names as categories to save memory."""
    manifest = run.manifest_as(Manifest)
    models = [manifest.model.name if manifest.model else "", ""]  # readers' scores have no model
    file = run.path / "scores.parquet"
    if not file.is_file():
        raise RunFolderError(f"{file} is missing; remove the folder and run the study again")
    metrics = [metric.name for metric in manifest.metrics]  # a study that lists none compares all
    table = pq.read_table(
        file,
        columns=[*_KEYS, "value"],
        filters=[
            *([("metric", "in", metrics)] if metrics else []),
            ("condition", "in", list(names)),
            ("model", "in", models),
            ("other_method", "==", ""),  # leaves out agreement scores of two methods
        ],
        read_dictionary=_KEYS,
    ).to_pandas()
    if not any(names.values()):
        return table
    named = table["method"].astype(str) + table["condition"].astype(str).map(names)
    return table.assign(method=named.str.removeprefix(" · "))  # scores of the model itself have no method


def compared_scores(
    table: pd.DataFrame, draws: int, size: SizeOf
) -> Iterator[tuple[list[ComparedScore], list[RunMean]]]:
    """Metric by metric, the differences from the first run and the means; `table` is as `paired` makes it.

    Intervals vary patients. The differences over all findings hold together, and so do those on single findings.
    """
    columns = [name for name in table.columns if name.startswith("value_")]
    for metric, rows in table.groupby("metric", sort=True, observed=True):
        _, patients = np.unique(rows["patient"].to_numpy(str), return_inverse=True)
        rows = rows.assign(code=patients)  # noqa: PLW2901 - the same rows
        pairs = [
            pair
            for (finding, method), each in rows.groupby(["finding", "method"], sort=True, observed=True)
            if (pair := _pair((str(metric), str(finding), str(method)), each, columns, int(patients.max()) + 1))
        ]
        sized = [replace(pair, size=size(pair.metric, pair.method)) for pair in pairs]
        families = {"over all findings": _over_findings(sized), "on each finding": sized}
        yield (
            [row for what, family in families.items() for row in _judged(family, f"{metric} {what}", draws)],
            [mean for what, family in families.items() for mean in _means(family, f"{metric} {what}", draws)],
        )


def _pair(names: tuple[str, str, str], rows: pd.DataFrame, columns: list[str], n_patients: int) -> Paired | None:
    """The scores on the cases that are defined in every run that has any; None where only one run has."""
    runs = tuple(run for run, name in enumerate(columns) if rows[name].notna().any())
    if len(runs) < 2 or runs[0] != 0:
        return None
    defined = rows.dropna(subset=[columns[run] for run in runs])
    if defined.empty:
        return None
    values = defined[[columns[run] for run in runs]].to_numpy(float)
    totals = totals_by_code(values, defined["code"].to_numpy(), n_patients)
    means = linearised_ratios(totals.sums, totals.counts)
    first, others = np.zeros(len(runs) - 1, int), np.arange(1, len(runs))
    return Paired(*names, runs, means, contrast(means.only(first), means.only(others)), len(defined), math.nan)


def _over_findings(pairs: Sequence[Paired]) -> list[Paired]:
    """The means over findings of the methods that have several, all in the same runs."""
    found = []
    for method in dict.fromkeys(pair.method for pair in pairs):
        own = [pair for pair in pairs if pair.method == method]
        if len(own) > 1 and len({pair.runs for pair in own}) == 1:
            means, differences = (_macro([getattr(pair, name) for pair in own]) for name in ("means", "differences"))
            cases = sum(pair.n_cases for pair in own)
            found.append(replace(own[0], finding=ALL_FINDINGS, means=means, differences=differences, n_cases=cases))
    return found


def _macro(by_finding: Sequence[Linearised]) -> Linearised:
    """Each column's mean over the findings."""
    columns = [each.only(np.array([run])) for run in range(len(by_finding[0].values)) for each in by_finding]
    return linearised_macro(side_by_side(columns), len(by_finding))


def _judged(pairs: Sequence[Paired], family: str, draws: int) -> list[ComparedScore]:
    """The differences with intervals that hold together, judged by the sizes that matter."""
    if not pairs:
        return []
    rows = [row for pair in pairs for row in pair.rows()]
    statistics = side_by_side([pair.differences for pair in pairs])
    result = simultaneous_intervals(statistics, draws, generator_for("compare", family))
    filled = [
        with_interval(replace(row, family=family, p_adjusted=float(p)), interval)
        for row, interval, p in zip(rows, result.intervals, result.p_adjusted, strict=True)
    ]
    generator = generator_for("compare", "needed", family)
    judged = judged_together(
        [row.estimate for row in filled], [row.size for row in filled], statistics.influences, generator
    )
    return [replace(row, n_needed=each.n_needed) for row, each in zip(filled, judged, strict=True)]


def with_interval(row: ComparedScore, interval: Interval) -> ComparedScore:
    """The row with its interval, or with the reason why it has none."""
    if math.isinf(interval.low) or math.isinf(interval.high):
        interval = Interval(interval.value, reason=TOO_WIDE)
    reason = interval.reason or (ONE_TRAINING if math.isnan(row.size) else "")
    return replace(row, low=known(interval.low), high=known(interval.high), reason=reason)


def _means(pairs: Sequence[Paired], family: str, draws: int) -> Iterator[RunMean]:
    for pair in pairs:
        generator = generator_for("compare", "means", family, pair.finding, pair.method)
        for run, each in zip(pair.runs, studentised_intervals(pair.means, draws, generator), strict=True):
            low, high = known(each.low), known(each.high)
            yield RunMean(pair.metric, pair.finding, pair.method, run, each.value, low, high, pair.n_cases)


def known(bound: float) -> float | None:
    """The bound of an interval; None where it is unknown or infinite."""
    return bound if math.isfinite(bound) else None
