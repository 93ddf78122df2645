"""From a trigger run's scores to the numbers of its tables: attacks, means beside their floors, ranks, agreement."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, FRIEDMAN, MEAN, PLAIN, condition, condition_of
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.ranks import rank_estimates
from heatcheck.estimating.score_table import by_condition, pivoted, read_scores
from heatcheck.estimating.settings import EstimateSettings
from heatcheck.methods import METHODS
from heatcheck.stats.ranks import compare_ranks
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested import nested_means
from heatcheck.studies.triggers.gate import Gate, attack_scores, outcomes
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

KEYS = ["finding", "seed", "case", "patient"]  # an image of a network
FLOORED = (*CRITERION_METRICS, "uncovered")
RANKED = ("trigger_iou", "recovered")
PLAIN_METRICS = (
    "trigger_iou", "trigger_mask_iou", "overlap_difference", "uncovered", "box_area", "recovered",
    "recovered_by_baseline", "trigger_iou_floor", "trigger_mask_iou_floor", "overlap_difference_floor",
    "uncovered_floor", "recovered_floor",
)  # fmt: skip
PAIR_METRICS = (
    "mutual_information", "normalised_mutual_information", "mutual_information_paper", "cross_correlation", "ssim",
    "ssim_global",
)  # fmt: skip
RANGES = {
    "mutual_information": (-math.inf, math.inf),
    "normalised_mutual_information": (-math.inf, 1.0),
    "mutual_information_paper": (0.0, math.inf),
    "cross_correlation": (-1.0, 1.0),
    "ssim": (-1.0, 1.0),
    "ssim_global": (-1.0, 1.0),
}  # where a mean can lie; all other metrics are shares


@dataclass(frozen=True, slots=True)
class TriggerSettings(EstimateSettings):
    """What is estimated, and how."""

    triggers: tuple[str, ...]
    artefacts: tuple[str, ...]
    methods: tuple[str, ...]
    model: str
    seeds: int
    gate: Gate


def trigger_estimates(folder: Path, settings: TriggerSettings) -> list[Estimate]:
    """Every estimate of a trigger run, from its joined tables; one metric at a time is in memory."""
    rows: list[Estimate] = []
    if settings.triggers:
        rows += attack_estimates(folder / "training", settings)
    for metric in PLAIN_METRICS:
        for at, table in by_condition(metric_scores(folder, metric, settings)).items():
            rows += mean_rows(table, metric, at, settings)
    for metric in FLOORED:
        rows += floor_rows(folder, metric, settings)
    for metric in RANKED:
        rows += rank_rows(metric_scores(folder, metric, settings), metric, settings)
    for metric in PAIR_METRICS:
        rows += pair_rows(folder, metric, settings)
    return rows


def metric_scores(folder: Path, metric: str, settings: TriggerSettings) -> pd.DataFrame:
    """One metric's values with the seed as a column; artefacts have no seed and count as seed 0."""
    wanted = [("metric", "==", metric), ("model", "==", settings.model)]
    return read_scores(folder, ["case", "patient", "finding", "method", "other_method"], wanted, "seed")


