"""Scores and features of maps by the model's answer, and how well each feature warns that the answer is wrong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, condition
from heatcheck.estimating.estimates import coverage
from heatcheck.estimating.score_values import Values
from heatcheck.estimating.warnings import CHANCE, LEAST_WARNING
from heatcheck.metrics import METRICS
from heatcheck.stats.resampling.studentised import FEWEST_PATIENTS, Linearised, contrast, linearised_macro
from heatcheck.studies.localization.answers.predictions import (
    LabelledProbabilities,
    is_enough,
    judged_statistics,
    linearised_auroc,
)
from heatcheck.studies.localization.comparisons import few_patients, measurement, simultaneous_rows
from heatcheck.studies.localization.estimates import read_values
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import (
    BEYOND_PROBABILITY,
    MAP_FEATURES,
    PROBABILITY,
    TESTED,
    WARNING,
    Calls,
)
from heatcheck.studies.localization.wrong_answers.calls import (
    CalledAnswers,
    Matrix,
    OperatingPoint,
    call_estimates,
    called_answers,
)

FEW_WRONG = (
    f"no finding has {FEWEST_PATIENTS} patients with a wrong answer of this kind and {FEWEST_PATIENTS} with a right one"
)
_WARNINGS = "every feature, for positive and negative calls, against chance"
_BEYOND = "every feature of maps, for positive and negative calls, beyond the probability"
_EVERY = (Calls.FOUND, Calls.FALSE_ALARM, Calls.MISSED, Calls.CLEARED)


@dataclass(frozen=True, slots=True)
class Feature:
    """What is known of an answer without the truth, as a matrix in which higher should mean wrong."""

    name: str
    method: str  # whose map it is of; empty for the probability
    risk: Mapping[str, Matrix]  # for positive and for negative calls


def wrong_answer_estimates(
    folder: Path, settings: LocalizationSettings, operating_point: OperatingPoint = None
) -> list[Estimate]:
    """One model's estimates, from the run's joined tables; none where the model's probabilities are not known."""
    called = called_answers(folder, settings, operating_point)
    if not len(called.answers.cases) or np.isnan(called.points).all():
        return []
    rows = list(call_estimates(called, settings))
    for metric in (name for name in TESTED if name in settings.metrics):
        rows += _found_and_missed(read_values(folder, metric, settings), called, settings)
    by_feature = {name: read_values(folder, name, settings) for name in MAP_FEATURES}
    for name, values in by_feature.items():
        rows += [row for call in _EVERY for row in _means(values, called, settings, call, name)]
    return rows + _warnings(_features(by_feature, called, settings), called, settings)


def _methods(settings: LocalizationSettings) -> list[str]:
    return [name for name in settings.methods if name not in settings.floors]


def _given(values: Values, called: CalledAnswers, settings: LocalizationSettings, call: str) -> dict[str, pd.Series]:
    """For each finding, whether the model gave this answer to each of the values' cases."""
    matrix = called.of(call)
    columns = {f: pd.Series(matrix[:, i], called.answers.cases) for i, f in enumerate(settings.findings)}
    return {f: columns[f].reindex(table.index, fill_value=False) for f, table in values.by_finding.items()}


def _means(
    values: Values, called: CalledAnswers, settings: LocalizationSettings, call: str, metric: str
) -> Iterator[Estimate]:
    """Each method's mean over the findings, on the cases with this answer."""
    given = _given(values, called, settings, call)
    tables = {f: table[given[f].to_numpy(bool)] for f, table in values.by_finding.items()}
    part = Values(metric, values.columns, {f: table for f, table in tables.items() if len(table)})
    for method in _methods(settings) if part.by_finding else ():
        row = Estimate(MEAN, metric, ALL, method, settings.model, condition=condition(call=call))
        measured = measurement(part, settings, row, [method], list(part.by_finding))
        if measured is not None:
            yield measured.estimate(settings)


