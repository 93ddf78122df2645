"""A trigger run's estimates from its scores: attacks, means and their floors, agreement, and what claims rest on."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PLAIN, condition, condition_of
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import by_condition
from heatcheck.methods import METHODS
from heatcheck.stats.resampling.nested_rates import nested_rates
from heatcheck.stats.resampling.nested_studentised import separate_means
from heatcheck.studies.triggers.estimating.calibration import calibration_estimates, overconfidence_estimates
from heatcheck.studies.triggers.estimating.comparisons import KEYS, claims, design_of, metric_scores, wide
from heatcheck.studies.triggers.estimating.consensus import consensus_estimates
from heatcheck.studies.triggers.gate import attack_scores, outcomes, why_not_graded
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.vocabulary import (
    ARTEFACT,
    ATTACK,
    BASELINE,
    CONTROL,
    CRITERION_METRICS,
    GRADED,
    PAIR_MEAN,
    RANDOM_BOX,
    floor_of,
    is_of_artefacts,
)

FLOORED = (*CRITERION_METRICS, "uncovered")
PLAIN_METRICS = (
    "trigger_iou", CONTROL, "trigger_mask_iou", "overlap_difference", "uncovered", "box_area", "recovered",
    "recovered_by_baseline", "trigger_iou_floor", "trigger_mask_iou_floor", "overlap_difference_floor",
    "uncovered_floor", "recovered_floor",
)  # fmt: skip
ATTACK_SCORES = {
    "cda": "clean_correct",
    "asr": "attacked",
    "clean_target": "clean_target",
    "baseline_asr": "baseline_attacked",
}  # rates of an attack, and the scores they are means of
RATES = ("recovered", "recovered_by_baseline", *ATTACK_SCORES)  # means of values that are 0 or 1
SAME_EVERYWHERE = "the same in every image"
_ROUNDING = 1e-12
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
    rows += claims(folder, _overall_means(rows), settings)
    for metric in PAIR_RANGES:
        rows += pair_rows(folder, metric, settings)
    rows += consensus_estimates(folder, settings)
    return rows


def _overall_means(rows: list[Estimate]) -> dict[tuple[str, str], float]:
    """The means over all triggers under the main rule, by metric and method."""
    plain = [row for row in rows if (row.statistic, row.finding, row.condition) == (MEAN, ALL, PLAIN)]
    return {(row.metric, row.method): row.value for row in plain}


def mean_rows(table: pd.DataFrame, metric: str, under: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """The mean of every method on each trigger and over all of them."""
    template = Estimate(MEAN, metric, model=settings.model, condition=under)
    scored = set(table["method"])  # a method is not scored again under a number that its own box rule has
    settings = replace(settings, methods=tuple(name for name in settings.methods if name in scored))
    yield from _by_finding(wide(table, settings.methods), settings, template)


def _by_finding(table: pd.DataFrame, settings: TriggerSettings, template: Estimate) -> Iterator[Estimate]:
    """Every method on each trigger or artefact, and on all of them together."""
    findings = settings.artefacts if is_of_artefacts(template.condition) else settings.triggers
    for finding in (*findings, ALL):
        rows = table if finding == ALL else table[table.index.get_level_values("finding") == finding]
        if len(rows):
            each = _nested(rows, list(settings.methods), settings, replace(template, finding=finding))
            yield from (replace(row, method=method) for method, row in zip(settings.methods, each, strict=True))


def _nested(table: pd.DataFrame, columns: list[str], settings: TriggerSettings, template: Estimate) -> list[Estimate]:
    """The template filled with each column's mean over seeds of means over images, every trigger weighted equally."""
    values, design = table[columns].to_numpy(float), design_of(table)
    if template.metric in RATES and not template.other_method:
        return [fill(template, rate, rate.reason or rate.note) for rate in nested_rates(values, design)]
    generator = settings.generator(template.statistic, template.metric, template.finding, template.condition)
    is_difference = bool(template.other_method) or template.metric == "cda_drop"
    within = PAIR_RANGES.get(template.metric, (-1.0 if is_difference else 0.0, 1.0))
    means = separate_means(values, design, settings.draws, generator, within)
    rows = [fill(template, mean, mean.reason or mean.note) for mean in means]
    if template.statistic != MEAN:
        return rows
    return [_without_interval(row) if same else row for row, same in zip(rows, _all_the_same(values), strict=True)]


def _all_the_same(values: np.ndarray) -> list[bool]:
    """Of which columns all defined values, of several, are one number but for the last bits."""
    known = [column[~np.isnan(column)] for column in values.T]
    return [len(each) > 1 and float(np.ptp(each)) <= _ROUNDING * max(1.0, abs(float(each[0]))) for each in known]


def _without_interval(row: Estimate) -> Estimate:
    """The row as a fact about these images.

    Such an area or overlap is set by what was drawn, as that of a box around the whole image is. An interval that
    allows for unseen patients with any value from 0 to 1 would say of a patch of 1 % that 14 % may be left of it.
    """
    return row if math.isnan(row.low) else replace(row, low=math.nan, high=math.nan, reason=SAME_EVERYWHERE)


