"""From an alignment run's scores and predictions to the numbers of its tables, regressions among them."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from heatcheck.stats.treatment import INTERCEPT, Factor, Term, treatment_effects
from heatcheck.studies.alignment.cells import AlignmentSettings
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


def regression_rows(ends: Mapping[str, ArmScores], settings: AlignmentSettings) -> Iterator[Estimate]:
    """Least squares on each image's difference, by pre-training, architecture and method.

    An image has one row for each model and method, the mean over its seeds: were every seed a row, classical errors,
    which take rows for independent, would fall with each seed that is trained, though no image was added. It also
    keeps them comparable with published ones, which had one seed.
    """
    for metric in MAIN_METRICS:
        if metric in ends:
            yield from _regression(ends[metric].apart, metric, settings)


def _regression(apart: Wide, metric: str, settings: AlignmentSettings) -> Iterator[Estimate]:
    differences = apart.table.groupby(["finding", "case", "patient"]).mean()
    n_images, columns = len(differences), apart.pairs
    bases = {base.key: base for base in settings.fine_tuned}
    kinds = {
        "pretrained": ["yes" if bases[model].pretrained else "no" for model, _ in columns],
        "architecture": [bases[model].family for model, _ in columns],
        "method": [method for _, method in columns],
    }
    levels = {
        "pretrained": ("no", "yes"),
        "architecture": _in_order("architecture", [base.family for base in settings.fine_tuned]),
        "method": _in_order("method", list(settings.methods)),
    }
    factors = [Factor(name, np.tile(np.array(own, object), n_images), levels[name]) for name, own in kinds.items()]
    patients = np.repeat(differences.index.get_level_values("patient").to_numpy(), len(columns))
    found = treatment_effects(differences.to_numpy(float).ravel(), factors, patients)
    blank = Estimate(REGRESSION, metric, ALL)
    at_reference = ", ".join(f"{name}: {level}" for name, level in found.references.items())
    for errors in ERRORS:
        for term in found.terms:
            at = condition(errors=errors, term=_name(term))
            fit: Fit = getattr(term, errors)
            note = at_reference and f"the level at {at_reference}" if term.factor == INTERCEPT else ""
            yield fill(replace(blank, condition=at), fit, fit.reason or note)


def _in_order(factor: str, levels: list[str]) -> tuple[str, ...]:
    """The levels, the usual reference first."""
    return tuple(sorted(dict.fromkeys(levels), key=lambda level: level != REFERENCES[factor]))


def _name(term: Term) -> str:
    """What tables call a term; a factor that is left out has its own name alone."""
    return term.factor if term.factor == "pretrained" or not term.level else f"{term.factor}:{term.level}"


def correlation_rows(ends: Mapping[str, ArmScores], settings: AlignmentSettings) -> Iterator[Estimate]:
    """How both scores at both ends go together, over every image of every network that has all four.

    Here every seed is a row: a mean over seeds would have less noise, and another correlation, than the scores of one
    network, which is what was published. Patients are drawn with all their rows.
    """
    if not set(MAIN_METRICS) <= set(ends):
        return
    names, values, patients = _side_by_side(ends)
    found = correlations(values, patients, settings.draws, settings.generator(CORRELATION))
    places = {frozenset(pair): place for place, pair in enumerate(combinations(names, 2))}
    for kind in CORRELATIONS:
        for left, right in PAIRS:
            one = getattr(found, kind)[places[frozenset((left, right))]]
            blank = Estimate(
                CORRELATION, PAIRED_SCORES[left][0], ALL, condition=condition(kind=kind, left=left, right=right),
                n_cases=found.n_cases, n_patients=found.n_patients, n_undefined=found.n_undefined,
            )  # fmt: skip
            yield fill(blank, one)


def _side_by_side(
    ends: Mapping[str, ArmScores],
) -> tuple[list[str], Float[np.ndarray, "rows four"], Shaped[np.ndarray, " rows"]]:
    """The four scores of every image of every network, and its patient."""
    tables = {name: getattr(ends[metric], arm).table for name, (metric, arm) in PAIRED_SCORES.items()}
    # a row for each place in any of them
    index = functools.reduce(lambda one, other: one.union(other), (table.index for table in tables.values()))
    each = [table.reindex(index).to_numpy(float) for table in tables.values()]
    patients = np.repeat(index.get_level_values("patient").to_numpy(), each[0].shape[1])
    return list(tables), np.stack([values.ravel() for values in each], 1), patients


def alignment_estimates(folder: Path, settings: AlignmentSettings) -> list[Estimate]:
    """Every estimate of an alignment run but its blame table, from its joined tables; one metric at a time is read."""
    rows: list[Estimate] = []
    ends = {}
    for metric in settings.metrics:
        scores = read_metric(folder, metric)
        rows += mean_rows(scores, settings)
        ends[metric] = ArmScores.of(scores, settings)
        rows += robustness_rows(ends[metric], metric, settings)
        rows += difference_rows(scores, settings)
        rows += scaled_rows(scores, settings)
    for metric in OF_NETWORKS:
        scores = read_metric(folder, metric)
        rows += mean_rows(scores, settings)
        if metric == RELIANCE:
            rows += difference_rows(scores, settings)
    rows += regression_rows(ends, settings)
    rows += correlation_rows(ends, settings)
    rows += prediction_rows(folder, settings)
    rows += separation_rows(folder, settings)
    return rows
