"""The scores of one case: every method and every reader on every finding."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from heatcheck.core.records import Map, Measured, Score
from heatcheck.core.vocabulary import facts_of
from heatcheck.explaining.batch import Explained
from heatcheck.metrics.features import small_copy
from heatcheck.scoring.features import feature_rows
from heatcheck.scoring.reader_rows import human_rows
from heatcheck.scoring.rows import PLAIN, PLAINLY_PLACED, MapTarget, ScoringRule, TunedSettings, score_map
from heatcheck.studies.localization.vocabulary import TESTED


def score_case(explained: Explained, findings: Sequence[str], model: str, rule: ScoringRule) -> list[Score]:
    """The rows of all methods and all readers on all findings."""
    case = explained.case
    rows: list[Score] = []
    for column, finding in enumerate(findings):
        small_maps: dict[str, Map] = {}
        for method in explained.grids:
            target = MapTarget(case, finding, method, explained.probabilities[column])
            values = explained.map_of(method, column)
            if values is None:
                missing = Measured(math.nan, explained.why_missing(method, column))
                rows += score_map(target, missing, model, rule).rows
                continue
            if explained.grids[method].cells is None:
                rows += score_map(target, values, model, rule).rows
            else:
                rows += score_map(target, values, model, replace(rule, reference=False)).rows
                rows += _plainly_placed(explained, column, target, model, rule)
            if method in rule.described:
                small_maps[method] = small_copy(values)
        rows += feature_rows(case, finding, small_maps, model)
        if rule.readers:
            rows += human_rows(case, finding, rule)
    return rows


def _plainly_placed(
    explained: Explained, column: int, target: MapTarget, model: str, rule: ScoringRule
) -> Iterator[Score]:
    """The rows of a coarse map as other tools place it; under the benchmark's rules it is scored there alone."""
    plain = explained.map_of(target.method, column, plain=True)
    if plain is None:
        return
    metrics = tuple(metric for metric in rule.metrics if metric in (*TESTED, "iou_full"))
    tuned = TunedSettings(reference_cutoffs=rule.tuned.reference_cutoffs)
    moved = replace(rule, metrics=metrics, thresholds=(), tuned=tuned, counts=False)
    for row in score_map(target, plain, model, moved).rows:
        if row.condition == PLAIN and row.metric in TESTED:
            yield replace(row, condition=PLAINLY_PLACED)
        elif "preset" in facts_of(row.condition):
            yield row
