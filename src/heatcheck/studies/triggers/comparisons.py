"""The comparisons that a trigger run's claims rest on: methods with random boxes, with one half, with each other.

Each family has intervals that hold together and p-values from the same draws, over seeds and images.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, PLAIN
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_table import pivoted, read_scores
from heatcheck.judging.patients import judged
from heatcheck.methods import METHODS
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested_rates import rates_against
from heatcheck.stats.resampling.nested_studentised import ComparedMean, simultaneous_means
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS, HALF, RANDOM_BOX, SIZES, floor_of

KEYS = ["finding", "seed", "case", "patient"]  # of an image under one network
BEST = 1.0  # the highest score of the metrics by which methods are judged


def metric_scores(folder: Path, metric: str, settings: TriggerSettings) -> pd.DataFrame:
    """One metric's values with the seed as a column; artefacts have no seed and count as seed 0."""
    wanted = [("metric", "==", metric), ("model", "==", settings.model)]
    return read_scores(folder, ["case", "patient", "finding", "method", "other_method"], wanted, "seed")


def wide(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A row for each image of each network, a column for each method."""
    return pivoted(table, KEYS, "method").reindex(columns=list(columns))


def design_of(table: pd.DataFrame) -> Design:
    """The seed, patient and trigger of each row, which are its index."""
    return Design(*(table.index.get_level_values(name).to_numpy() for name in ("seed", "patient", "finding")))


def claims(folder: Path, means: Mapping[tuple[str, str], float], settings: TriggerSettings) -> Iterator[Estimate]:
    """Every comparison with a size that matters; `means` holds those of random boxes too, by metric and method."""
    scores = {name: _plain(folder, name, settings) for name in CRITERION_METRICS}
    boxes = {name: _plain(folder, floor_of(name), settings) for name in CRITERION_METRICS}
    if all(table.empty for table in scores.values()):
        return
    yield from _against_floors({name: scores[name] - boxes[name] for name in scores}, means, settings)
    yield from _against_half(scores["recovered"], settings)
    for metric, table in scores.items():
        yield from _between_methods(table, metric, settings)


def _plain(folder: Path, metric: str, settings: TriggerSettings) -> pd.DataFrame:
    table = metric_scores(folder, metric, settings)
    return wide(table[table["condition"] == PLAIN], settings.methods)


def _against_floors(
    differences: Mapping[str, pd.DataFrame], means: Mapping[tuple[str, str], float], settings: TriggerSettings
) -> Iterator[Estimate]:
    """Each method minus random boxes of the same size over all triggers, both metrics in one family."""
    columns = pd.concat(differences, axis=1)
    rows = []
    for metric, method in product(differences, settings.methods):  # in the order of the columns
        row = Estimate(DIFFERENCE, metric, ALL, method, settings.model, other_method=RANDOM_BOX)
        floor = means.get((floor_of(metric), method), math.nan)
        rows.append(replace(row, size=settings.sizes.above_floor(floor, BEST)))
    yield from _compared(columns, rows, "each method against random boxes, overlap and recovery", settings)


def _against_half(recovered: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """By how much each method's recovery exceeds one half; its direction alone matters."""
    rows = [
        Estimate(DIFFERENCE, "recovered", ALL, method, settings.model, other_method=HALF, size=0.0)
        for method in recovered.columns
    ]
    found = rates_against(recovered.to_numpy(float), design_of(recovered), 0.5)
    yield from _filled(rows, found, "recovery, each method against one half", settings)


def _between_methods(table: pd.DataFrame, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """Every two methods on the images and triggers that all have, the one with the higher mean first; no floors."""
    methods = [name for name in settings.methods if not METHODS[name].is_floor and table[name].notna().any()]
    has_all = table[methods].notna().groupby("finding").any().all(axis=1)
    shared = table[table.index.get_level_values("finding").isin(has_all[has_all].index)][methods]
    if len(methods) < 2 or shared.empty:
        return
    shared = shared[shared.notna().all(axis=1)]
    pairs = list(combinations(methods, 2))
    columns = pd.DataFrame({pair: shared[pair[0]] - shared[pair[1]] for pair in pairs})
    template = Estimate(
        DIFFERENCE, metric, ALL, model=settings.model, size=settings.sizes.between_methods(SIZES[metric])
    )
    note = coverage(int(has_all.sum()), len(settings.triggers), "triggers")
    rows = [replace(template, method=one, other_method=other, reason=note) for one, other in pairs]
    yield from _compared(columns, rows, f"{metric}, every two methods", settings)


def _compared(
    columns: pd.DataFrame, rows: Sequence[Estimate], family: str, settings: TriggerSettings
) -> Iterator[Estimate]:
    """The rows, one for each column, with simultaneous intervals."""
    generator = settings.generator("compared", family)
    found = simultaneous_means(columns.to_numpy(float), design_of(columns), settings.draws, generator)
    yield from _filled(rows, found, family, settings)


def _filled(
    rows: Sequence[Estimate], found: Sequence[ComparedMean], family: str, settings: TriggerSettings
) -> Iterator[Estimate]:
    """The rows with their intervals, corrected p-values and what would decide them."""
    generator = settings.generator("decided", family)
    for row, each in zip(rows, found, strict=True):
        filled = fill(row, each.mean, joined(each.mean.reason or each.mean.note, row.reason))
        filled = replace(filled, p_value=each.p_value, p_adjusted=each.p_adjusted, family=family)
        influences = each.influences
        if row.other_method in settings.methods and filled.value < 0:  # the higher one of two methods first
            filled, influences = _turned(filled), -influences
        if each.mean.n_seeds == 1:  # this speaks of one network, so that nothing can be claimed of a method
            yield replace(filled, size=math.nan)
        else:
            yield judged(filled, row.size, influences, generator, each.of_seeds)


def _turned(row: Estimate) -> Estimate:
    return replace(
        row, method=row.other_method, other_method=row.method, value=-row.value, low=-row.high, high=-row.low
    )
