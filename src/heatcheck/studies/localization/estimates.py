"""From a run's scores to the numbers of its tables: means, distances from the readers, tests against the floors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate, Score
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PERCENT_DECREASE, PLAIN, RATIO, TEST, Statistic
from heatcheck.estimating.estimates import corrected, coverage, fill, joined
from heatcheck.estimating.score_values import Gathered, Values
from heatcheck.metrics import METRICS
from heatcheck.runs.tables import read_batches
from heatcheck.stats.ratios import decreases_from_first, differences_from_first
from heatcheck.stats.resampling.bootstrap import bca_interval, mean_estimates
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.macro import macro_decreases, macro_differences, macro_means, macro_weighted, mean_share
from heatcheck.stats.resampling.signflip import sign_flip_test
from heatcheck.studies.localization.predictions import model_estimates, read_answers
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import TESTED

_DISTANCES = {
    DIFFERENCE: (differences_from_first, macro_differences, 1.0),
    PERCENT_DECREASE: (decreases_from_first, macro_decreases, 100.0),
}
_RATIOS = {
    "precision": ("true_positive_pixels", "false_positive_pixels"),
    "recall": ("true_positive_pixels", "false_negative_pixels"),
    "specificity": ("true_negative_pixels", "false_positive_pixels"),
}


def localization_estimates(folder: Path, settings: LocalizationSettings) -> list[Estimate]:
    """One model's estimates under the recommended rules, from the run's joined tables."""
    rows: list[Estimate] = []
    for metric in settings.metrics:
        values = read_values(folder, metric, settings)
        if not values.by_finding:
            continue
        rows += mean_rows(values, settings)
        if metric in TESTED:
            rows += distances_from_human(values, settings)
            rows += _tests_against_floors(values, settings)
    rows += _pixel_ratios(folder, settings)
    return rows + model_estimates(read_answers(folder / "predictions.parquet", settings), settings)


def read_values(
    folder: Path, metric: str, settings: LocalizationSettings, under: str = PLAIN, readers_under: str = PLAIN
) -> Values:
    """One metric's values under one condition, for one model and the readers.

    Only these rows are read, and only their numbers kept: a run holds several models and many millions of rows.
    """
    methods = [("condition", "==", under), ("model", "==", settings.model), ("method", "!=", HUMAN)]
    readers = [("condition", "==", readers_under), ("method", "==", HUMAN)]
    wanted = [[("metric", "==", metric), *filters] for filters in (methods, readers)]
    columns = ["case", "patient", "finding", "method", "value"]
    gathered = Gathered(settings.findings, (*settings.methods, HUMAN))
    for batch in read_batches(folder / "scores.parquet", Score, columns, wanted):
        gathered.add(batch)
    values = gathered.values(metric)
    return values if settings.rules.resampling == "patients" else values.by_case()


def mean_rows(values: Values, settings: LocalizationSettings, under: str = PLAIN) -> Iterator[Estimate]:
    """The mean of every method and of the readers, on each finding and over all."""
    template = Estimate(MEAN, values.metric, model=settings.model, condition=under)
    for finding, table in values.by_finding.items():
        matrix = table[list(values.columns)].to_numpy(float)
        generator = settings.generator("mean", values.metric, finding)
        means = mean_estimates(matrix, table["patient"].to_numpy(str), settings.draws, generator)
        for method, mean in zip(values.columns, means, strict=True):
            yield fill(replace(template, finding=finding, method=method), mean)
    for method in values.columns:  # one by one: a finding that one of them lacks must not be taken from the others
        yield from macro_rows(values, settings, [method], macro_means, template)


def macro_rows(
    values: Values,
    settings: LocalizationSettings,
    columns: list[str],
    statistic: Callable[..., np.ndarray],
    template: Estimate,
) -> Iterator[Estimate]:
    """One estimate over all findings per value of the statistic, for the last of the columns."""
    findings = [f for f, table in values.by_finding.items() if table[columns].notna().any().all()]
    if not findings:
        return
    cube = values.over_findings(columns, findings)
    if template.other_method and _on_common_cases(template, settings):
        cube = np.where(np.isnan(cube).any(0, keepdims=True), np.nan, cube)  # else the cases would differ as well
        keep = ~np.isnan(cube).all(1).any(0)
        cube, findings = cube[..., keep], [f for f, kept in zip(findings, keep, strict=True) if kept]
        if not findings:
            return
    takes_part = ~np.isnan(cube).all((0, 2))
    patients = values.patients[takes_part]
    flat = np.moveaxis(cube[:, takes_part], 0, 1).reshape(len(patients), -1)
    totals = cluster_totals(flat, patients).joined
    generator = settings.generator(template.statistic, values.metric, ALL, template.other_method, template.method)
    intervals = bca_interval(totals, partial(statistic, groups=len(columns)), settings.draws, generator)
    note, last = coverage(len(findings), len(settings.findings)), slice(-len(intervals), None)
    for method, interval, part in zip(columns[last], intervals, cube[last], strict=True):
        defined = int((~np.isnan(part)).sum())
        missing = int(sum(values.by_finding[f][method].isna().sum() for f in findings))
        counted = replace(template, n_cases=defined, n_patients=len(np.unique(patients)), n_undefined=missing)
        yield fill(replace(counted, finding=ALL, method=method), interval, joined(interval.reason, note))


def distances_from_human(
    values: Values, settings: LocalizationSettings, under: str = PLAIN, statistics: Sequence[Statistic] = (*_DISTANCES,)
) -> Iterator[Estimate]:
    """Method less readers, and by how many percent it falls short of them, on the cases that both have."""
    if HUMAN not in values.columns:
        return
    for method in settings.methods:
        for name in statistics:
            per_finding, macro, scale = _DISTANCES[name]
            template = Estimate(name, values.metric, "", method, settings.model, other_method=HUMAN, condition=under)
            for finding, table in values.by_finding.items():
                yield _scaled(paired_row(table, finding, template, settings, per_finding), scale)
            for estimate in macro_rows(values, settings, [HUMAN, method], macro, template):
                yield _scaled(estimate, scale)


def _on_common_cases(template: Estimate, settings: LocalizationSettings) -> bool:
    """Whether two columns are compared on the cases both have; the benchmark takes the readers on their own cases."""
    return settings.rules.human_common_cases or template.other_method != HUMAN


def _scaled(estimate: Estimate, scale: float) -> Estimate:
    return replace(estimate, value=estimate.value * scale, low=estimate.low * scale, high=estimate.high * scale)


def paired_row(
    table: pd.DataFrame,
    finding: str,
    template: Estimate,
    settings: LocalizationSettings,
    statistic: Callable[..., np.ndarray],
) -> Estimate:
    """The statistic of the columns of the template's two methods, on the cases that both have."""
    both = table[[template.other_method, template.method]].to_numpy(float)
    undefined = np.isnan(both)
    common = ~(undefined.any(1) if _on_common_cases(template, settings) else undefined.all(1))
    patients = table["patient"].to_numpy(str)[common]
    totals = cluster_totals(both[common], patients)
    generator = settings.generator(template.statistic, template.metric, finding, template.other_method, template.method)
    interval = bca_interval(totals.joined, statistic, settings.draws, generator)[0]
    n_patients, missing = len(np.unique(patients)), len(table) - len(patients)
    counted = replace(template, finding=finding, n_cases=len(patients), n_patients=n_patients, n_undefined=missing)
    return fill(counted, interval)


