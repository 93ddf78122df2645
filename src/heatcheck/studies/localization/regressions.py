"""Whether scores rise with the geometry of the truth, or with the model's confidence."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import logit

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import SLOPE, SPEARMAN, condition
from heatcheck.estimating.slopes import Slope, usual_range
from heatcheck.stats.gee import logistic_gee
from heatcheck.stats.regression import Fit, clustered_least_squares, least_squares, min_max
from heatcheck.stats.spearman import spearman
from heatcheck.studies.localization.score_grid import Grid, ScoreGrid, is_logistic
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import FEATURES, PAPER_PRESET, PROBABILITY


def _size(feature: Grid, metric: str, settings: LocalizationSettings, *, is_hit: bool) -> float:
    """The slope that matters: over the feature's usual range, the score changes by what matters between two methods.

    Of a hit, whose log odds are fitted, that is the change of the log odds about even odds.
    """
    change = settings.sizes.between_methods(metric)
    return float((2 * logit(0.5 + change / 2) if is_hit else change) / usual_range(feature))


def shape_estimates(
    grid: ScoreGrid, shapes: pd.DataFrame, settings: LocalizationSettings, preset: str = ""
) -> list[Slope]:
    """The slope of each method's score, and of its distance from the readers, on each feature, over all findings.

    A feature is scaled by its range over all annotated findings, so a slope is the change from the smallest to the
    largest. Recommended: every finding has its own level, errors are clustered by patient, and a hit's log odds are
    modelled; a distance from the readers is no chance, so its slope is always that of a line. The reference: one plain
    line through all points.
    """
    annotated = shapes[shapes["finding"].isin(settings.findings)]
    rows: list[Slope] = []
    for feature in FEATURES:
        column = settings.instances if feature == "instances" and not preset else feature
        values = annotated[column].to_numpy(float)
        same = len(np.unique(values[~np.isnan(values)])) == 1  # min_max would call the values undefined
        scaled = annotated[["case", "finding"]].assign(scaled=values - values if same else min_max(values))
        rows += _slopes(grid, grid.on_grid(scaled, "scaled"), feature, settings, preset)
    return rows


def _slopes(grid: ScoreGrid, feature: Grid, name: str, settings: LocalizationSettings, preset: str) -> Iterator[Slope]:
    under = condition(feature=name, preset=preset) if preset else condition(feature=name)
    human = grid.by_method.get(HUMAN)
    is_hit = is_logistic(grid, settings) and preset != PAPER_PRESET
    sizes = {
        hit: math.nan if preset == PAPER_PRESET else _size(feature, grid.metric, settings, is_hit=hit)
        for hit in (True, False)
    }
    for method in settings.methods:
        if method not in grid.by_method:
            continue
        values = grid.by_method[method]
        template = Estimate(SLOPE, grid.metric, ALL, method, settings.model, condition=under)
        yield Slope(replace(template, size=sizes[is_hit]), _fit(grid, feature, values, preset, is_hit=is_hit))
        if human is not None:
            distance = _fit(grid, feature, human - values, preset, is_hit=False)
            yield Slope(replace(template, other_method=HUMAN, size=sizes[False]), distance)


def _fit(grid: ScoreGrid, feature: Grid, values: Grid, preset: str, *, is_hit: bool) -> Fit:
    rows = grid.observations(feature, values)
    if preset == PAPER_PRESET:
        return least_squares(rows.feature, rows.scores)
    return logistic_gee(rows) if is_hit else clustered_least_squares(rows)


def confidence_estimates(
    grid: ScoreGrid, predictions: pd.DataFrame, settings: LocalizationSettings, preset: str = ""
) -> list[Slope]:
    """The slope of each method's score on the model's probability, for each finding and over all.

    The recommended scores are those of cases with the finding alone: overlap with nothing is 0, and a model that can
    tell is less sure there, so over all images the overlap of any map rises, even of noise. The paper fits all images.

    Recommended: probabilities are scaled by their range on each finding, because models are surer of some findings
    than of others; over all findings each has its own level; errors are clustered by patient, and a hit's log odds
    are modelled. The reference: a plain line through the raw probabilities, and their rank correlation.
    """
    answers = predictions[predictions["model"] == settings.model]
    if preset != PAPER_PRESET:
        by_finding = answers.groupby("finding", observed=True)["probability"]
        answers = answers.assign(probability=by_finding.transform(lambda p: min_max(p.to_numpy(float))))
    probability = grid.on_grid(answers, "probability")
    return [
        row
        for method in settings.methods
        if method in grid.by_method
        for finding in (*settings.findings, ALL)
        for row in _on_probability(grid, probability, method, finding, settings, preset)
    ]


def _on_probability(
    grid: ScoreGrid, probability: Grid, method: str, finding: str, settings: LocalizationSettings, preset: str
) -> Iterator[Slope]:
    rows = grid.observations(probability, grid.by_method[method], None if finding == ALL else finding)
    template = Estimate(SLOPE, grid.metric, finding, method, settings.model)
    if preset == PAPER_PRESET:
        template = replace(template, condition=condition(feature=PROBABILITY, preset=PAPER_PRESET))
        yield Slope(template, least_squares(rows.feature, rows.scores))
        yield Slope(replace(template, statistic=SPEARMAN), spearman(rows.feature, rows.scores))
    else:
        is_hit = is_logistic(grid, settings)
        size = _size(rows.feature, grid.metric, settings, is_hit=is_hit)
        fit = logistic_gee if is_hit else clustered_least_squares
        yield Slope(replace(template, condition=condition(feature=PROBABILITY), size=size), fit(rows))
