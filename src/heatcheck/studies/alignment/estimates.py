"""All estimates of an alignment run but its blame table; robustness, regressions and correlations are computed here."""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import CORRELATION, MEAN, PLAIN, condition
from heatcheck.estimating.estimates import fill, joined
from heatcheck.judging.patients import judged
from heatcheck.stats.correlation import correlations
from heatcheck.stats.regression import Fit
from heatcheck.stats.resampling.joint_means import JointMean, joint_means
from heatcheck.stats.treatment import INTERCEPT, Factor, RegressionTerm, RowOrigin, treatment_effects
from heatcheck.studies.alignment.estimating.means import (
    OF_NETWORKS,
    ArmScores,
    Wide,
    difference_rows,
    floor_rows,
    mean_rows,
    range_of,
    read_metric,
    reasons_of,
    rows_of,
)
from heatcheck.studies.alignment.estimating.predictions import prediction_rows, separation_rows, validation_rows
from heatcheck.studies.alignment.estimating.scaled import scaled_rows
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    BY_IMAGE,
    CORRELATIONS,
    ERRORS,
    FLOOR,
    FLOORS,
    HUMAN_ARM,
    MAIN_METRICS,
    ONE_TRAINING,
    PAIRED_SCORES,
    PLACEBO,
    RANDOM,
    REGRESSION,
    RELIANCE,
    ROBUSTNESS,
    SEPARATION,
)

POOLED = condition(pooled=BY_IMAGE)
SEEDS_DECIDE = 0.2  # share of an interval that may be due to seeds if more patients are to decide a claim


def robustness_rows(
    arms: ArmScores, metric: str, settings: AlignmentSettings, estimated: Sequence[Estimate]
) -> Iterator[Estimate]:
    """How far aligned networks lie above misaligned ones; over all findings each finding counts the same, or image.

    The intervals of all pairs of model and method on a finding hold together: the largest is among them.
    """
    wide = arms.robustness
    for finding, under in [*((each, PLAIN) for each in settings.findings), (ALL, PLAIN), (ALL, POOLED)]:
        rows = rows_of(wide, finding, pooled=under == POOLED)
        template = Estimate(ROBUSTNESS, metric, finding, condition=under, family=f"{ROBUSTNESS} {metric} {finding}")
        means = joint_means(rows.scores, rows.design, len(wide.pairs), range_of(template))
        reasons = reasons_of(rows, [replace(mean.estimate, note="") for mean in means], wide, settings)
        size = _share_of_room(estimated, template, settings)
        for (model, method), mean, reason in zip(wide.pairs, means, reasons, strict=True):
            yield _claim(replace(template, model=model, method=method), mean, reason, size, settings)


def compared_rows(arms: ArmScores, settings: AlignmentSettings, estimated: Sequence[Estimate]) -> Iterator[Estimate]:
    """By how much one pair of model and method was pushed further than another, on the images of both.

    The intervals of all comparisons hold together.
    """
    wide = arms.robustness
    compared = list(combinations(range(len(wide.pairs)), 2))
    if not compared:
        return
    template = Estimate(ROBUSTNESS, settings.blame_metric, ALL, family=f"{ROBUSTNESS} compared")
    size = _share_of_room(estimated, template, settings)
    rows = rows_of(wide, ALL)
    differences = np.stack([rows.scores[:, one] - rows.scores[:, other] for one, other in compared], axis=1)
    means = joint_means(differences, rows.design, len(wide.pairs) - 1, (-2.0, 2.0))
    for (one, other), mean in zip(compared, means, strict=True):
        (model, method), (other_model, other_method) = wide.pairs[one], wide.pairs[other]
        row = replace(
            template,
            model=model,
            method=method,
            other_method=other_method,
            condition=condition(other_model=other_model),
        )
        reason = mean.estimate.reason and (wide.why_not(wide.pairs[one], ALL) or wide.why_not(wide.pairs[other], ALL))
        yield _claim(row, mean, reason or mean.estimate.reason, size, settings)


