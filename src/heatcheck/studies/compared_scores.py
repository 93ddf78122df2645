"""By how much the scores of two runs differ on the cases both have."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from heatcheck.core.seeds import generator_for
from heatcheck.stats.bootstrap import bca_interval
from heatcheck.stats.clusters import cluster_totals
from heatcheck.stats.ratios import differences_from_first


@dataclass(frozen=True, slots=True)
class ComparedScore:
    """One metric of one method on the cases that both runs have."""

    metric: str
    finding: str
    method: str  # where a metric is a modality's worth, the modality
    first: float
    second: float
    difference: float
    low: float | None  # None where there is no interval
    high: float | None
    n_cases: int


def compared_scores(merged: pd.DataFrame, draws: int) -> Iterator[ComparedScore]:
    """The differences of pairs of scores, `value_first` and `value_second`, with patient-clustered intervals."""
    columns = ["value_first", "value_second"]
    defined = merged.dropna(subset=columns)
    for (metric, finding, method), rows in defined.groupby(["metric", "finding", "method"], sort=True, observed=True):
        values = rows[columns].to_numpy(float)
        totals = cluster_totals(values, rows["patient"].to_numpy(str)).joined
        generator = generator_for("compare", str(metric), str(finding), str(method))
        one = bca_interval(totals, differences_from_first, draws, generator)[0]
        first, second = values.mean(0).tolist()
        yield ComparedScore(
            str(metric), str(finding), str(method), first, second, one.value, known(one.low), known(one.high), len(rows)
        )


def known(bound: float) -> float | None:
    """The end of an interval, None where there is none."""
    return None if math.isnan(bound) else bound