def with_p_value(
    row: Estimate,
    differences: np.ndarray,
    patients: np.ndarray,
    settings: LocalizationSettings,
    kind: str,
    *compared: str,
) -> Estimate:
    """The row with the p-value of a sign-flip test, whose draws are seeded by `kind` and `compared`."""
    generator = settings.generator(kind, row.metric, row.finding, *compared)
    return replace(row, p_value=sign_flip_test(differences, patients, settings.flips, generator).p_value)


def _tests_against_floors(values: Values, settings: LocalizationSettings) -> list[Estimate]:
    """Each method against every floor over all findings, and against the best floor on each finding."""
    methods = [name for name in settings.methods if name not in settings.floors]
    overall = [
        test for method in methods for floor in settings.floors for test in _macro_test(values, settings, method, floor)
    ]
    each = [
        _finding_test(table, finding, values.metric, settings, method)
        for method in methods
        for finding, table in values.by_finding.items()
        if settings.floors
    ]
    label = METRICS[values.metric].label
    return [
        *corrected(overall, f"{label} over all findings, each method against each floor"),
        *corrected(each, f"{label} on each finding, each method against the best floor there"),
    ]


def _macro_test(values: Values, settings: LocalizationSettings, method: str, floor: str) -> Iterator[Estimate]:
    template = Estimate(TEST, values.metric, ALL, method, settings.model, other_method=floor)
    for row in macro_rows(values, settings, [floor, method], macro_differences, template):
        cube = values.over_findings([floor, method], list(values.by_finding))
        differences = macro_weighted(cube[1] - cube[0])
        yield with_p_value(row, differences, values.patients, settings, "flip", method, floor)


