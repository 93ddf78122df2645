"""From an alignment run's scores and predictions to the numbers of its tables; blame is told from these."""

from pathlib import Path

from heatcheck.core.records import Estimate
from heatcheck.studies.alignment_means import RELIANCE, Ends, difference_rows, mean_rows, robustness_rows
from heatcheck.studies.alignment_predictions import prediction_rows
from heatcheck.studies.alignment_reading import read_scores
from heatcheck.studies.alignment_regressions import correlation_rows, regression_rows
from heatcheck.studies.alignment_rule import AlignmentRule
from heatcheck.studies.alignment_scaled import scaled_rows


def alignment_estimates(folder: Path, rule: AlignmentRule) -> list[Estimate]:
    """Every estimate of an alignment run but its blame table, from its joined tables; one metric at a time is read."""
    rows: list[Estimate] = []
    ends = {}
    for metric in rule.metrics:
        scores = read_scores(folder, metric)
        rows += mean_rows(scores, rule)
        ends[metric] = Ends.of(scores, rule)
        rows += robustness_rows(ends[metric], metric, rule)
        rows += difference_rows(scores, rule)
        rows += scaled_rows(scores, rule)
    for metric in RELIANCE:
        scores = read_scores(folder, metric)
        rows += mean_rows(scores, rule)
        if metric == RELIANCE[0]:
            rows += difference_rows(scores, rule)
    rows += regression_rows(ends, rule)
    rows += correlation_rows(ends, rule)
    rows += prediction_rows(folder, rule)
    return rows
