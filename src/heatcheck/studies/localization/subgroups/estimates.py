"""Means, floors and AUROC of every group of cases, and how groups differ from the largest one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, TEST, condition
from heatcheck.estimating.estimates import coverage, joined
from heatcheck.estimating.score_values import Values
from heatcheck.metrics import METRICS
from heatcheck.stats.auroc import FEW_OF_A_KIND
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.studentised import (
    Linearised,
    contrast,
    linearised_macro,
)
from heatcheck.studies.localization.answers.predictions import (
    LabelledProbabilities,
    auroc_estimates,
    is_enough,
    judged_statistics,
    linearised_auroc,
    read_answers,
)
from heatcheck.studies.localization.comparisons import Measurement, few_patients, measurement, simultaneous_rows
from heatcheck.studies.localization.estimates import best_floor, mean_rows, read_values, room_that_matters
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.subgroups.groups import Groups
from heatcheck.studies.localization.vocabulary import COUNT, NOT_STATED, TESTED, Counts

NO_ERROR = "the model makes no error in a group, and its patients cannot show how sure that is"


@dataclass(frozen=True, slots=True)
class Pair:
    """A group, and the largest group of the same column, which it is compared with."""

    groups: Groups
    name: str
    largest: str

    @property
    def under(self) -> str:
        """The condition of the comparison."""
        return condition(subgroup=self.groups.column, group=self.name, versus=self.largest)


def subgroup_estimates(folder: Path, settings: LocalizationSettings, divided: Sequence[Groups]) -> list[Estimate]:
    """One model's estimates of every group, from the run's joined tables."""
    if not divided:
        return []
    table = pq.read_table(folder / "cases.parquet", columns=["case", "patient", "status"]).to_pandas()
    cases = table[table["status"] == "ok"].drop_duplicates("case")
    rows = [row for groups in divided for row in _counts(cases, groups, settings)]
    pairs = [pair for groups in divided for pair in pairs_of(cases, groups)]
    for metric in (name for name in TESTED if name in settings.metrics):
        values = read_values(folder, metric, settings)
        if not values.by_finding:
            continue
        means = [row for groups in divided for row in _means(values, groups, settings)]
        rows += means
        rows += _against_floors(values, divided, settings, means)
        rows += differences(values, pairs, settings)
    # a group may be one of views, so that every image counts here
    answers = read_answers(folder / "predictions.parquet", replace(settings, views="each"))
    if len(answers.cases):
        rows += [row for groups in divided for row in _aurocs(answers, groups, settings)]
        rows += auroc_differences(answers, pairs, settings)
    return rows


def _counts(cases: pd.DataFrame, groups: Groups, settings: LocalizationSettings) -> Iterator[Estimate]:
    group = cases["case"].map(groups.of_case)
    for name in groups.names:
        some = cases[group == name]
        under = condition(subgroup=groups.column, group=name)
        for metric, column in ((Counts.IMAGES, "case"), (Counts.PATIENTS, "patient")):
            number = int(some[column].nunique())
            yield Estimate(
                COUNT, metric, ALL, "", settings.model, float(number), condition=under, n_cases=len(some)
            )  # fmt: skip


def pairs_of(cases: pd.DataFrame, groups: Groups) -> Iterator[Pair]:
    """Every stated group with the one that has most patients."""
    patients = cases.groupby(cases["case"].map(groups.of_case))["patient"].nunique()
    stated = [name for name in groups.names if name != NOT_STATED and name in patients.index]
    if len(stated) > 1:
        largest = max(stated, key=lambda name: int(patients[name]))
        yield from (Pair(groups, name, largest) for name in stated if name != largest)


def _part(values: Values, groups: Groups, name: str) -> Values:
    """The values of the cases of one group; findings without any are left out."""
    tables = {f: table[table.index.map(groups.of_case) == name] for f, table in values.by_finding.items()}
    return Values(values.metric, values.columns, {f: table for f, table in tables.items() if len(table)})


def _means(values: Values, groups: Groups, settings: LocalizationSettings) -> Iterator[Estimate]:
    for name in groups.names:
        part = _part(values, groups, name)
        note = coverage(len(part.by_finding), len(values.by_finding))
        for row in mean_rows(part, settings, condition(subgroup=groups.column, group=name)) if part.by_finding else ():
            yield replace(row, reason=joined(row.reason, note)) if row.finding == ALL else row


def _against_floors(
    values: Values, divided: Sequence[Groups], settings: LocalizationSettings, means: Sequence[Estimate]
) -> list[Estimate]:
    """In every group, each method against the best floor there, over all findings."""
    if not settings.floors:
        return []
    measured: list[Measurement] = []
    sizes: list[float] = []
    for groups in divided:
        for name in groups.names:
            part, under = _part(values, groups, name), condition(subgroup=groups.column, group=name)
            known = {(row.finding, row.method): row.value for row in means if row.condition == under}
            floor = best_floor(known, ALL, settings)
            for method in (method for method in settings.methods if method not in settings.floors):
                row = Estimate(TEST, values.metric, ALL, method, settings.model, other_method=floor, condition=under)
                found = measurement(part, settings, row, [floor, method], list(part.by_finding))
                if found is not None:
                    measured.append(found)
                    sizes.append(room_that_matters(known, ALL, settings))
    family = f"{METRICS[values.metric].label} over all findings, each method against the best floor of each group"
    return simultaneous_rows(measured, settings, family, sizes)


def differences(values: Values, pairs: Sequence[Pair], settings: LocalizationSettings) -> list[Estimate]:
    """Each method's mean over all findings in a group less that in the largest group, on findings that both have."""
    measured: list[Measurement] = []
    rows: list[Estimate] = []
    label = METRICS[values.metric].label
    family = f"{label} over all findings, each group against the largest of its column, each method"
    for pair in pairs:
        for method in (method for method in settings.methods if method not in settings.floors):
            row = Estimate(DIFFERENCE, values.metric, ALL, method, settings.model, condition=pair.under)
            apart = _apart(values, pair, method)
            found = measurement(apart, settings, row, [pair.largest, pair.name], list(apart.by_finding), paired=False)
            few = "no finding has a value in both groups"
            few = few if found is None else few_patients(found, (pair.largest, pair.name))
            if found is None or few:
                counted = row if found is None else found.filled(Interval(found.value))
                rows.append(replace(counted, reason=few, family=family))
            else:
                measured.append(found)
    size = settings.sizes.between_methods(values.metric)
    return [*simultaneous_rows(measured, settings, family, [size] * len(measured)), *rows]


