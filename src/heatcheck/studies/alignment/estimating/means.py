"""Means of an alignment run's scores over images and seeds, and their differences."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, Condition, condition, facts_of
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_table import by_condition, pivoted, read_scores, reasons_by_count
from heatcheck.judging.patients import judged
from heatcheck.stats.resampling.bca import NO_VALUE
from heatcheck.stats.resampling.cells import Design, cell_totals
from heatcheck.stats.resampling.joint_means import joint_means
from heatcheck.stats.resampling.nested import NO_SEED, ONE_SEED, NestedEstimate, nested_means, patient_influences
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    ADDED,
    ARMS,
    DIRECTIONS,
    FINETUNE,
    FLOOR,
    FLOORS,
    HUMAN_ARM,
    PLACEBO,
    RELIANCE,
    UNTRAINED,
)

KEYS = ["finding", "seed", "case", "patient"]  # an image and a network; what was not trained has seed 0
NO_SCORES = "no scores"
Column = tuple[str, str]  # model and method
Reasons = Mapping[tuple[str, str, str], str]  # by model, method and finding


@dataclass(frozen=True)
class Wide:
    """Values by image and by pair of model and method, and why some pairs have none."""

    table: pd.DataFrame  # the index is KEYS, the columns are pairs; NaN where undefined or never scored
    reasons: Reasons

    def why_not(self, column: Column, finding: str) -> str:
        """The commonest reason for the values that a pair lacks on a finding, or on any."""
        return self.reasons.get((*column, finding), "")

    @property
    def pairs(self) -> list[Column]:
        """The columns as tuples of words."""
        return [(str(pair[0]), str(pair[1])) for pair in self.table.columns.to_list()]

    def __sub__(self, other: "Wide") -> "Wide":
        """The differences by image, undefined where one of the two is."""
        return Wide(self.table - other.table, {**other.reasons, **self.reasons})

    def renamed(self, columns: Sequence[Column], given: Sequence[Column]) -> "Wide":
        """The `given` columns, renamed to `columns`; a given one may appear several times."""
        values = self.table[list(given)].set_axis(pd.MultiIndex.from_tuples(columns), axis=1)
        findings = {key[2] for key in self.reasons}
        pairs = list(zip(columns, given, strict=True))
        reasons = {(*new, f): why for f in findings for new, old in pairs if (why := self.why_not(old, f))}
        return Wide(values, reasons)

    @staticmethod
    def labels(table: pd.DataFrame, level: str) -> Int[np.ndarray, " rows"]:
        """One of the KEYS for each row, as a number in sorted order."""
        return np.asarray(pd.factorize(table.index.get_level_values(level), sort=True)[0])

    def rows_of(self, finding: str) -> pd.DataFrame:
        """The rows of one finding."""
        return self.table[self.table.index.get_level_values("finding") == finding]


@dataclass(frozen=True)
class MetricScores:
    """All values of one metric, by condition without the seed."""

    metric: str
    by_condition: Mapping[str, pd.DataFrame]

    def columns(self, under: str) -> list[Column]:
        """The pairs that were scored under a condition."""
        table = self.by_condition.get(under)
        return [] if table is None else sorted(set(zip(table["model"], table["method"], strict=True)))

    def wide(self, under: str, columns: Sequence[Column]) -> Wide:
        """The values of these pairs under a condition, whether they were scored or not."""
        names = pd.MultiIndex.from_tuples(columns, names=["model", "method"])
        table = self.by_condition.get(under)
        if table is None:
            none = pd.MultiIndex.from_arrays([[], np.array([], int), [], []], names=KEYS)
            return Wide(pd.DataFrame(np.empty((0, len(names))), none, names), {})
        return Wide(pivoted(table, KEYS, ["model", "method"]).reindex(columns=names), _reasons(table))


def read_metric(folder: Path, metric: str) -> MetricScores:
    """The scores of one metric."""
    words = ["case", "patient", "finding", "method", "model", "reason"]
    return MetricScores(metric, by_condition(read_scores(folder, words, [("metric", "==", metric)], "seed")))


def _reasons(table: pd.DataFrame) -> Reasons:
    """The commonest reason by model, method and finding, and by model and method."""
    reasons: dict[tuple[str, str, str], str] = {}
    for model, method, finding, reason in reasons_by_count(table, ["model", "method", "finding"]):
        reasons[model, method, finding] = reasons[model, method, ALL] = reason
    return reasons


OF_NETWORKS = (RELIANCE, PLACEBO, ADDED)  # measured without a map
DRAWN = ("seed", "patient")  # what is resampled
SHARED = ("base", "control", UNTRAINED)  # arms whose networks belong to no method


def columns_of(metric: str, under: str, settings: AlignmentSettings) -> list[Column]:
    """The pairs of model and method that a metric should have under a condition."""
    facts = facts_of(under)
    arm = facts["arm"]
    if arm in {FLOOR, HUMAN_ARM}:
        return [("", method) for method in (FLOORS if arm == FLOOR else (HUMAN,))]
    if metric in OF_NETWORKS:
        methods: tuple[str, ...] = ("",) if arm in SHARED else settings.methods
    elif "through" in facts:
        methods = settings.judged
    else:
        methods = (*settings.methods, *settings.judged) if arm in SHARED and "split" not in facts else settings.methods
    return [(base.key, method) for base in settings.fine_tuned for method in methods]


Sizes = Mapping[tuple[str, str], float]  # that matter, by finding and model; empty where nothing is judged
UNJUDGED: Sizes = {}


def mean_rows(scores: MetricScores, settings: AlignmentSettings, of_base: Sizes = UNJUDGED) -> Iterator[Estimate]:
    """The mean of every pair in every arm, for each finding and over all; `of_base` are sizes for the base's."""
    expected = [condition(arm=arm) for arm in ARMS]
    if scores.metric not in OF_NETWORKS:
        expected.append(condition(arm=FLOOR))
    for under in dict.fromkeys([*expected, *scores.by_condition]):
        columns = list(dict.fromkeys([*columns_of(scores.metric, under, settings), *scores.columns(under)]))
        template = Estimate(MEAN, scores.metric, condition=under)
        sizes = of_base if under == condition(arm="base") else UNJUDGED
        yield from averaged(scores.wide(under, columns), template, settings, sizes)


