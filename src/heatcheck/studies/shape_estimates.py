"""Whether a method localizes some shapes better than others: its scores against the geometry of the truth."""

import math
from collections.abc import Iterator

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate, condition
from heatcheck.stats.gee import logistic_gee
from heatcheck.stats.regression import Fit, clustered_least_squares, least_squares, min_max
from heatcheck.studies.score_grid import Grid, PaperRule, ScoreGrid, fitted, is_logistic

FEATURES = ("instances", "size", "elongation", "irrectangularity")
REFERENCE = "chexlocalize"  # the preset whose numbers are the paper's


def shape_estimates(grid: ScoreGrid, shapes: pd.DataFrame, rule: PaperRule, preset: str = "") -> list[Estimate]:
    """The slope of each method's score, and of its distance from the readers, on each feature, over all findings.

    A feature is scaled by its range over all annotated findings, so a slope is the change from the smallest to the
    largest. Recommended: every finding has its own level, errors are clustered by patient, and a hit's log odds are
    modelled; a distance from the readers is no chance, so its slope is always that of a line. The reference: one plain
    line through all points.
    """
    here = shapes[shapes["finding"].isin(rule.findings)]
    rows: list[Estimate] = []
    for feature in FEATURES:
        column = rule.instances if feature == "instances" and not preset else feature
        scaled = here[["case", "finding"]].assign(scaled=min_max(here[column].to_numpy(float)))
        rows += _slopes(grid, grid.laid_beside(scaled, "scaled"), feature, rule, preset)
    return rows


def _slopes(grid: ScoreGrid, feature: Grid, name: str, rule: PaperRule, preset: str) -> Iterator[Estimate]:
    at = condition(feature=name, preset=preset) if preset else condition(feature=name)
    human = grid.by_method.get(HUMAN)
    for method in rule.methods:
        if method not in grid.by_method:
            continue
        values = grid.by_method[method]
        blank = Estimate("slope", grid.metric, ALL, method, rule.model, math.nan, condition=at)
        yield fitted(blank, _fit(grid, feature, values, preset, is_hit=is_logistic(grid, rule)))
        if human is not None:
            blank = Estimate("slope", grid.metric, ALL, method, rule.model, math.nan, other_method=HUMAN, condition=at)
            yield fitted(blank, _fit(grid, feature, human - values, preset, is_hit=False))


def _fit(grid: ScoreGrid, feature: Grid, values: Grid, preset: str, *, is_hit: bool) -> Fit:
    rows = grid.observations(feature, values)
    if preset == REFERENCE:
        return least_squares(rows.feature, rows.scores)
    return logistic_gee(rows) if is_hit else clustered_least_squares(rows)
