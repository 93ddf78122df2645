"""The score tables of a modality run, and the mean scores of the methods by fold and over all cases."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, Condition, condition, facts_of
from heatcheck.estimating import score_table
from heatcheck.estimating.estimates import corrected, fill
from heatcheck.estimating.score_table import pivoted, reasons_by_count
from heatcheck.metrics.modality.shares import SAME_SUMS
from heatcheck.metrics.undefined import NO_RELEVANCE
from heatcheck.stats.resampling.bootstrap import mean_estimates
from heatcheck.stats.resampling.signflip import FEWEST_FLIPS, sign_flip_test
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import COUNTED, EMPTY, EVERY_FOLD, FLOORED, UNIFORM

KEYS = ["fold", "case", "patient"]
COLUMNS = ["metric", "condition", "method"]
EMPTY_REASONS = (NO_RELEVANCE, SAME_SUMS)  # why a map is empty, though its method could have marked something
_WORDS = ["case", "patient", "finding", "method", "metric", "reason"]


def read_scores(folder: Path, metrics: Sequence[str], model: str) -> pd.DataFrame:
    """The rows of these metrics; the fold is a column of its own, not part of the condition."""
    wanted = [("metric", "in", list(metrics)), ("model", "==", model)]
    return score_table.read_scores(folder, _WORDS, wanted, "fold", absent=1)


def wide(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """One row per case of a fold, and one column per combination of the named columns that was scored."""
    return pivoted(table, KEYS, columns)


def counted(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores with 0 where a map is empty: leaving these cases out would reward empty maps."""
    return scores.assign(value=scores["value"].mask(_empty(scores), 0.0))


def _empty(scores: pd.DataFrame) -> pd.Series:
    return scores["value"].isna() & scores["reason"].isin(EMPTY_REASONS) & scores["metric"].isin(COUNTED)


def empty_rows(scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """How many maps of each method are empty and count 0, where there are any."""
    for (metric, method), rows in scores[scores["metric"].isin(COUNTED)].groupby(["metric", "method"], sort=True):
        number = int(_empty(rows).sum())
        if number:
            yield Estimate(
                EMPTY, str(metric), ALL, str(method), settings.model, float(number),
                condition=condition(fold=EVERY_FOLD), n_cases=len(rows),
            )  # fmt: skip


def mean_rows(scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """The mean of every metric of every method in each fold and over all cases; an empty map counts 0."""
    if scores.empty:
        return
    table, reasons = wide(counted(scores), COLUMNS), {key[:-1]: key[-1] for key in reasons_by_count(scores, COLUMNS)}
    folds = table.index.get_level_values("fold").to_numpy()
    for fold in (*np.unique(folds).tolist(), EVERY_FOLD):
        yield from _of_fold(table if fold == EVERY_FOLD else table[folds == fold], fold, reasons, settings)


def _of_fold(
    table: pd.DataFrame, fold: int | str, reasons: Mapping[tuple[str, ...], str], settings: ModalitySettings
) -> Iterator[Estimate]:
    # all columns at once: a column's interval does not depend on those beside it
    patients = table.index.get_level_values("patient").to_numpy()
    means = mean_estimates(table.to_numpy(float), patients, settings.draws, settings.generator("mean", str(fold)))
    for column, mean in zip(table.columns.to_list(), means, strict=True):
        metric, text, method = map(str, column)
        facts: Condition = {**facts_of(text), "fold": fold}
        reason = reasons.get((metric, text, method)) if np.isnan(mean.value) else None
        template = Estimate(MEAN, metric, ALL, method, settings.model, condition=condition(**facts))
        yield fill(template, mean, reason)


def of_metric(scores: pd.DataFrame, metric: str, settings: ModalitySettings) -> pd.DataFrame:
    """The rows of one metric under the condition in which methods are compared."""
    return scores[(scores["metric"] == metric) & (scores["condition"] == condition(**settings.primary(metric)))]


def difference_rows(scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """The difference of each method from the uniform map, case by case, tested and corrected for the number of methods.

    An empty map counts 0, as in the means.
    """
    for metric in FLOORED:
        rows = of_metric(scores, metric, settings)
        if UNIFORM in set(rows["method"]):
            yield from _versus_floor(wide(counted(rows), ["method"]), metric, settings)


def _versus_floor(table: pd.DataFrame, metric: str, settings: ModalitySettings) -> Iterator[Estimate]:
    less = table.reindex(columns=list(settings.methods)).sub(table[UNIFORM], axis=0).to_numpy(float)
    patients = table.index.get_level_values("patient").to_numpy()
    means = mean_estimates(less, patients, settings.draws, settings.generator("difference", metric))
    p_values = [
        sign_flip_test(column, patients, FEWEST_FLIPS, settings.generator("flips", metric, method)).p_value
        for method, column in zip(settings.methods, less.T, strict=True)
    ]
    template = Estimate(DIFFERENCE, metric, ALL, model=settings.model, condition=condition(versus=UNIFORM))
    rows = [
        replace(fill(template, mean), method=method, p_value=p_value)
        for method, mean, p_value in zip(settings.methods, means, p_values, strict=True)
    ]
    yield from corrected(rows, f"{metric}: each method against the uniform map")