def floor_rows(folder: Path, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """Each method minus random boxes of the same size, image by image, but for what claims rest on."""
    tables = [metric_scores(folder, name, settings) for name in (metric, floor_of(metric))]
    for under in (PLAIN, condition_of(ARTEFACT)):
        scores, floors = (wide(t[t["condition"] == under], settings.methods) for t in tables)
        template = Estimate(DIFFERENCE, metric, model=settings.model, other_method=RANDOM_BOX, condition=under)
        for row in _by_finding(scores - floors, settings, template):
            if metric not in CRITERION_METRICS or (row.finding, under) != (ALL, PLAIN):
                yield row


def attack_estimates(training: Path, settings: TriggerSettings) -> Iterator[Estimate]:
    """Accuracy and success of each trigger, for each seed and over the seeds, and whether methods are graded on it."""
    table = attack_scores(training)
    for name in (BASELINE, *settings.triggers):
        of_network = table[table["finding"] == name]
        for metric, score in ATTACK_SCORES.items():
            rows = of_network[of_network["metric"] == score]
            template = Estimate(ATTACK, metric, name, model=settings.model)
            if len(rows):
                yield from _nested(rows.set_index(KEYS), ["value"], settings, template)
            for seed in sorted(set(rows["seed"].astype(int))):
                part = rows[rows["seed"] == seed]
                one_seed = replace(template, condition=condition(seed=seed), value=float(part["value"].mean()))
                yield replace(one_seed, n_cases=len(part), n_patients=part["patient"].nunique())
    yield from _drops(table, settings)
    yield from _graded(training, settings)
    yield from calibration_estimates(table, settings)
    yield from overconfidence_estimates(table, settings)


def _drops(table: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """How much accuracy fell, on the same images."""
    keys = ["seed", "case", "patient"]
    clean = table[table["metric"] == "clean_correct"].set_index(keys)
    before = clean.loc[clean["finding"] == BASELINE, "value"]
    for name in settings.triggers:
        after = clean.loc[clean["finding"] == name, "value"]
        drop = (before - after).dropna().rename("value").reset_index().assign(finding=name).set_index(KEYS)
        yield from _nested(drop, ["value"], settings, Estimate(ATTACK, "cda_drop", name, model=settings.model))


def _graded(training: Path, settings: TriggerSettings) -> Iterator[Estimate]:
    """Which networks methods are graded on and why not on the others, and the images that are left out of them."""
    by_network = outcomes(training)
    for name in settings.triggers:
        of_trigger = {seed: outcome for (trigger, seed), outcome in sorted(by_network.items()) if trigger == name}
        reasons = {seed: why_not_graded(settings.gate, outcome) for seed, outcome in of_trigger.items()}
        template = Estimate(GRADED, "asr", name, model=settings.model)
        for seed, reason in reasons.items():
            yield replace(template, value=float(not reason), reason=reason, condition=condition(seed=seed), n_cases=1)
        yield replace(template, value=float(sum(not why for why in reasons.values())), n_cases=len(reasons))
        left_out = {seed: of_trigger[seed].already for seed, reason in reasons.items() if not reason}
        template = replace(template, metric="clean_target")
        for seed, cases in left_out.items():
            named = replace(template, value=float(len(cases)), reason=", ".join(cases))
            yield replace(named, condition=condition(seed=seed), n_cases=1)
        yield replace(template, value=float(sum(map(len, left_out.values()))), n_cases=len(left_out))


def pair_rows(folder: Path, metric: str, settings: TriggerSettings) -> Iterator[Estimate]:
    """How much every two methods' maps agree, and each method with all others, over triggers, seeds and images."""
    for under, table in by_condition(metric_scores(folder, metric, settings)).items():
        yield from _pairs(table, settings, Estimate(PAIR_MEAN, metric, ALL, model=settings.model, condition=under))


def _pairs(table: pd.DataFrame, settings: TriggerSettings, template: Estimate) -> Iterator[Estimate]:
    pairs = list(combinations(settings.methods, 2))
    columns = [" and ".join(pair) for pair in pairs]
    named = table.assign(method=table["method"] + " and " + table["other_method"])
    table = wide(named, columns)
    alone = []
    for method in settings.methods:  # the mean over the other methods, image by image; floors are none
        others = [{method, name} for name in settings.methods if name != method and not METHODS[name].is_floor]
        with_others = [column for column, pair in zip(columns, pairs, strict=True) if set(pair) in others]
        if with_others:
            table[method] = table[with_others].mean(axis=1)
            alone.append(method)
    means = _nested(table, [*columns, *alone], settings, template)
    for (one, other), row in zip([*pairs, *((method, "") for method in alone)], means, strict=True):
        yield replace(row, method=one, other_method=other)