def _finding_test(
    table: pd.DataFrame, finding: str, metric: str, settings: LocalizationSettings, method: str
) -> Estimate:
    means = table[list(settings.floors)].mean()
    floor = str(means.idxmax()) if means.notna().any() else settings.floors[0]
    template = Estimate(TEST, metric, finding, method, settings.model, other_method=floor)
    row = paired_row(table, finding, template, settings, differences_from_first)
    differences = (table[method] - table[floor]).to_numpy(float)
    return with_p_value(row, differences, table["patient"].to_numpy(str), settings, "flip", method, floor)


def _pixel_ratios(folder: Path, settings: LocalizationSettings) -> Iterator[Estimate]:
    """Pixel precision, recall and specificity, from counts summed over images."""
    names = dict.fromkeys(name for pair in _RATIOS.values() for name in pair)
    counts = {name: read_values(folder, name, settings) for name in names}
    for metric, (part, rest) in _RATIOS.items():
        for method in counts[part].columns:
            each = [(finding, [finding]) for finding in counts[part].by_finding]
            for name, findings in [*each, (ALL, list(counts[part].by_finding))] if each else []:
                template = Estimate(RATIO, metric, name, method, settings.model)
                yield _ratio([counts[part], counts[rest]], findings, template, settings)


def _ratio(counts: list[Values], findings: list[str], template: Estimate, settings: LocalizationSettings) -> Estimate:
    """The part's share of part and rest on each finding's own cases, averaged over the findings that have any.

    A case counts once, however many of its findings are known.
    """
    both = np.stack([values.over_findings([template.method], findings)[0] for values in counts])
    defined = ~np.isnan(both).any(0)
    has_cases = defined.any(0) | ~defined.any()  # where nothing is known, all of it is undefined
    takes_part = defined.any(1)
    patients = counts[0].patients[takes_part]
    part, rest = np.where(defined, both, np.nan)[:, takes_part][..., has_cases]
    totals = cluster_totals(np.hstack([part, rest]), patients).sums
    generator = settings.generator("ratio", template.metric, template.finding, template.method)
    interval = bca_interval(totals, mean_share, settings.draws, generator)[0]
    known, every = int(has_cases.sum()), len(settings.findings) if template.finding == ALL else 1
    n_patients, missing = len(np.unique(patients)), int((~takes_part).sum())
    counted = replace(template, n_cases=len(patients), n_patients=n_patients, n_undefined=missing)
    return fill(counted, interval, joined(interval.reason, coverage(known, every)))
