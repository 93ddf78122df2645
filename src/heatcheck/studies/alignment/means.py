"""Means of an alignment run's scores over images and seeds, their differences, and both on the readers' scale."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, Condition, condition, facts_of
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_table import by_condition, pivoted, read_scores, reasons_by_count
from heatcheck.stats.resampling.bca import NO_VALUE
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested import NO_SEED, ONE_SEED, NestedEstimate, nested_means
from heatcheck.stats.resampling.nested_ratios import nested_ratios
from heatcheck.studies.alignment.cells import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    ARMS,
    BY_IMAGE,
    DIRECTIONS,
    FINETUNE,
    FLOOR,
    FLOOR_METHOD,
    HUMAN_ARM,
    PLACEBO,
    RELIANCE,
    ROBUSTNESS,
    SCALED,
)

KEYS = ["finding", "seed", "case", "patient"]  # an image of a network; what was not trained has seed 0
NO_SCORES = "no scores"
Column = tuple[str, str]  # model and method
Reasons = Mapping[tuple[str, str, str], str]  # by model, method and finding


@dataclass(frozen=True)
class Wide:
    """Values by image and pair of model and method, and why some pairs have none."""

    table: pd.DataFrame  # the index is KEYS, the columns are pairs; NaN where undefined or never scored
    reasons: Reasons

    def why_not(self, column: Column, finding: str) -> str:
        """The commonest reason of the values that a pair lacks on a finding, or on any of them."""
        return self.reasons.get((*column, finding), "")

    @property
    def pairs(self) -> list[Column]:
        """Its columns."""
        return [(str(pair[0]), str(pair[1])) for pair in self.table.columns.to_list()]

    def __sub__(self, other: "Wide") -> "Wide":
        """The differences, image by image; where one of the two is undefined, so is the difference."""
        return Wide(self.table - other.table, {**other.reasons, **self.reasons})

    def renamed(self, columns: Sequence[Column], given: Sequence[Column]) -> "Wide":
        """The given columns under other names, in their order."""
        values = self.table[list(given)].set_axis(pd.MultiIndex.from_tuples(columns), axis=1)
        findings = {key[2] for key in self.reasons}
        pairs = list(zip(columns, given, strict=True))
        reasons = {(*new, f): why for f in findings for new, old in pairs if (why := self.why_not(old, f))}
        return Wide(values, reasons)

    @staticmethod
    def labels(table: pd.DataFrame, level: str) -> Int[np.ndarray, " rows"]:
        """What each row has of one of the KEYS, as the number of its name in sorted order."""
        return np.asarray(pd.factorize(table.index.get_level_values(level), sort=True)[0])

    def of_finding(self, finding: str) -> pd.DataFrame:
        """One finding's rows."""
        return self.table[self.table.index.get_level_values("finding") == finding]


@dataclass(frozen=True)
class MetricScores:
    """All values of one metric, by their condition without the seed."""

    metric: str
    by_condition: Mapping[str, pd.DataFrame]

    def columns(self, at: str) -> list[Column]:
        """The pairs that were scored under a condition."""
        table = self.by_condition.get(at)
        return [] if table is None else sorted(set(zip(table["model"], table["method"], strict=True)))

    def wide(self, at: str, columns: Sequence[Column]) -> Wide:
        """Those pairs under a condition, whether they were scored or not."""
        names = pd.MultiIndex.from_tuples(columns, names=["model", "method"])
        table = self.by_condition.get(at)
        if table is None:
            none = pd.MultiIndex.from_arrays([[], np.array([], int), [], []], names=KEYS)
            return Wide(pd.DataFrame(np.empty((0, len(names))), none, names), {})
        return Wide(pivoted(table, KEYS, ["model", "method"]).reindex(columns=names), _reasons(table))


def read_metric(folder: Path, metric: str) -> MetricScores:
    """One metric's values."""
    words = ["case", "patient", "finding", "method", "model", "reason"]
    return MetricScores(metric, by_condition(read_scores(folder, words, [("metric", "==", metric)], "seed")))


def _reasons(table: pd.DataFrame) -> Reasons:
    """The commonest reason by model, method and finding, and by model and method."""
    found: dict[tuple[str, str, str], str] = {}
    for model, method, finding, reason in reasons_by_count(table, ["model", "method", "finding"]):
        found[model, method, finding] = found[model, method, ALL] = reason
    return found


