"""All estimates of an alignment run but its blame table; regressions and correlations are computed here."""

import functools
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import CORRELATION, condition
from heatcheck.estimating.estimates import fill
from heatcheck.stats.correlation import correlations
from heatcheck.stats.regression import Fit
from heatcheck.stats.treatment import INTERCEPT, Factor, RegressionTerm, treatment_effects
from heatcheck.studies.alignment.means import (
    OF_NETWORKS,
    ArmScores,
    Wide,
    difference_rows,
    mean_rows,
    read_metric,
    robustness_rows,
    scaled_rows,
)
from heatcheck.studies.alignment.predictions import prediction_rows, separation_rows
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    CORRELATIONS,
    ERRORS,
    MAIN_METRICS,
    PAIRED_SCORES,
    REGRESSION,
    RELIANCE,
)

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
    effects = treatment_effects(differences.to_numpy(float).ravel(), factors, patients)
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
    rows: list[Estimate] = []
    arms = {}
    for metric in settings.metrics:
        scores = read_metric(folder, metric)
        rows += mean_rows(scores, settings)
        arms[metric] = ArmScores.of(scores, settings)
        rows += robustness_rows(arms[metric], metric, settings)
        rows += difference_rows(scores, settings)
        rows += scaled_rows(scores, settings)
    for metric in OF_NETWORKS:
        scores = read_metric(folder, metric)
        rows += mean_rows(scores, settings)
        if metric == RELIANCE:
            rows += difference_rows(scores, settings)
    rows += regression_rows(arms, settings)
    rows += correlation_rows(arms, settings)
    rows += prediction_rows(folder, settings)
    rows += separation_rows(folder, settings)
    return rows