def _found_and_missed(values: Values, called: CalledAnswers, settings: LocalizationSettings) -> list[Estimate]:
    """Each method's mean where the model found the finding and where it missed it, and how the two differ."""
    if not values.by_finding:
        return []
    both = (Calls.FOUND, Calls.MISSED)
    rows = [row for call in both for row in _means(values, called, settings, call, values.metric)]
    given = {call: _given(values, called, settings, call) for call in both}
    under = condition(call=Calls.MISSED, versus=Calls.FOUND)
    family = f"{METRICS[values.metric].label} over all findings, missed against found, each method"
    compared = []
    for method in _methods(settings):
        tables = {
            f: pd.DataFrame({**{c: table[method].where(given[c][f]) for c in both}, "patient": table["patient"]})
            for f, table in values.by_finding.items()
        }
        row = Estimate(DIFFERENCE, values.metric, ALL, method, settings.model, condition=under, family=family)
        apart = Values(values.metric, both, tables)
        found = measurement(apart, settings, row, list(both), list(tables), paired=False)
        reason = "no finding was both found and missed" if found is None else few_patients(found, both)
        if found is None or reason:
            rows.append(replace(row, reason=reason))
        else:
            compared.append(found)
    size = settings.sizes.between_methods(values.metric)
    return rows + simultaneous_rows(compared, settings, family, [size] * len(compared))


def _features(
    by_feature: Mapping[str, Values], called: CalledAnswers, settings: LocalizationSettings
) -> Iterator[Feature]:
    """The probability first: a call is surer the further it lies on its side.

    Of the maps' features the direction is fixed beforehand: disagreement and diffuse maps should warn.
    """
    said = called.answers.probabilities
    yield Feature(PROBABILITY, "", {Calls.POSITIVE: -said, Calls.NEGATIVE: said})
    for name, values in by_feature.items():
        for method in _methods(settings):
            matrix = np.full(said.shape, np.nan)
            for column, finding in enumerate(settings.findings):
                if finding in values.by_finding:
                    known = values.by_finding[finding][method].reindex(called.answers.cases)
                    matrix[:, column] = known.to_numpy(float)
            if not np.isnan(matrix).all():
                yield Feature(name, method, dict.fromkeys((Calls.POSITIVE, Calls.NEGATIVE), -matrix))


def _warnings(features: Iterator[Feature], called: CalledAnswers, settings: LocalizationSettings) -> list[Estimate]:
    """How well each feature warns of wrong calls, against chance and against the probability."""
    reference, *others = features
    warn: list[tuple[Estimate, Linearised]] = []
    beyond: list[tuple[Estimate, Linearised]] = []
    undecided: list[Estimate] = []
    for call in (Calls.POSITIVE, Calls.NEGATIVE):
        for feature in (reference, *others):
            answers, row = _wrong_by(feature, call, called, settings)
            gain = replace(row, statistic=BEYOND_PROBABILITY, family=_BEYOND)
            both = [row] if feature is reference else [row, gain]
            columns = [c for c in range(len(settings.findings)) if is_enough(answers, c)]
            if not columns:
                undecided += [replace(each, reason=FEW_WRONG) for each in both]
                continue
            note = coverage(len(columns), len(settings.findings))
            aurocs = linearised_auroc(answers, columns)
            warn.append((replace(row, reason=note), _macro(_above_chance(aurocs), columns)))
            if feature is not reference:
                by_probability = linearised_auroc(replace(answers, probabilities=reference.risk[call]), columns)
                beyond.append((replace(gain, reason=note), _macro(contrast(by_probability, aurocs), columns)))
    rows = judged_statistics(*_columns(warn), settings, LEAST_WARNING, CHANCE)
    return rows + judged_statistics(*_columns(beyond), settings, settings.sizes.between_methods("auroc")) + undecided


def _wrong_by(
    feature: Feature, call: str, called: CalledAnswers, settings: LocalizationSettings
) -> tuple[LabelledProbabilities, Estimate]:
    """The calls of one kind, labelled 1 where they are wrong and rated by the feature, and the row of its warning."""
    known = np.where(np.isnan(feature.risk[call]), np.nan, called.wrong(call))
    patients = called.answers.patients[~np.isnan(known).all(1)]
    row = Estimate(
        WARNING, feature.name, ALL, feature.method, settings.model, condition=condition(call=call), family=_WARNINGS,
        n_cases=int((~np.isnan(known)).sum()), n_patients=len(np.unique(patients)),
    )  # fmt: skip
    return replace(called.answers, labels=known, probabilities=feature.risk[call]), row


def _above_chance(aurocs: Linearised) -> Linearised:
    return replace(aurocs, values=np.subtract(aurocs.values, CHANCE))


def _columns(pairs: Sequence[tuple[Estimate, Linearised]]) -> tuple[list[Estimate], list[Linearised]]:
    return [row for row, _ in pairs], [statistic for _, statistic in pairs]


def _macro(statistic: Linearised, columns: Sequence[int]) -> Linearised:
    return statistic if len(columns) == 1 else linearised_macro(statistic, len(columns))