@dataclass(frozen=True)
class ArmScores:
    """Scores of the methods on the networks that were aligned and misaligned through them."""

    align: Wide
    misalign: Wide

    @classmethod
    def of(cls, scores: MetricScores, settings: AlignmentSettings) -> "ArmScores":
        """The part of these scores that belongs to the two directions."""
        both = (condition(arm=arm) for arm in DIRECTIONS)
        return cls(*(scores.wide(under, columns_of(scores.metric, under, settings)) for under in both))

    @property
    def robustness(self) -> Wide:
        """Aligned less misaligned, by image and seed."""
        return self.align - self.misalign


def difference_rows(scores: MetricScores, settings: AlignmentSettings) -> Iterator[Estimate]:
    """The differences of each pair from its control, and of a base's reliance from that of untrained networks."""
    metric = scores.metric
    both: list[Condition] = [{"arm": arm, "versus": "control"} for arm in DIRECTIONS]
    yield from _changes(scores, both, settings)
    if metric not in OF_NETWORKS:
        yield from _changes(scores, [{"arm": "align", "versus": "control", "split": FINETUNE}], settings)
        if settings.judged:
            yield from _changes(scores, [{**facts, "through": settings.through} for facts in both], settings)
    elif condition(arm=UNTRAINED) in scores.by_condition:
        facts: Condition = {"arm": "base", "versus": UNTRAINED}
        template = Estimate(DIFFERENCE, metric, condition=condition(**facts))
        yield from averaged(_difference(scores, facts, settings), template, settings)


def _changes(scores: MetricScores, group: Sequence[Condition], settings: AlignmentSettings) -> Iterator[Estimate]:
    """Differences from the control in one or both directions, with an interval each.

    Two or three seeds hardly know how much trainings differ, so both directions and all pairs of a finding share what
    they know of it (`joint_means`).
    """
    wides = [_difference(scores, facts, settings) for facts in group]
    templates = [Estimate(DIFFERENCE, scores.metric, condition=condition(**facts)) for facts in group]
    every = Wide(pd.concat([wide.table for wide in wides], axis=1), {})
    width = len(wides[0].pairs)
    for finding in (*settings.findings, ALL):
        rows = rows_of(every, finding)
        limits = range_of(templates[0])
        means = joint_means(rows.scores, rows.design, len(every.pairs), limits, together=False)
        for number, (wide, template) in enumerate(zip(wides, templates, strict=True)):
            own = slice(number * width, (number + 1) * width)
            found = [mean.estimate for mean in means[own]]
            reasons = reasons_of(replace(rows, scores=rows.scores[:, own]), found, wide, settings)
            for (model, method), mean, reason in zip(wide.pairs, found, reasons, strict=True):
                yield fill(replace(template, finding=finding, model=model, method=method), mean, reason)


def _difference(scores: MetricScores, facts: Condition, settings: AlignmentSettings) -> Wide:
    """Each pair's scores in one arm less those in the other, by image and seed."""
    minuend, subtrahend = facts.copy(), Condition(arm=facts["versus"])
    del minuend["versus"]
    if "split" in facts:
        subtrahend["split"] = facts["split"]
    left, right = condition(**minuend), condition(**subtrahend)
    columns = columns_of(scores.metric, left, settings)
    others = [(model, "") for model, _ in columns] if scores.metric in OF_NETWORKS else columns
    subtracted = scores.wide(right, sorted(set(others)))
    return scores.wide(left, columns) - subtracted.renamed(columns, others)


