"""The comparisons that a trigger run's claims rest on: methods with random boxes, the baseline, one half, each other.

Each family has intervals that hold together and p-values from the same draws, over seeds and images.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, PLAIN, facts_of
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_table import by_condition, pivoted, read_scores
from heatcheck.judging.patients import judged
from heatcheck.methods import METHODS
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested_rates import rates_against
from heatcheck.stats.resampling.nested_studentised import ComparedMean, simultaneous_means
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.vocabulary import (
    BASELINE,
    CONTROL,
    CRITERION_METRICS,
    HALF,
    RANDOM_BOX,
    SIZES,
    floor_of,
)

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
    """Every comparison with a size that matters; `means` holds those of the controls too, by metric and method."""
    scores = {name: _by_rule(folder, name, settings) for name in CRITERION_METRICS}
    leading = {name: tables.get(PLAIN, _NONE) for name, tables in scores.items()}
    if all(table.empty for table in leading.values()):
        return
    yield from _against_controls(folder, leading, means, settings)
    yield from _against_half(leading["recovered"], settings)
    for metric, tables in scores.items():
        for under, table in tables.items():
            yield from _between_methods(table, metric, under, settings)


_NONE = pd.DataFrame(index=pd.MultiIndex.from_arrays([[]] * len(KEYS), names=KEYS))


def _by_rule(folder: Path, metric: str, settings: TriggerSettings) -> dict[str, pd.DataFrame]:
    """The values under each preset by condition, that of the leading one plain."""
    tables = by_condition(metric_scores(folder, metric, settings))
    return {
        under: wide(table, settings.methods) for under, table in tables.items() if set(facts_of(under)) <= {"preset"}
    }


def _against_controls(
    folder: Path,
    scores: Mapping[str, pd.DataFrame],
    means: Mapping[tuple[str, str], float],
    settings: TriggerSettings,
) -> Iterator[Estimate]:
    """Each method over all triggers less random boxes of the same size, and less its overlap on the baseline.

    All of them are one family: a method finds triggers only where every one of its differences is clear.
    """
    controls = [(metric, RANDOM_BOX, floor_of(metric)) for metric in CRITERION_METRICS]
    controls.append(("trigger_iou", BASELINE, CONTROL))
    differences, rows = {}, []
    for metric, other, control in controls:
        of_control = _by_rule(folder, control, settings).get(PLAIN, _NONE)
        differences[metric, other] = (scores[metric] - of_control).reindex(columns=settings.methods)
        for method in settings.methods:  # in the order of the columns
            size = settings.sizes.above_floor(means.get((control, method), math.nan), BEST)
            rows.append(Estimate(DIFFERENCE, metric, ALL, method, settings.model, other_method=other, size=size))
    columns = pd.concat(differences, axis=1)
    yield from compared(columns, rows, "each method against random boxes and the baseline", settings)


def _against_half(recovered: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """By how much each method's recovery exceeds one half; its direction alone matters."""
    rows = [
        Estimate(DIFFERENCE, "recovered", ALL, method, settings.model, other_method=HALF, size=0.0)
        for method in recovered.columns
    ]
    found = rates_against(recovered.to_numpy(float), design_of(recovered), 0.5)
    yield from _filled(rows, found, "recovery, each method against one half", settings)


def _between_methods(table: pd.DataFrame, metric: str, under: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """Every two methods on the images and triggers that all have, the one with the higher mean first; no floors.

    Those under another box rule are a family of their own: they say whether that rule would change the order.
    """
    methods = [name for name in settings.methods if not METHODS[name].is_floor and table[name].notna().any()]
    has_all = table[methods].notna().groupby("finding").any().all(axis=1)
    shared = table[table.index.get_level_values("finding").isin(has_all[has_all].index)][methods]
    if len(methods) < 2 or shared.empty:
        return
    shared = shared[shared.notna().all(axis=1)]
    pairs = list(combinations(methods, 2))
    columns = pd.DataFrame({pair: shared[pair[0]] - shared[pair[1]] for pair in pairs})
    size = settings.sizes.between_methods(SIZES[metric])
    template = Estimate(DIFFERENCE, metric, ALL, model=settings.model, condition=under, size=size)
    note = coverage(int(has_all.sum()), len(settings.triggers), "triggers")
    rows = [replace(template, method=one, other_method=other, reason=note) for one, other in pairs]
    rule = facts_of(under).get("preset", "")
    family = f"{metric}, every two methods{f', boxes by {rule}' if rule else ''}"
    yield from compared(columns, rows, family, settings)


def compared(
    columns: pd.DataFrame, rows: Sequence[Estimate], family: str, settings: TriggerSettings
) -> Iterator[Estimate]:
    """The rows, one for each column, with simultaneous intervals; columns are differences with the index `KEYS`."""
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
