"""How the study's models differ: in discrimination, and in the scores of each method's maps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import MODEL_DIFFERENCE, condition
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_values import Values
from heatcheck.metrics import METRICS
from heatcheck.running.facts import ModelRecord
from heatcheck.stats.resampling.studentised import contrast, linearised_macro, t_intervals
from heatcheck.studies.localization.answers.predictions import (
    ONE_CLASS,
    LabelledProbabilities,
    linearised_auroc,
    read_answers,
    usable_findings,
)
from heatcheck.studies.localization.comparisons import Measurement, measurement, simultaneous_rows
from heatcheck.studies.localization.estimates import read_values
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import TESTED


def model_differences(folder: Path, primary: LocalizationSettings, others: Sequence[str]) -> list[Estimate]:
    """Each other model less the primary one, on the cases that both have: maps by method, and discrimination."""
    rows: list[Estimate] = []
    for metric in TESTED if others else ():
        if metric not in primary.metrics:
            continue
        first = read_values(folder, metric, primary)
        tests = [test for other in others for test in _map_tests(first, folder, primary, other)]
        label = METRICS[metric].label
        models = f"each model against {primary.model}, method by method"
        overall = [test for finding, test in tests if finding == ALL]
        each = [test for finding, test in tests if finding != ALL]
        size = primary.sizes.between_methods(metric)
        for tested, over in ((overall, "over all findings"), (each, "on each finding")):
            rows += simultaneous_rows(tested, primary, f"{label} {over}, {models}", [size] * len(tested))
    return rows + [row for other in others for row in _auroc_differences(folder, primary, other)]


def ensembles_and_singles(models: Sequence[ModelRecord], primary: str) -> Iterator[tuple[str, str]]:
    """Each ensemble with each model of its architecture that is none, except pairs with the primary model."""
    for ensemble in (model for model in models if model.kind == "ensemble"):
        for single in (model for model in models if model.kind != "ensemble"):
            if single.architecture == ensemble.architecture and primary not in (ensemble.name, single.name):
                yield ensemble.name, single.name


def _template(metric: str, method: str, settings: LocalizationSettings, other: str) -> Estimate:
    under = condition(other_model=settings.model)
    return Estimate(MODEL_DIFFERENCE, metric, method=method, model=other, condition=under)


def _map_tests(
    first: Values, folder: Path, settings: LocalizationSettings, other: str
) -> Iterator[tuple[str, Measurement]]:
    """The other model's scores less the primary's, by method; floors do not look at a model, so they are left out."""
    second = read_values(folder, first.metric, replace(settings, model=other))
    for method in settings.methods:
        if method in settings.floors:
            continue
        both = _side_by_side(first, second, method, (settings.model, other))
        for finding, findings in [*((f, [f]) for f in both.by_finding), (ALL, list(both.by_finding))]:
            row = replace(_template(first.metric, method, settings, other), finding=finding)
            measured = measurement(both, settings, row, [settings.model, other], findings)
            if measured is not None:
                yield finding, measured


def _side_by_side(first: Values, second: Values, method: str, names: tuple[str, str]) -> Values:
    """One method's values under two models, as two columns, on the cases that either has."""
    tables = {}
    for finding in first.by_finding:
        if finding not in second.by_finding:
            continue
        one, other = first.by_finding[finding], second.by_finding[finding]
        values = pd.concat([one[method].rename(names[0]), other[method].rename(names[1])], axis=1).sort_index()
        patients = pd.concat([one["patient"], other["patient"]])
        tables[finding] = values.assign(patient=patients[~patients.index.duplicated()].reindex(values.index))
    return Values(first.metric, names, tables)


def _auroc_differences(folder: Path, settings: LocalizationSettings, other: str) -> Iterator[Estimate]:
    """The other model's AUROC less the primary's on the cases that both have."""
    file = folder / "predictions.parquet"
    models = [settings, replace(settings, model=other)]
    one, two = (read_answers(file, replace(each, views="each")).cases for each in models)
    shared = np.intersect1d(one, two)
    first, second = (read_answers(file, each, among=shared) for each in models)
    usable = usable_findings(first)
    for column, finding in enumerate(settings.findings):
        known = int((~np.isnan(first.labels[:, column])).sum())
        template = replace(_template("auroc", "", settings, other), finding=finding, n_cases=known)
        if column not in usable:
            yield replace(template, reason=ONE_CLASS)
            continue
        yield _auroc_difference(template, (first, second), [column])
    if usable:
        note = coverage(len(usable), len(settings.findings))
        template = replace(_template("auroc", "", settings, other), finding=ALL, n_cases=len(first.cases), reason=note)
        yield _auroc_difference(template, (first, second), usable)


def _auroc_difference(
    template: Estimate, models: tuple[LabelledProbabilities, LabelledProbabilities], columns: list[int]
) -> Estimate:
    first, second = (linearised_auroc(answers, columns) for answers in models)
    differences = contrast(first, second)
    statistic = differences if len(columns) == 1 else linearised_macro(differences, len(columns))
    (interval,) = t_intervals(statistic)
    counted = replace(template, n_patients=int(differences.takes_part.any(1).sum()))
    return fill(counted, interval, joined(interval.reason, template.reason))
