"""How the study's models differ: in discrimination, and in the scores of each method's maps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import MODEL_DIFFERENCE, condition
from heatcheck.estimating.estimates import corrected, coverage
from heatcheck.estimating.score_values import Values
from heatcheck.metrics import METRICS
from heatcheck.stats.ratios import differences_from_first
from heatcheck.stats.resampling.macro import macro_differences, macro_weighted
from heatcheck.studies.localization.estimates import macro_rows, paired_row, read_values, with_p_value
from heatcheck.studies.localization.predictions import (
    ONE_CLASS,
    LabelledProbabilities,
    auroc_interval,
    mean_auroc,
    read_answers,
)
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
        overall = [test for test in tests if test.finding == ALL]
        each = [test for test in tests if test.finding != ALL]
        rows += corrected(overall, f"{label} over all findings, each model against {primary.model}, method by method")
        rows += corrected(each, f"{label} on each finding, each model against {primary.model}, method by method")
    return rows + [row for other in others for row in _auroc_differences(folder, primary, other)]


def _template(metric: str, method: str, settings: LocalizationSettings, other: str) -> Estimate:
    under = condition(other_model=settings.model)
    return Estimate(MODEL_DIFFERENCE, metric, method=method, model=other, condition=under)


def _map_tests(first: Values, folder: Path, settings: LocalizationSettings, other: str) -> Iterator[Estimate]:
    """The other model's scores less the primary's, by method; floors do not look at a model, so they are left out."""
    second = read_values(folder, first.metric, replace(settings, model=other))
    for method in settings.methods:
        if method in settings.floors:
            continue
        both = _side_by_side(first, second, method, (settings.model, other))
        # while differences are taken, the models stand where two methods would
        template = replace(_template(first.metric, method, settings, other), method=other, other_method=settings.model)
        names = method, other, settings.model
        for finding, table in both.by_finding.items():
            row = paired_row(table, finding, template, settings, differences_from_first)
            differences, patients = (
                (table[other] - table[settings.model]).to_numpy(float),
                table["patient"].to_numpy(str),
            )
            tested = with_p_value(row, differences, patients, settings, "flip models", *names)
            yield replace(tested, method=method, other_method="")
        for row in macro_rows(both, settings, [settings.model, other], macro_differences, template):
            cube = both.over_findings([settings.model, other], list(both.by_finding))
            differences = macro_weighted(cube[1] - cube[0])
            tested = with_p_value(row, differences, both.patients, settings, "flip models", *names)
            yield replace(tested, method=method, other_method="")


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
    """The other model's AUROC less the primary's, patients drawn once for both."""
    file = folder / "predictions.parquet"
    first, second = read_answers(file, settings), read_answers(file, replace(settings, model=other))
    shared = np.intersect1d(first.cases, second.cases)
    first, second = (answers.rows(np.isin(answers.cases, shared)) for answers in (first, second))
    usable = []
    for column, finding in enumerate(settings.findings):
        known = ~np.isnan(first.labels[:, column])
        template = replace(_template("auroc", "", settings, other), finding=finding, n_cases=int(known.sum()))
        if len(set(first.labels[known, column])) < 2:
            yield replace(template, reason=ONE_CLASS)
            continue
        usable.append(column)
        yield _auroc_difference(template, (first, second), [column], settings)
    if usable:
        note = coverage(len(usable), len(settings.findings))
        template = replace(_template("auroc", "", settings, other), finding=ALL, n_cases=len(first.cases), reason=note)
        yield _auroc_difference(template, (first, second), usable, settings)


def _auroc_difference(
    template: Estimate,
    models: tuple[LabelledProbabilities, LabelledProbabilities],
    columns: list[int],
    settings: LocalizationSettings,
) -> Estimate:
    known = ~np.isnan(models[0].labels[:, columns]).all(1)
    first, second = (mean_auroc(answers.rows(known), columns) for answers in models)
    patients = models[0].patients[known]
    return auroc_interval(template, lambda weights: second(weights) - first(weights), patients, settings)
