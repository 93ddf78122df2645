"""A trigger run's estimates from its scores: attacks, means and their floors, ranks, agreement."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, FRIEDMAN, MEAN, PLAIN, condition, condition_of
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.ranks import rank_estimates
from heatcheck.estimating.score_table import by_condition, pivoted, read_scores
from heatcheck.methods import METHODS
from heatcheck.stats.ranks import compare_ranks
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested import nested_means
from heatcheck.studies.triggers.gate import attack_scores, outcomes, why_not_graded
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.vocabulary import (
    ARTEFACT,
    ATTACK,
    BASELINE,
    CRITERION_METRICS,
    GRADED,
    PAIR_MEAN,
    RANDOM_BOX,
    floor_of,
    is_of_artefacts,
)

KEYS = ["finding", "seed", "case", "patient"]  # of an image under one network
FLOORED = (*CRITERION_METRICS, "uncovered")
RANKED = ("trigger_iou", "recovered")
PLAIN_METRICS = (
    "trigger_iou", "trigger_mask_iou", "overlap_difference", "uncovered", "box_area", "recovered",
    "recovered_by_baseline", "trigger_iou_floor", "trigger_mask_iou_floor", "overlap_difference_floor",
    "uncovered_floor", "recovered_floor",
)  # fmt: skip
PAIR_RANGES = {
    "mutual_information": (-math.inf, math.inf),
    "normalised_mutual_information": (-math.inf, 1.0),
    "mutual_information_paper": (0.0, math.inf),
    "cross_correlation": (-1.0, 1.0),
    "ssim": (-1.0, 1.0),
    "ssim_global": (-1.0, 1.0),
}  # metrics of two maps, and where their means can lie; all other metrics are shares


def trigger_estimates(folder: Path, settings: TriggerSettings) -> list[Estimate]:
    """Every estimate of a trigger run, from its joined tables; one metric at a time is in memory."""
    rows: list[Estimate] = []
    if settings.triggers:
        rows += attack_estimates(folder / "training", settings)
    for metric in PLAIN_METRICS:
        for under, table in by_condition(metric_scores(folder, metric, settings)).items():
            rows += mean_rows(table, metric, under, settings)
    for metric in FLOORED:
        rows += floor_rows(folder, metric, settings)
    for metric in RANKED:
        rows += rank_rows(metric_scores(folder, metric, settings), metric, settings)
    for metric in PAIR_RANGES:
        rows += pair_rows(folder, metric, settings)
    return rows


def metric_scores(folder: Path, metric: str, settings: TriggerSettings) -> pd.DataFrame:
    """One metric's values with the seed as a column; artefacts have no seed and count as seed 0."""
    wanted = [("metric", "==", metric), ("model", "==", settings.model)]
    return read_scores(folder, ["case", "patient", "finding", "method", "other_method"], wanted, "seed")