def _apart(values: Values, pair: Pair, method: str) -> Values:
    """One method's values as two columns: those of the largest group and those of the other."""
    tables = {}
    for finding, table in values.by_finding.items():
        group = table.index.map(pair.groups.of_case)
        columns = {name: table[method].where(group == name) for name in (pair.largest, pair.name)}
        tables[finding] = pd.DataFrame({**columns, "patient": table["patient"]})
    return Values(values.metric, (pair.largest, pair.name), tables)


def _in_group(answers: LabelledProbabilities, groups: Groups, name: str) -> np.ndarray:
    return np.array([groups.of_case.get(case) == name for case in answers.cases.tolist()], bool)


def _aurocs(answers: LabelledProbabilities, groups: Groups, settings: LocalizationSettings) -> Iterator[Estimate]:
    for name in groups.names:
        chosen = _in_group(answers, groups, name)
        if chosen.any():
            under = condition(subgroup=groups.column, group=name)
            yield from (replace(row, condition=under) for row in auroc_estimates(answers.rows(chosen), settings))


def auroc_differences(
    answers: LabelledProbabilities, pairs: Sequence[Pair], settings: LocalizationSettings
) -> list[Estimate]:
    """The mean AUROC in a group less that in the largest group, on findings with enough patients in both."""
    family = "AUROC over all findings, each group against the largest of its column"
    rows: list[Estimate] = []
    templates: list[Estimate] = []
    statistics: list[Linearised] = []
    for pair in pairs:
        masked = {name: _only(answers, _in_group(answers, pair.groups, name)) for name in (pair.largest, pair.name)}
        columns = [c for c in range(len(settings.findings)) if all(is_enough(one, c) for one in masked.values())]
        known = ~np.isnan(masked[pair.name].labels[:, columns]).all(1)
        row = Estimate(
            DIFFERENCE, "auroc", ALL, "", settings.model, condition=pair.under, n_cases=int(known.sum()),
            n_patients=len(np.unique(answers.patients[known])), family=family,
        )  # fmt: skip
        if not columns:
            rows.append(replace(row, reason=FEW_OF_A_KIND))
            continue
        largest, other = (linearised_auroc(masked[name], columns) for name in (pair.largest, pair.name))
        if not (np.all(largest.errors > 0) and np.all(other.errors > 0)):
            value = float(np.mean(np.subtract(other.values, largest.values)))
            on = coverage(len(columns), len(settings.findings))
            rows.append(replace(row, value=value, reason="; ".join(filter(None, (NO_ERROR, on)))))
            continue
        difference = contrast(largest, other)
        statistics.append(difference if len(columns) == 1 else linearised_macro(difference, len(columns)))
        templates.append(replace(row, reason=coverage(len(columns), len(settings.findings))))
    size = settings.sizes.between_methods("auroc")
    return [*judged_statistics(templates, statistics, settings, size), *rows]


def _only(answers: LabelledProbabilities, chosen: np.ndarray) -> LabelledProbabilities:
    """The answers with the labels of all other cases unknown, so that the patients stay the same."""
    return replace(answers, labels=np.where(chosen[:, None], answers.labels, np.nan))