OF_NETWORKS = (RELIANCE, PLACEBO)  # measured without a map
POOLED = condition(pooled=BY_IMAGE)
DRAWN = ("seed", "patient")  # what is drawn again
SHARED = ("base", "control")  # arms whose networks belong to no method


def columns_of(metric: str, at: str, settings: AlignmentSettings) -> list[Column]:
    """The pairs of model and method that a metric should have under a condition."""
    facts = facts_of(at)
    arm = facts["arm"]
    if arm in {FLOOR, HUMAN_ARM}:
        return [("", FLOOR_METHOD if arm == FLOOR else HUMAN)]
    if metric in OF_NETWORKS:
        methods: tuple[str, ...] = ("",) if arm in SHARED else settings.methods
    elif "through" in facts:
        methods = settings.judged
    else:
        methods = (*settings.methods, *settings.judged) if arm in SHARED and "split" not in facts else settings.methods
    return [(base.key, method) for base in settings.fine_tuned for method in methods]


def mean_rows(scores: MetricScores, settings: AlignmentSettings) -> Iterator[Estimate]:
    """The mean of every pair in every arm, on each finding and over all of them."""
    expected = [condition(arm=arm) for arm in ARMS]
    if scores.metric not in OF_NETWORKS:
        expected.append(condition(arm=FLOOR))
    for at in dict.fromkeys([*expected, *scores.by_condition]):
        columns = list(dict.fromkeys([*columns_of(scores.metric, at, settings), *scores.columns(at)]))
        blank = Estimate(MEAN, scores.metric, condition=at)
        yield from averaged(scores.wide(at, columns), blank, settings)


@dataclass(frozen=True)
class ArmScores:
    """Scores of the methods that networks were trained through, toward the masks and away from them."""

    align: Wide
    misalign: Wide

    @classmethod
    def of(cls, scores: MetricScores, settings: AlignmentSettings) -> "ArmScores":
        """One metric's."""
        at = [condition(arm=arm) for arm in DIRECTIONS]
        return cls(*(scores.wide(each, columns_of(scores.metric, each, settings)) for each in at))

    @property
    def apart(self) -> Wide:
        """Aligned less misaligned, by image and seed."""
        return self.align - self.misalign


def robustness_rows(ends: ArmScores, metric: str, settings: AlignmentSettings) -> Iterator[Estimate]:
    """How far aligned and misaligned networks lie apart; over all findings each counts the same, or each image."""
    yield from averaged(ends.apart, Estimate(ROBUSTNESS, metric), settings)
    yield from averaged(ends.apart, Estimate(ROBUSTNESS, metric, condition=POOLED), settings)


def difference_rows(scores: MetricScores, settings: AlignmentSettings) -> Iterator[Estimate]:
    """How far fine-tuning moved each pair beyond its control, and how far the base is from the floor."""
    metric = scores.metric
    compared: list[Condition] = [{"arm": arm, "versus": "control"} for arm in DIRECTIONS]
    if metric not in OF_NETWORKS:
        compared.append({"arm": "base", "versus": FLOOR})
        compared.append({"arm": "align", "versus": "control", "split": FINETUNE})
        if settings.judged:
            compared += [{"arm": arm, "versus": "control", "through": settings.through} for arm in DIRECTIONS]
    for facts in compared:
        blank = Estimate(DIFFERENCE, metric, condition=condition(**facts))
        yield from averaged(_difference(scores, facts, settings), blank, settings)


def _difference(scores: MetricScores, facts: Condition, settings: AlignmentSettings) -> Wide:
    """Each pair's scores in one arm less those in the other, image by image and seed by seed."""
    minuend, subtrahend = facts.copy(), Condition(arm=facts["versus"])
    del minuend["versus"]
    if "split" in facts:
        subtrahend["split"] = facts["split"]
    left, right = condition(**minuend), condition(**subtrahend)
    columns = columns_of(scores.metric, left, settings)
    others = columns
    if facts["versus"] == FLOOR:
        others = [("", FLOOR_METHOD)] * len(columns)
    elif scores.metric in OF_NETWORKS:
        others = [(model, "") for model, _ in columns]
    beneath = scores.wide(right, sorted(set(others)))
    return scores.wide(left, columns) - beneath.renamed(columns, others)


