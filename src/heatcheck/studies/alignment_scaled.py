"""Scores on the scale on which a random map has 0 and the readers have 1."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from heatcheck.core.records import HUMAN, Estimate, condition
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested_ratios import nested_ratios
from heatcheck.studies.alignment_means import DRAWN, columns_of, filled, reason_of
from heatcheck.studies.alignment_reading import MetricScores
from heatcheck.studies.alignment_rule import ARMS, DIRECTIONS, FLOOR, FLOOR_METHOD, HUMAN_ARM, AlignmentRule, blank

NO_FLOOR = "no scores of random maps"
NO_HUMAN = "no scores of readers"
ROOM = {
    "readers": "what readers score above the floor",
    "truth": "what the mask itself scores above the floor",
}


def scaled_rows(scores: MetricScores, rule: AlignmentRule) -> Iterator[Estimate]:
    """(Score less floor) over (human less floor), as a ratio of means over the images that have all three."""
    floor = _by_image(scores, FLOOR, FLOOR_METHOD)
    human = _by_image(scores, HUMAN_ARM, HUMAN) if rule.human == "readers" else floor * 0 + 1
    conditions = [condition(arm=arm) for arm in ARMS]
    if rule.judged:
        conditions += [condition(arm=arm, through=rule.through) for arm in DIRECTIONS]
    for at in conditions:
        made = replace(blank("scaled", scores.metric), condition=at)
        yield from _scaled(scores, floor, human, made, rule)


def _by_image(scores: MetricScores, arm: str, method: str) -> pd.Series:
    """What is known of an image whatever the network, by finding and case."""
    table = scores.wide(condition(arm=arm), [("", method)]).table
    return pd.Series(table.to_numpy()[:, 0], _images(table))


def _images(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays([table.index.get_level_values(name) for name in ("finding", "case")])


def _scaled(
    scores: MetricScores, floor: pd.Series, human: pd.Series, made: Estimate, rule: AlignmentRule
) -> Iterator[Estimate]:
    columns = columns_of(scores.metric, made.condition, rule)
    wide = scores.wide(made.condition, columns)
    for finding in rule.findings:
        own = wide.of_finding(finding)
        images = _images(own)
        beneath, above = (each.reindex(images).to_numpy(float)[:, None] for each in (floor, human))
        seeds, patients = (wide.labels(own, name) for name in DRAWN)
        trained = bool(own.index.get_level_values("seed").any())
        values = own.to_numpy(float)
        found = nested_ratios(
            values - beneath, np.broadcast_to(above - beneath, values.shape), Design(seeds, patients), rule.draws,
            rule.generator("scaled", scores.metric, finding, made.condition), ROOM[rule.human],
        )  # fmt: skip
        lacking = NO_FLOOR if np.isnan(beneath).all() else NO_HUMAN if np.isnan(above).all() else ""
        for column, one in zip(columns, found, strict=True):
            why_not = wide.why_not(column, finding) or (lacking if len(own) else "")
            reason = reason_of(one, rule, len(rule.findings), why_not, trained=trained)
            yield filled(replace(made, finding=finding, model=column[0], method=column[1]), one, reason)