def mean_rows(table: pd.DataFrame, metric: str, under: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """The mean of every method on each trigger and over all of them."""
    template = Estimate(MEAN, metric, model=settings.model, condition=under)
    scored = set(table["method"])  # a method is not scored again under a number that its own box rule has
    settings = replace(settings, methods=tuple(name for name in settings.methods if name in scored))
    yield from _by_finding(_wide(table, settings.methods), settings, template)


def _wide(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A row for each image of each network, a column for each method."""
    return pivoted(table, KEYS, "method").reset_index().reindex(columns=[*KEYS, *columns])


def _by_finding(wide: pd.DataFrame, settings: TriggerSettings, template: Estimate) -> Iterator[Estimate]:
    """Every method on each trigger or artefact, and on all of them together."""
    findings = settings.artefacts if is_of_artefacts(template.condition) else settings.triggers
    for finding in (*findings, ALL):
        rows = wide if finding == ALL else wide[wide["finding"] == finding]
        if len(rows):
            each = _nested(rows, list(settings.methods), settings, replace(template, finding=finding))
            yield from (replace(row, method=method) for method, row in zip(settings.methods, each, strict=True))


def _nested(wide: pd.DataFrame, columns: list[str], settings: TriggerSettings, template: Estimate) -> list[Estimate]:
    """The template filled with each column's mean over seeds of means over images, every trigger weighted equally."""
    generator = settings.generator(template.statistic, template.metric, template.finding, template.condition)
    design = Design(*(wide[name].to_numpy() for name in ("seed", "patient", "finding")))
    is_difference = bool(template.other_method) or template.metric == "cda_drop"
    within = PAIR_RANGES.get(template.metric, (-1.0 if is_difference else 0.0, 1.0))
    means = nested_means(wide[columns].to_numpy(float), design, settings.draws, generator, within=within)
    return [fill(template, mean, mean.reason or mean.note) for mean in means]


def floor_rows(folder: Path, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """Each method minus random boxes of the same size, image by image."""
    tables = [metric_scores(folder, name, settings) for name in (metric, floor_of(metric))]
    for under in (PLAIN, condition_of(ARTEFACT)):
        scores, floors = (_wide(t[t["condition"] == under], settings.methods).set_index(KEYS) for t in tables)
        template = Estimate(DIFFERENCE, metric, model=settings.model, other_method=RANDOM_BOX, condition=under)
        yield from _by_finding((scores - floors).reset_index(), settings, template)


def attack_estimates(training: Path, settings: TriggerSettings) -> Iterator[Estimate]:
    """Accuracy and success of each trigger, for each seed and over the seeds, and whether methods are graded on it."""
    table = attack_scores(training)
    for name in (BASELINE, *settings.triggers):
        of_network = table[table["finding"] == name]
        for metric, score in (("cda", "clean_correct"), ("asr", "attacked"), ("clean_target", "clean_target")):
            rows = of_network[of_network["metric"] == score]
            template = Estimate(ATTACK, metric, name, model=settings.model)
            if len(rows):
                yield from _nested(rows, ["value"], settings, template)
            for seed in sorted(set(rows["seed"].astype(int))):
                part = rows[rows["seed"] == seed]
                one_seed = replace(template, condition=condition(seed=seed), value=float(part["value"].mean()))
                yield replace(one_seed, n_cases=len(part), n_patients=part["patient"].nunique())
    yield from _drops(table, settings)
    yield from _graded(training, settings)


def _drops(table: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """How much accuracy fell, on the same images."""
    keys = ["seed", "case", "patient"]
    clean = table[table["metric"] == "clean_correct"].set_index(keys)
    before = clean.loc[clean["finding"] == BASELINE, "value"]
    for name in settings.triggers:
        after = clean.loc[clean["finding"] == name, "value"]
        drop = (before - after).dropna().rename("value").reset_index().assign(finding=name)
        yield from _nested(drop, ["value"], settings, Estimate(ATTACK, "cda_drop", name, model=settings.model))


def _graded(training: Path, settings: TriggerSettings) -> Iterator[Estimate]:
    """Which networks methods are graded on, and why not on the others."""
    by_network = outcomes(training)
    for name in settings.triggers:
        reasons = {
            seed: why_not_graded(settings.gate, outcome)
            for (trigger, seed), outcome in by_network.items()
            if trigger == name
        }
        template = Estimate(GRADED, "asr", name, model=settings.model)
        for seed, reason in sorted(reasons.items()):
            yield replace(template, value=float(not reason), reason=reason, condition=condition(seed=seed), n_cases=1)
        yield replace(template, value=float(sum(not why for why in reasons.values())), n_cases=len(reasons))


def pair_rows(folder: Path, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """How much every two methods' maps agree, and each method with all others, over triggers, seeds and images."""
    for under, table in by_condition(metric_scores(folder, metric, settings)).items():
        yield from _pairs(table, settings, Estimate(PAIR_MEAN, metric, ALL, model=settings.model, condition=under))


def _pairs(table: pd.DataFrame, settings: TriggerSettings, template: Estimate) -> Iterator[Estimate]:
    pairs = list(combinations(settings.methods, 2))
    columns = [" and ".join(pair) for pair in pairs]
    named = table.assign(method=table["method"] + " and " + table["other_method"])
    wide = _wide(named, columns)
    for method in settings.methods:  # the mean over the others, image by image
        with_others = [column for column, pair in zip(columns, pairs, strict=True) if method in pair]
        wide[method] = wide[with_others].mean(axis=1)
    means = _nested(wide, [*columns, *settings.methods], settings, template)
    for (one, other), row in zip([*pairs, *((method, "") for method in settings.methods)], means, strict=True):
        yield replace(row, method=one, other_method=other)


def rank_rows(table: pd.DataFrame, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """Friedman's test and Nemenyi's comparisons of the methods, with each trigger and seed as a block; no floors."""
    plain = table[table["condition"] == condition()]
    methods = [name for name in settings.methods if not METHODS[name].is_floor]
    if plain.empty:
        return
    means = plain.groupby(["finding", "seed", "method"])["value"].mean().reset_index()
    blocks = pivoted(means, ["finding", "seed"], "method")
    comparison = compare_ranks(blocks.reindex(columns=methods).to_numpy(float), higher_is_better=True)
    template = Estimate(
        FRIEDMAN, metric, ALL, model=settings.model, n_cases=comparison.n_blocks, n_undefined=comparison.n_incomplete
    )
    yield from rank_estimates(comparison, methods, template)
