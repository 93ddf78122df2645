"""Means on the common scale, on which 0 is a random map and 1 the human marks."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.estimating.estimates import fill
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested_ratios import nested_ratios
from heatcheck.studies.alignment.estimating.means import DRAWN, MetricScores, columns_of, reason_of
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import ARMS, DIRECTIONS, FLOOR, HUMAN_ARM, RANDOM, SCALED

NO_FLOOR = "no scores of random maps"
NO_HUMAN = "no scores of readers"
ROOM = {
    "readers": "what readers score above the floor",
    "truth": "what the mask itself scores above the floor",
}


def scaled_rows(scores: MetricScores, settings: AlignmentSettings) -> Iterator[Estimate]:
    """(Score less floor) over (human less floor), as a ratio of means over the images that have all three."""
    floor = _by_image(scores, FLOOR, RANDOM)
    human = _by_image(scores, HUMAN_ARM, HUMAN) if settings.human == "readers" else floor * 0 + 1
    conditions = [condition(arm=arm) for arm in ARMS]
    if settings.judged:
        conditions += [condition(arm=arm, through=settings.through) for arm in DIRECTIONS]
    for under in conditions:
        yield from _scaled(scores, floor, human, Estimate(SCALED, scores.metric, condition=under), settings)


def _by_image(scores: MetricScores, arm: str, method: str) -> pd.Series:
    """Scores that depend on no network, by finding and case."""
    table = scores.wide(condition(arm=arm), [("", method)]).table
    return pd.Series(table.to_numpy()[:, 0], _images(table))


def _images(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays([table.index.get_level_values(name) for name in ("finding", "case")])


def _scaled(
    scores: MetricScores, floor: pd.Series, human: pd.Series, template: Estimate, settings: AlignmentSettings
) -> Iterator[Estimate]:
    columns = columns_of(scores.metric, template.condition, settings)
    wide = scores.wide(template.condition, columns)
    for finding in settings.findings:
        rows = wide.rows_of(finding)
        images = _images(rows)
        lower, upper = (each.reindex(images).to_numpy(float)[:, None] for each in (floor, human))
        seeds, patients = (wide.labels(rows, name) for name in DRAWN)
        trained = bool(rows.index.get_level_values("seed").any())
        values = rows.to_numpy(float)
        ratios = nested_ratios(
            values - lower, np.broadcast_to(upper - lower, values.shape), Design(seeds, patients), settings.draws,
            settings.generator(SCALED, scores.metric, finding, template.condition), ROOM[settings.human],
        )  # fmt: skip
        missing_end = NO_FLOOR if np.isnan(lower).all() else NO_HUMAN if np.isnan(upper).all() else ""
        for column, ratio in zip(columns, ratios, strict=True):
            why_not = wide.why_not(column, finding) or (missing_end if len(rows) else "")
            reason = reason_of(ratio, settings, len(settings.findings), why_not, trained=trained)
            yield fill(replace(template, finding=finding, model=column[0], method=column[1]), ratio, reason)