def floor_rows(
    scores: MetricScores, settings: AlignmentSettings, sizes: Mapping[str, Sizes] | None = None
) -> Iterator[Estimate]:
    """By how much the base's maps score above each floor, image by image; `sizes` are those of each floor."""
    under = condition(arm="base")
    columns = columns_of(scores.metric, under, settings)
    for floor in FLOORS:
        subtracted = scores.wide(condition(arm=FLOOR), [("", floor)]).renamed(columns, [("", floor)] * len(columns))
        template = Estimate(DIFFERENCE, scores.metric, condition=condition(arm="base", versus=floor))
        wide = scores.wide(under, columns) - subtracted
        yield from averaged(wide, template, settings, (sizes or {}).get(floor, UNJUDGED))


def averaged(
    wide: Wide, template: Estimate, settings: AlignmentSettings, sizes: Sizes = UNJUDGED
) -> Iterator[Estimate]:
    """The template filled in for every pair, for each finding and over all; judged where there is a size."""
    several = len(wide.table.index.unique("finding")) > 1
    for finding in (*settings.findings, ALL):
        rows = rows_of(wide, finding)
        drawn_for = finding if several else ALL  # one finding and all findings then rest on the same scores
        generator = settings.generator(template.statistic, template.metric, drawn_for, template.condition)
        means = nested_means(rows.scores, rows.design, settings.draws, generator, within=range_of(template))
        reasons = reasons_of(rows, means, wide, settings)
        for number, (column, mean, reason) in enumerate(zip(wide.pairs, means, reasons, strict=True)):
            row = fill(replace(template, finding=finding, model=column[0], method=column[1]), mean, reason)
            size = sizes.get((finding, column[0]))
            yield row if size is None else judged(row, size, rows.influences(number), generator)


@dataclass(frozen=True, slots=True)
class FindingRows:
    """The values of one finding, or of all, with the seed, patient and finding of each row."""

    finding: str
    scores: Float[np.ndarray, "rows columns"]
    design: Design
    findings: Int[np.ndarray, " rows"]
    trained: bool  # networks with seeds

    def influences(self, column: int) -> Float[np.ndarray, " patients"]:
        """The influence of each patient on the mean of one column; none without values."""
        if np.isnan(self.scores[:, column]).all():
            return np.zeros(0)
        totals = cell_totals(self.scores[:, [column]], self.design).only(np.array([0]))
        return np.asarray(patient_influences(totals)[:, 0])


def rows_of(wide: Wide, finding: str, *, pooled: bool = False) -> FindingRows:
    """The values of a finding; over all findings each counts the same, with `pooled` each image."""
    table = wide.table if finding == ALL else wide.rows_of(finding)
    findings, seeds, patients = (wide.labels(table, name) for name in ("finding", *DRAWN))
    trained = bool(table.index.get_level_values("seed").any())
    return FindingRows(
        finding, table.to_numpy(float), Design(seeds, patients, None if pooled else findings), findings, trained
    )


def range_of(template: Estimate) -> tuple[float, float]:
    """The values that a mean or difference may have."""
    if template.metric in OF_NETWORKS:
        return -math.inf, math.inf
    return (0.0, 1.0) if template.statistic == MEAN else (-1.0, 1.0)


def reasons_of(
    rows: FindingRows, means: Sequence[NestedEstimate], wide: Wide, settings: AlignmentSettings
) -> Iterator[str]:
    """What is to be said of each pair's mean."""
    for column, mean, scored in zip(wide.pairs, means, rows.scores.T, strict=True):
        every = len(settings.findings)
        covered = len(np.unique(rows.findings[~np.isnan(scored)])) if rows.finding == ALL else every
        yield reason_of(mean, settings, covered, wide.why_not(column, rows.finding), trained=rows.trained)


def reason_of(result: NestedEstimate, settings: AlignmentSettings, covered: int, why_not: str, *, trained: bool) -> str:
    """Why an estimate or its interval is missing, or else which seeds and findings it does not rest on.

    That an interval rests on one seed is noted only where the run has several: otherwise the report says it once, and
    networks that were not fine-tuned have no seeds.
    """
    if result.reason in {NO_SEED, NO_VALUE}:
        return why_not or NO_SCORES
    if result.reason:
        return result.reason  # alone, because blame compares it
    several = trained and len(settings.seeds) > 1
    note = result.note if several else result.note.removeprefix(ONE_SEED).removeprefix("; ")
    seeds = coverage(result.n_seeds, len(settings.seeds), "seeds") if trained else ""
    return joined(note, seeds, coverage(covered, len(settings.findings)))
