"""The scores of one case: every method and every reader on every finding."""

import math
from collections.abc import Sequence

from heatcheck.core.records import Measured, Score
from heatcheck.explaining.batch import Explained
from heatcheck.scoring.rows import MapTarget, ScoringRule, human_rows, score_map


def score_case(explained: Explained, findings: Sequence[str], model: str, rule: ScoringRule) -> list[Score]:
    """The rows of all methods and all readers on all findings."""
    case = explained.case
    rows: list[Score] = []
    for column, finding in enumerate(findings):
        for method in explained.grids:
            values = explained.map_of(method, column)
            scored = Measured(math.nan, explained.why_missing(method, column)) if values is None else values
            target = MapTarget(case, finding, method, explained.probabilities[column])
            rows += score_map(target, scored, model, rule).rows
        if rule.readers:
            rows += human_rows(case, finding, rule)
    return rows
