"""Means of scores and of their differences over images and seeds: what networks score, and how far apart they lie."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate, condition, facts_of
from heatcheck.stats.resampling.bca import NO_VALUE
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested import NO_SEED, ONE_SEED, NestedEstimate, nested_means
from heatcheck.studies.alignment_reading import NO_SCORES, Column, MetricScores, Wide
from heatcheck.studies.alignment_rule import (
    ARMS,
    DIRECTIONS,
    FINETUNE,
    FLOOR,
    FLOOR_METHOD,
    HUMAN_ARM,
    AlignmentRule,
    blank,
)

RELIANCE = ("reliance", "reliance_placebo")  # what the model does, whatever a map shows
POOLED = condition(pooled="images")
DRAWN = ("seed", "patient")  # what is drawn again
SHARED = ("base", "control")  # arms whose networks belong to no method


def columns_of(metric: str, at: str, rule: AlignmentRule) -> list[Column]:
    """The pairs of model and method that a metric should have under a condition."""
    facts = facts_of(at)
    arm = facts["arm"]
    if arm in {FLOOR, HUMAN_ARM}:
        return [("", FLOOR_METHOD if arm == FLOOR else HUMAN)]
    if metric in RELIANCE:
        methods: tuple[str, ...] = ("",) if arm in SHARED else rule.methods
    elif "through" in facts:
        methods = rule.judged
    else:
        methods = (*rule.methods, *rule.judged) if arm in SHARED and "split" not in facts else rule.methods
    return [(base.key, method) for base in rule.fine_tuned for method in methods]


def mean_rows(scores: MetricScores, rule: AlignmentRule) -> Iterator[Estimate]:
    """The mean of every pair in every arm, on each finding and over all of them."""
    expected = [condition(arm=arm) for arm in ARMS]
    if scores.metric not in RELIANCE:
        expected.append(condition(arm=FLOOR))
    for at in dict.fromkeys([*expected, *scores.by_condition]):
        columns = list(dict.fromkeys([*columns_of(scores.metric, at, rule), *scores.columns(at)]))
        made = replace(blank("mean", scores.metric), condition=at)
        yield from averaged(scores.wide(at, columns), made, rule)


@dataclass(frozen=True)
class Ends:
    """Scores of the methods that networks were trained through, toward the masks and away from them."""

    align: Wide
    misalign: Wide

    @classmethod
    def of(cls, scores: MetricScores, rule: AlignmentRule) -> "Ends":
        """One metric's."""
        at = [condition(arm=arm) for arm in DIRECTIONS]
        return cls(*(scores.wide(each, columns_of(scores.metric, each, rule)) for each in at))

    @property
    def apart(self) -> Wide:
        """Aligned less misaligned, by image and seed."""
        return self.align - self.misalign


def robustness_rows(ends: Ends, metric: str, rule: AlignmentRule) -> Iterator[Estimate]:
    """How far aligned and misaligned networks lie apart; over all findings each counts the same, or each image."""
    yield from averaged(ends.apart, blank("robustness", metric), rule)
    yield from averaged(ends.apart, replace(blank("robustness", metric), condition=POOLED), rule)


def difference_rows(scores: MetricScores, rule: AlignmentRule) -> Iterator[Estimate]:
    """How far fine-tuning moved each pair beyond its control, and how far the base is from the floor."""
    metric = scores.metric
    compared: list[dict[str, str]] = [{"arm": arm, "versus": "control"} for arm in DIRECTIONS]
    if metric not in RELIANCE:
        compared.append({"arm": "base", "versus": FLOOR})
        compared.append({"arm": "align", "versus": "control", "split": FINETUNE})
        if rule.judged:
            compared += [{"arm": arm, "versus": "control", "through": rule.through} for arm in DIRECTIONS]
    for facts in compared:
        made = replace(blank("difference", metric), condition=condition(**facts))
        yield from averaged(_difference(scores, facts, rule), made, rule)


def _difference(scores: MetricScores, facts: dict[str, str], rule: AlignmentRule) -> Wide:
    """Each pair's scores in one arm less those in the other, image by image and seed by seed."""
    left = condition(**{name: value for name, value in facts.items() if name != "versus"})
    beside = {"split": facts["split"]} if "split" in facts else {}
    right = condition(arm=facts["versus"], **beside)
    columns = columns_of(scores.metric, left, rule)
    others = columns
    if facts["versus"] == FLOOR:
        others = [("", FLOOR_METHOD)] * len(columns)
    elif scores.metric in RELIANCE:
        others = [(model, "") for model, _ in columns]
    beneath = scores.wide(right, sorted(set(others)))
    return scores.wide(left, columns) - beneath.renamed(columns, others)


def averaged(wide: Wide, made: Estimate, rule: AlignmentRule) -> Iterator[Estimate]:
    """The blank filled for every pair, on each finding and over all of them."""
    pooled = made.condition == POOLED
    within = (0.0, 1.0) if made.statistic == "mean" else (-1.0, 1.0)
    within = (-math.inf, math.inf) if made.metric in RELIANCE else within
    for finding in (ALL,) if pooled else (*rule.findings, ALL):
        own = wide.table if finding == ALL else wide.of_finding(finding)
        findings, seeds, patients = (wide.labels(own, name) for name in ("finding", *DRAWN))
        design = Design(seeds, patients, None if pooled else findings)
        trained = bool(own.index.get_level_values("seed").any())
        generator = rule.generator(made.statistic, made.metric, finding, made.condition)
        values = own.to_numpy(float)
        found = nested_means(values, design, rule.draws, generator, within=within)
        for column, one, scored in zip(wide.pairs, found, values.T, strict=True):
            covered = len(np.unique(findings[~np.isnan(scored)])) if finding == ALL else len(rule.findings)
            reason = reason_of(one, rule, covered, wide.why_not(column, finding), trained=trained)
            yield filled(replace(made, finding=finding, model=column[0], method=column[1]), one, reason)


def filled(made: Estimate, one: NestedEstimate, reason: str) -> Estimate:
    """The blank with an estimate's numbers."""
    return replace(
        made, value=one.value, low=one.low, high=one.high, n_cases=one.n_cases, n_patients=one.n_patients,
        n_undefined=one.n_undefined, reason=reason,
    )  # fmt: skip


def reason_of(one: NestedEstimate, rule: AlignmentRule, covered: int, why_not: str, *, trained: bool) -> str:
    """Why a part of an estimate is missing, or else what it does not rest on.

    What was not fine-tuned has no seeds: that it has one only is not worth a word.
    """
    if one.reason in {NO_SEED, NO_VALUE}:
        return why_not or NO_SCORES
    if one.reason:
        return one.reason  # alone: others look for it
    note = one.note if trained else one.note.removeprefix(ONE_SEED).removeprefix("; ")
    seeds = f"over {one.n_seeds} of {len(rule.seeds)} seeds" if trained and one.n_seeds < len(rule.seeds) else ""
    findings = f"over {covered} of {len(rule.findings)} findings" if covered < len(rule.findings) else ""
    return "; ".join(filter(None, (note, seeds, findings)))