def _share_of_room(
    estimated: Sequence[Estimate], template: Estimate, settings: AlignmentSettings, floor: str = RANDOM
) -> float:
    """The size that matters: a share of the room between a floor and the readers, or a perfect map."""
    means = {
        (row.method, row.condition): row.value
        for row in estimated
        if (row.statistic, row.metric, row.finding) == (MEAN, template.metric, template.finding)
    }
    lower = means.get((floor, condition(arm=FLOOR)), math.nan)
    human = means.get((HUMAN, condition(arm=HUMAN_ARM)), math.nan) if settings.human == "readers" else 1.0
    return settings.sizes.above_floor(lower, human)


def _floor_sizes(
    estimated: Sequence[Estimate], metric: str, settings: AlignmentSettings
) -> dict[str, dict[tuple[str, str], float]]:
    """By how much a base's map must lie above each floor, by finding and model."""
    return {
        floor: {
            (finding, base.key): _share_of_room(estimated, Estimate(MEAN, metric, finding), settings, floor)
            for finding in (*settings.findings, ALL)
            for base in settings.fine_tuned
        }
        for floor in FLOORS
    }


def _reliance_sizes(estimated: Sequence[Estimate], settings: AlignmentSettings) -> dict[tuple[str, str], float]:
    """How large a base's reliance must be, by finding and model."""
    return {
        (row.finding, row.model): settings.sizes.of_separation(row.value)
        for row in estimated
        if row.statistic == SEPARATION and row.condition == condition(arm="base")
    }


def _claim(template: Estimate, mean: JointMean, reason: str, size: float, settings: AlignmentSettings) -> Estimate:
    """The estimate with what a claim needs; none where each network was trained once.

    More patients decide nothing where the trainings differ more than the patients do.
    """
    row = fill(template, mean.estimate, reason)
    if mean.estimate.n_seeds < 2:
        return replace(row, reason=joined(row.reason, ONE_TRAINING if mean.estimate.n_seeds else ""))
    if mean.from_seeds > SEEDS_DECIDE:
        return replace(row, size=size)
    generator = settings.generator("needed", row.metric, row.finding, row.model, row.method, row.condition)
    return judged(row, size, mean.influences, generator)


REFERENCES = {"architecture": "DenseNet", "method": "gradient"}  # where the run has them; else the first
PAIRS = (
    ("mass_align", "rank_align"),
    ("mass_misalign", "rank_misalign"),
    ("mass_align", "mass_misalign"),
    ("rank_align", "rank_misalign"),
    ("rank_align", "mass_misalign"),
    ("mass_align", "rank_misalign"),
)  # as published


def regression_rows(arms: Mapping[str, ArmScores], settings: AlignmentSettings) -> Iterator[Estimate]:
    """Least squares on each image's robustness, by pre-training, architecture and method.

    An image has one row for each model and method, the mean over its seeds. If every seed were a row, classical errors,
    which assume independent rows, would shrink with each seed although no image was added. It also keeps them
    comparable with the published ones, which come from one seed.

    What all networks of a base have in common is the base's: it was trained once, whatever the number of seeds. A test
    over networks therefore counts bases, and a level of a factor that one base alone has cannot be tested.
    """
    for metric in MAIN_METRICS:
        if metric in arms:
            yield from _regression(arms[metric].robustness, metric, settings)


def _regression(robustness: Wide, metric: str, settings: AlignmentSettings) -> Iterator[Estimate]:
    differences = robustness.table.groupby(["finding", "case", "patient"]).mean()
    n_images, columns = len(differences), robustness.pairs
    bases = {base.key: base for base in settings.fine_tuned}
    kinds = {
        "pretrained": ["yes" if bases[model].pretrained else "no" for model, _ in columns],
        "architecture": [bases[model].family for model, _ in columns],
        "method": [method for _, method in columns],
    }
    levels = {
        "pretrained": ("no", "yes"),
        "architecture": _reference_first("architecture", [base.family for base in settings.fine_tuned]),
        "method": _reference_first("method", list(settings.methods)),
    }
    factors = [Factor(name, np.tile(np.array(each, object), n_images), levels[name]) for name, each in kinds.items()]
    patients = np.repeat(differences.index.get_level_values("patient").to_numpy(), len(columns))
    networks = np.tile(np.array([model for model, _ in columns], object), n_images)
    origin = RowOrigin(patients, networks.astype(str))
    effects = treatment_effects(differences.to_numpy(float).ravel(), factors, origin)
    references = ", ".join(f"{name}: {level}" for name, level in effects.references.items())
    for errors in ERRORS:
        for term in effects.terms:
            template = Estimate(REGRESSION, metric, ALL, condition=condition(errors=errors, term=_name(term)))
            fit: Fit = getattr(term, errors)
            note = references and f"the level at {references}" if term.factor == INTERCEPT else ""
            yield fill(template, fit, fit.reason or note)


