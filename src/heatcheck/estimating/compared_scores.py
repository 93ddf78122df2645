"""How much the scores of two runs differ on the cases they share."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.errors import RunFolderError
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import PLAIN, condition
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.studentised import TOO_WIDE, contrast, linearised_ratios, studentised_intervals

_KEYS = ["case", "patient", "finding", "method", "metric", "condition"]


@dataclass(frozen=True, slots=True)
class ComparedScore:
    """One metric of one method on the cases that both runs share."""

    metric: str
    finding: str
    method: str  # or the modality, if the metric is its importance
    first: float
    second: float
    difference: float
    low: float | None  # None if there is no interval
    high: float | None
    n_cases: int
    reason: str = ""  # why there is no interval


@dataclass(frozen=True, slots=True)
class Compared:
    """The difference of two runs: one row per score, and sentences on other differences."""

    rows: tuple[ComparedScore, ...]
    sentences: tuple[str, ...] = ()


def compared_by_case(runs: Sequence[Run], names: Mapping[str, str], draws: int) -> Compared:
    """The scores of two runs paired case by case, under the conditions that are the keys of `names`.

    The name of the condition is added to that of the method, which has scores for each kind of network.
    """
    first, second = (_scores(run, names) for run in runs)
    merged = first.merge(second, on=_KEYS, suffixes=("_first", "_second"))
    return Compared(tuple(compared_scores(merged, draws)))


def seed_conditions(seeds: Iterable[int]) -> dict[str, str]:
    """The conditions of scores that differ at most in the seed of their network, all without a name."""
    return dict.fromkeys([PLAIN, *(condition(seed=seed) for seed in seeds)], "")


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


def compared_scores(merged: pd.DataFrame, draws: int) -> Iterator[ComparedScore]:
    """The differences of the paired scores `value_first` and `value_second`, with patient-clustered intervals."""
    columns = ["value_first", "value_second"]
    defined = merged.dropna(subset=columns)
    for (metric, finding, method), rows in defined.groupby(["metric", "finding", "method"], sort=True, observed=True):
        values = rows[columns].to_numpy(float)
        totals = cluster_totals(values, rows["patient"].to_numpy(str))
        means = linearised_ratios(totals.sums, totals.counts)
        difference = contrast(means.only(np.array([True, False])), means.only(np.array([False, True])))
        generator = generator_for("compare", str(metric), str(finding), str(method))
        one = studentised_intervals(difference, draws, generator)[0]
        if math.isinf(one.low) or math.isinf(one.high):
            one = Interval(one.value, reason=TOO_WIDE)
        ends = known(one.low), known(one.high)
        first, second = values.mean(0).tolist()
        names = str(metric), str(finding), str(method)
        yield ComparedScore(*names, first, second, one.value, *ends, len(rows), one.reason)


def known(bound: float) -> float | None:
    """The bound of an interval; None instead of NaN."""
    return None if math.isnan(bound) else bound
