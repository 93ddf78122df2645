"""How the study's models differ: in what they know, and in what each method shows of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import MODEL_DIFFERENCE, condition
from heatcheck.estimating.estimates import corrected, coverage, fill, joined
from heatcheck.estimating.score_values import Values
from heatcheck.metrics import METRICS
from heatcheck.metrics.classification import weighted_auroc
from heatcheck.stats.ratios import differences_from_first
from heatcheck.stats.resampling.bootstrap import bca_from_case_weights
from heatcheck.stats.resampling.macro import macro_differences, macro_weighted
from heatcheck.stats.resampling.signflip import sign_flip_test
from heatcheck.studies.localization.estimates import macro_rows, paired_row, read_values
from heatcheck.studies.localization.predictions import LabelledProbabilities, read_answers
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


def _blank(metric: str, method: str, settings: LocalizationSettings, other: str) -> Estimate:
    at = condition(other_model=settings.model)
    return Estimate(MODEL_DIFFERENCE, metric, method=method, model=other, condition=at)


def _map_tests(first: Values, folder: Path, settings: LocalizationSettings, other: str) -> Iterator[Estimate]:
    """The other model's scores less the primary's, by method; floors that do not look at a model do not differ."""
    second = read_values(folder, first.metric, replace(settings, model=other))
    for method in settings.methods:
        if method in settings.floors:
            continue
        both = _side_by_side(first, second, method, (settings.model, other))
        blank = replace(
            _blank(first.metric, method, settings, other), method=other, other_method=settings.model
        )  # the names of the columns, while differences are taken
        for finding, table in both.by_finding.items():
            found = paired_row(table, finding, blank, settings, differences_from_first)
            differences = (table[other] - table[settings.model]).to_numpy(float)
            yield _tested(found, differences, table["patient"].to_numpy(str), settings, method)
        for found in macro_rows(both, settings, [settings.model, other], macro_differences, blank):
            cube = both.over_findings([settings.model, other], list(both.by_finding))
            yield _tested(found, macro_weighted(cube[1] - cube[0]), both.patients, settings, method)


def _tested(
    found: Estimate, differences: np.ndarray, patients: np.ndarray, settings: LocalizationSettings, method: str
) -> Estimate:
    generator = settings.generator("flip models", found.metric, found.finding, method, found.model, settings.model)
    flip = sign_flip_test(differences, patients, settings.flips, generator)
    return replace(found, method=method, other_method="", p_value=flip.p_value)


def _side_by_side(first: Values, second: Values, method: str, names: tuple[str, str]) -> Values:
    """One method's values under two models, as two columns, on the cases that either has."""
    tables = {}
    for finding in first.by_finding.keys() & second.by_finding.keys():
        one, other = first.by_finding[finding], second.by_finding[finding]
        values = pd.concat([one[method].rename(names[0]), other[method].rename(names[1])], axis=1).sort_index()
        patients = pd.concat([one["patient"], other["patient"]])
        tables[finding] = values.assign(patient=patients[~patients.index.duplicated()].reindex(values.index))
    ordered = {finding: tables[finding] for finding in first.by_finding if finding in tables}
    return Values(first.metric, names, ordered)


def _auroc_differences(folder: Path, settings: LocalizationSettings, other: str) -> Iterator[Estimate]:
    """The other model's AUROC less the primary's, patients drawn once for both."""
    file = folder / "predictions.parquet"
    first, second = _common(read_answers(file, settings), read_answers(file, replace(settings, model=other)))
    usable = []
    for column, finding in enumerate(settings.findings):
        known = ~np.isnan(first.labels[:, column])
        blank = replace(_blank("auroc", "", settings, other), finding=finding, n_cases=int(known.sum()))
        if len(set(first.labels[known, column])) < 2:
            yield replace(blank, reason="needs cases with and without the finding")
            continue
        usable.append(column)
        yield _auroc_difference(blank, (first, second), [column], settings)
    if usable:
        note = coverage(len(usable), len(settings.findings))
        blank = replace(_blank("auroc", "", settings, other), finding=ALL, n_cases=len(first.cases), reason=note)
        yield _auroc_difference(blank, (first, second), usable, settings)


def _common(
    first: LabelledProbabilities, second: LabelledProbabilities
) -> tuple[LabelledProbabilities, LabelledProbabilities]:
    shared = np.intersect1d(first.cases, second.cases)
    chosen = []
    for answers in (first, second):
        rows = np.isin(answers.cases, shared)
        chosen.append(
            LabelledProbabilities(
                answers.labels[rows], answers.probabilities[rows], answers.patients[rows], answers.cases[rows]
            )
        )
    return chosen[0], chosen[1]


def _auroc_difference(
    blank: Estimate,
    both: tuple[LabelledProbabilities, LabelledProbabilities],
    columns: list[int],
    settings: LocalizationSettings,
) -> Estimate:
    known = ~np.isnan(both[0].labels[:, columns]).all(1)
    patients = both[0].patients[known]

    def difference(weights: np.ndarray) -> np.ndarray:
        first, second = (
            np.mean([weighted_auroc(a.labels[known, c], a.probabilities[known, c], weights) for c in columns], axis=0)
            for a in both
        )
        return np.asarray(second - first)

    generator = settings.generator("auroc", blank.finding)
    one = bca_from_case_weights(difference, patients, settings.draws, generator)[0]
    return fill(replace(blank, n_patients=len(np.unique(patients))), one, joined(one.reason, blank.reason))