def _reference_first(factor: str, levels: list[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(levels), key=lambda level: level != REFERENCES[factor]))


def _name(term: RegressionTerm) -> str:
    """The name of a term in tables; a factor with one level, which is left out, has no level in it."""
    return term.factor if term.factor == "pretrained" or not term.level else f"{term.factor}:{term.level}"


def correlation_rows(arms: Mapping[str, ArmScores], settings: AlignmentSettings) -> Iterator[Estimate]:
    """Correlations of both metrics in both directions, over every image and network that has all four scores.

    Here every seed is a row: a mean over seeds would have less noise, and another correlation, than the scores of one
    network, which is what was published. Patients are drawn with all their rows.
    """
    if not set(MAIN_METRICS) <= set(arms):
        return
    values, patients = _side_by_side(arms)
    results = correlations(values, patients, settings.draws, settings.generator(CORRELATION))
    indices = {frozenset(pair): index for index, pair in enumerate(combinations(PAIRED_SCORES, 2))}
    for kind in CORRELATIONS:
        for left, right in PAIRS:
            result = getattr(results, kind)[indices[frozenset((left, right))]]
            template = Estimate(
                CORRELATION, PAIRED_SCORES[left][0], ALL, condition=condition(kind=kind, left=left, right=right),
                n_cases=results.n_cases, n_patients=results.n_patients, n_undefined=results.n_undefined,
            )  # fmt: skip
            yield fill(template, result)


def _side_by_side(
    arms: Mapping[str, ArmScores],
) -> tuple[Float[np.ndarray, "rows four"], Shaped[np.ndarray, " rows"]]:
    """The four scores of every image and network, in the order of `PAIRED_SCORES`, and the patients."""
    tables = [getattr(arms[metric], arm).table for metric, arm in PAIRED_SCORES.values()]
    index = functools.reduce(lambda one, other: one.union(other), (table.index for table in tables))
    each = [table.reindex(index).to_numpy(float) for table in tables]
    patients = np.repeat(index.get_level_values("patient").to_numpy(), each[0].shape[1])
    return np.stack([values.ravel() for values in each], 1), patients


def alignment_estimates(folder: Path, settings: AlignmentSettings) -> list[Estimate]:
    """Every estimate but the blame table, from the run's joined tables; one metric is read at a time."""
    rows: list[Estimate] = separation_rows(folder, settings)
    arms = {}
    for metric in settings.metrics:
        scores = read_metric(folder, metric)
        rows += mean_rows(scores, settings)
        arms[metric] = ArmScores.of(scores, settings)
        rows += robustness_rows(arms[metric], metric, settings, rows)
        rows += difference_rows(scores, settings)
        rows += floor_rows(scores, settings, _floor_sizes(rows, metric, settings))
        rows += scaled_rows(scores, settings)
    if settings.blame_metric in arms:
        rows += compared_rows(arms[settings.blame_metric], settings, rows)
    judged_by = _reliance_sizes(rows, settings)
    for metric in OF_NETWORKS:
        scores = read_metric(folder, metric)
        rows += mean_rows(scores, settings, {} if metric == PLACEBO else judged_by)
        if metric == RELIANCE:
            rows += difference_rows(scores, settings)
    rows += regression_rows(arms, settings)
    rows += correlation_rows(arms, settings)
    rows += [*prediction_rows(folder, settings), *validation_rows(folder, settings)]
    return rows
