"""The scores of one case: every method and every reader on every finding."""

import math
from collections.abc import Sequence
from dataclasses import replace

from heatcheck.core.records import Measured, Score
from heatcheck.explaining.batch import Explained
from heatcheck.scoring.rows import PLAIN, PLAINLY_PLACED, MapTarget, ScoringRule, TunedSettings, human_rows, score_map
from heatcheck.studies.localization.vocabulary import TESTED


def score_case(explained: Explained, findings: Sequence[str], model: str, rule: ScoringRule) -> list[Score]:
    """The rows of all methods and all readers on all findings."""
    case = explained.case
    rows: list[Score] = []
    for column, finding in enumerate(findings):
        for method in explained.grids:
            target = MapTarget(case, finding, method, explained.probabilities[column])
            rows += _map_rows(explained, column, target, model, rule)
        if rule.readers:
            rows += human_rows(case, finding, rule)
    return rows


def _map_rows(explained: Explained, column: int, target: MapTarget, model: str, rule: ScoringRule) -> list[Score]:
    """The rows of one map; one that plain resizing would move is scored as other tools place it, too.

    Under the benchmark's rules it is scored there alone.
    """
    values = explained.map_of(target.method, column)
    if values is None:
        return score_map(target, Measured(math.nan, explained.why_missing(target.method, column)), model, rule).rows
    if explained.grids[target.method].cells is None:
        return score_map(target, values, model, rule).rows
    plain = explained.map_of(target.method, column, plain=True)
    metrics = tuple(metric for metric in rule.metrics if metric in TESTED)
    moved = replace(rule, metrics=metrics, thresholds=(), tuned=TunedSettings(), counts=False)
    return [
        *score_map(target, values, model, replace(rule, reference=False)).rows,
        *(
            replace(row, condition=PLAINLY_PLACED) if row.condition == PLAIN else row
            for row in score_map(target, values if plain is None else plain, model, moved).rows
        ),
    ]
