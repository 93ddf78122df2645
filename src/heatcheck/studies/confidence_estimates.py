"""Whether a map is better where the model is surer: scores against the model's probability."""

import math
from collections.abc import Iterator

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate, condition
from heatcheck.stats.gee import logistic_gee
from heatcheck.stats.regression import clustered_least_squares, least_squares, min_max
from heatcheck.stats.spearman import spearman
from heatcheck.studies.score_grid import Grid, PaperRule, ScoreGrid, fitted, is_logistic
from heatcheck.studies.shape_estimates import REFERENCE

PROBABILITY = condition(feature="probability")


def confidence_estimates(
    grid: ScoreGrid, predictions: pd.DataFrame, rule: PaperRule, preset: str = ""
) -> list[Estimate]:
    """The slope of each method's score on the model's probability, for each finding and over all.

    Recommended: probabilities are scaled by their range on each finding, because models are surer of some findings
    than of others; over all findings each has its own level; errors are clustered by patient, and a hit's log odds
    are modelled. The reference: a plain line through the raw probabilities, and their rank correlation.
    """
    mine = predictions[predictions["model"] == rule.model]
    if preset != REFERENCE:
        scaled = mine.groupby("finding", observed=True)["probability"].transform(lambda p: min_max(p.to_numpy(float)))
        mine = mine.assign(probability=scaled)
    probability = grid.laid_beside(mine, "probability")
    estimate = _reference if preset == REFERENCE else _recommended
    return [
        row
        for method in rule.methods
        if method in grid.by_method
        for finding in (*rule.findings, ALL)
        for row in estimate(grid, probability, method, finding, rule)
    ]


def _recommended(grid: ScoreGrid, probability: Grid, method: str, finding: str, rule: PaperRule) -> Iterator[Estimate]:
    rows = grid.observations(probability, grid.by_method[method], None if finding == ALL else finding)
    fit = logistic_gee if is_logistic(grid, rule) else clustered_least_squares
    blank = Estimate("slope", grid.metric, finding, method, rule.model, math.nan, condition=PROBABILITY)
    yield fitted(blank, fit(rows))


def _reference(grid: ScoreGrid, probability: Grid, method: str, finding: str, rule: PaperRule) -> Iterator[Estimate]:
    at = condition(feature="probability", preset=REFERENCE)
    rows = grid.observations(probability, grid.by_method[method], None if finding == ALL else finding)
    for statistic, fit in (("slope", least_squares), ("spearman", spearman)):
        blank = Estimate(statistic, grid.metric, finding, method, rule.model, math.nan, condition=at)
        yield fitted(blank, fit(rows.feature, rows.scores))