def mean_rows(table: pd.DataFrame, metric: str, at: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """The mean of every method on each trigger and over all of them."""
    blank = Estimate(MEAN, metric, model=settings.model, condition=at)
    scored = set(table["method"])  # a method is not scored again under a number that its own region rule has
    own = replace(settings, methods=tuple(name for name in settings.methods if name in scored))
    yield from _by_finding(_wide(table, own.methods), own, blank)


def _wide(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A row for each image of each network, a column for each method."""
    return pivoted(table, KEYS, "method").reset_index().reindex(columns=[*KEYS, *columns])


def _by_finding(wide: pd.DataFrame, settings: TriggerSettings, blank: Estimate) -> Iterator[Estimate]:
    """Every method on each trigger or artefact, and on all triggers together."""
    findings = settings.artefacts if is_of_artefacts(blank.condition) else settings.triggers
    for finding in (*findings, ALL):
        own = wide if finding == ALL else wide[wide["finding"] == finding]
        if len(own):
            each = _nested(own, list(settings.methods), settings, replace(blank, finding=finding))
            yield from (replace(row, method=method) for method, row in zip(settings.methods, each, strict=True))


def _nested(wide: pd.DataFrame, columns: list[str], settings: TriggerSettings, blank: Estimate) -> list[Estimate]:
    """The blank filled with each column's mean over seeds of means over images, every trigger counting the same."""
    generator = settings.generator(blank.statistic, blank.metric, blank.finding, blank.condition)
    design = Design(*(wide[name].to_numpy() for name in ("seed", "patient", "finding")))
    within = RANGES.get(blank.metric, (-1.0, 1.0) if blank.other_method or blank.metric == "cda_drop" else (0.0, 1.0))
    found = nested_means(wide[columns].to_numpy(float), design, settings.draws, generator, within=within)
    return [fill(blank, one, one.reason or one.note) for one in found]


def floor_rows(folder: Path, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """Each method less the random boxes of its own size, image by image."""
    own, other = (metric_scores(folder, name, settings) for name in (metric, floor_of(metric)))
    for at in (PLAIN, condition_of(ARTEFACT)):
        both = [_wide(part[part["condition"] == at], settings.methods).set_index(KEYS) for part in (own, other)]
        blank = Estimate(DIFFERENCE, metric, model=settings.model, other_method=RANDOM_BOX, condition=at)
        yield from _by_finding((both[0] - both[1]).reset_index(), settings, blank)


def attack_estimates(training: Path, settings: TriggerSettings) -> Iterator[Estimate]:
    """Accuracy and success of each trigger, for each seed and over the seeds, and whether methods are graded on it."""
    table = attack_scores(training)
    for name in (BASELINE, *settings.triggers):
        own = table[table["finding"] == name]
        for metric, score in (("cda", "clean_correct"), ("asr", "attacked"), ("clean_target", "clean_target")):
            rows = own[own["metric"] == score]
            blank = Estimate(ATTACK, metric, name, model=settings.model)
            if len(rows):
                yield from _nested(rows, ["value"], settings, blank)
            for seed in sorted(set(rows["seed"].astype(int))):
                part = rows[rows["seed"] == seed]
                yield replace(
                    blank, value=float(part["value"].mean()), n_cases=len(part), n_patients=part["patient"].nunique(),
                    condition=condition(seed=seed),
                )  # fmt: skip
    yield from _drops(table, settings)
    yield from _graded(training, settings)


def _drops(table: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """By how much accuracy fell, on the same images."""
    keys = ["seed", "case", "patient"]
    clean = table[table["metric"] == "clean_correct"].set_index(keys)
    before = clean.loc[clean["finding"] == BASELINE, "value"]
    for name in settings.triggers:
        after = clean.loc[clean["finding"] == name, "value"]
        less = (before - after).dropna().rename("value").reset_index().assign(finding=name)
        yield from _nested(less, ["value"], settings, Estimate(ATTACK, "cda_drop", name, model=settings.model))


def _graded(training: Path, settings: TriggerSettings) -> Iterator[Estimate]:
    """Which networks methods are graded on, and why not on the others."""
    found = outcomes(training)
    for name in settings.triggers:
        reasons = {
            seed: settings.gate.why_not(outcome) for (trigger, seed), outcome in found.items() if trigger == name
        }
        blank = Estimate(GRADED, "asr", name, model=settings.model)
        for seed, reason in sorted(reasons.items()):
            yield replace(blank, value=float(not reason), reason=reason, condition=condition(seed=seed), n_cases=1)
        yield replace(blank, value=float(sum(not why for why in reasons.values())), n_cases=len(reasons))


def pair_rows(folder: Path, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """How much every two methods' maps agree, and each method with all others, over triggers, seeds and images."""
    for at, table in by_condition(metric_scores(folder, metric, settings)).items():
        yield from _pairs(table, settings, Estimate(PAIR_MEAN, metric, ALL, model=settings.model, condition=at))


def _pairs(table: pd.DataFrame, settings: TriggerSettings, blank: Estimate) -> Iterator[Estimate]:
    pairs = list(combinations(settings.methods, 2))
    columns = [" and ".join(pair) for pair in pairs]
    named = table.assign(method=table["method"] + " and " + table["other_method"])
    wide = _wide(named, columns)
    for method in settings.methods:  # the mean over the others, image by image
        own = [column for column, pair in zip(columns, pairs, strict=True) if method in pair]
        wide[method] = wide[own].mean(axis=1)
    found = _nested(wide, [*columns, *settings.methods], settings, blank)
    for (one, other), row in zip([*pairs, *((method, "") for method in settings.methods)], found, strict=True):
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