def averaged(wide: Wide, blank: Estimate, settings: AlignmentSettings) -> Iterator[Estimate]:
    """The blank filled for every pair, on each finding and over all of them."""
    pooled = blank.condition == POOLED
    within = (0.0, 1.0) if blank.statistic == MEAN else (-1.0, 1.0)
    within = (-math.inf, math.inf) if blank.metric in OF_NETWORKS else within
    for finding in (ALL,) if pooled else (*settings.findings, ALL):
        own = wide.table if finding == ALL else wide.of_finding(finding)
        findings, seeds, patients = (wide.labels(own, name) for name in ("finding", *DRAWN))
        design = Design(seeds, patients, None if pooled else findings)
        trained = bool(own.index.get_level_values("seed").any())
        generator = settings.generator(blank.statistic, blank.metric, finding, blank.condition)
        values = own.to_numpy(float)
        found = nested_means(values, design, settings.draws, generator, within=within)
        for column, one, scored in zip(wide.pairs, found, values.T, strict=True):
            covered = len(np.unique(findings[~np.isnan(scored)])) if finding == ALL else len(settings.findings)
            reason = reason_of(one, settings, covered, wide.why_not(column, finding), trained=trained)
            yield fill(replace(blank, finding=finding, model=column[0], method=column[1]), one, reason)


def reason_of(one: NestedEstimate, settings: AlignmentSettings, covered: int, why_not: str, *, trained: bool) -> str:
    """Why a part of an estimate is missing, or else what it does not rest on.

    That an interval knows one seed only is noted where the run has several: else the report says it once, and what was
    not fine-tuned has no seeds.
    """
    if one.reason in {NO_SEED, NO_VALUE}:
        return why_not or NO_SCORES
    if one.reason:
        return one.reason  # alone: others look for it
    several = trained and len(settings.seeds) > 1
    note = one.note if several else one.note.removeprefix(ONE_SEED).removeprefix("; ")
    seeds = coverage(one.n_seeds, len(settings.seeds), "seeds") if trained else ""
    return joined(note, seeds, coverage(covered, len(settings.findings)))


NO_FLOOR = "no scores of random maps"
NO_HUMAN = "no scores of readers"
ROOM = {
    "readers": "what readers score above the floor",
    "truth": "what the mask itself scores above the floor",
}


def scaled_rows(scores: MetricScores, settings: AlignmentSettings) -> Iterator[Estimate]:
    """(Score less floor) over (human less floor), as a ratio of means over the images that have all three."""
    floor = _by_image(scores, FLOOR, FLOOR_METHOD)
    human = _by_image(scores, HUMAN_ARM, HUMAN) if settings.human == "readers" else floor * 0 + 1
    conditions = [condition(arm=arm) for arm in ARMS]
    if settings.judged:
        conditions += [condition(arm=arm, through=settings.through) for arm in DIRECTIONS]
    for at in conditions:
        blank = Estimate(SCALED, scores.metric, condition=at)
        yield from _scaled(scores, floor, human, blank, settings)


def _by_image(scores: MetricScores, arm: str, method: str) -> pd.Series:
    """What is known of an image whatever the network, by finding and case."""
    table = scores.wide(condition(arm=arm), [("", method)]).table
    return pd.Series(table.to_numpy()[:, 0], _images(table))


def _images(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays([table.index.get_level_values(name) for name in ("finding", "case")])


def _scaled(
    scores: MetricScores, floor: pd.Series, human: pd.Series, blank: Estimate, settings: AlignmentSettings
) -> Iterator[Estimate]:
    columns = columns_of(scores.metric, blank.condition, settings)
    wide = scores.wide(blank.condition, columns)
    for finding in settings.findings:
        own = wide.of_finding(finding)
        images = _images(own)
        beneath, above = (each.reindex(images).to_numpy(float)[:, None] for each in (floor, human))
        seeds, patients = (wide.labels(own, name) for name in DRAWN)
        trained = bool(own.index.get_level_values("seed").any())
        values = own.to_numpy(float)
        found = nested_ratios(
            values - beneath, np.broadcast_to(above - beneath, values.shape), Design(seeds, patients), settings.draws,
            settings.generator(SCALED, scores.metric, finding, blank.condition), ROOM[settings.human],
        )  # fmt: skip
        lacking = NO_FLOOR if np.isnan(beneath).all() else NO_HUMAN if np.isnan(above).all() else ""
        for column, one in zip(columns, found, strict=True):
            why_not = wide.why_not(column, finding) or (lacking if len(own) else "")
            reason = reason_of(one, settings, len(settings.findings), why_not, trained=trained)
            yield fill(replace(blank, finding=finding, model=column[0], method=column[1]), one, reason)
