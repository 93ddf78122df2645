"""How good the model itself is: discrimination and calibration, with patients resampled."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from jaxtyping import Float, Shaped

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import AUROC, RELIABILITY, condition
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_table import positions
from heatcheck.metrics.classification import expected_calibration_error, reliability_curve, weighted_auroc
from heatcheck.stats.resampling.bootstrap import bca_from_case_weights
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import CALIBRATION, OBSERVED

WeightedStatistic = Callable[[np.ndarray], np.ndarray]  # of the weights of the cases


@dataclass(frozen=True, slots=True)
class LabelledProbabilities:
    """Labels and probabilities, a row a case in the order of their ids and a column a finding."""

    labels: Float[np.ndarray, "cases findings"]
    probabilities: Float[np.ndarray, "cases findings"]
    patients: Shaped[np.ndarray, " cases"]
    cases: Shaped[np.ndarray, " cases"]


def read_answers(file: Path, settings: LocalizationSettings) -> LabelledProbabilities:
    """One model's answers, from a table of predictions that may hold several models'."""
    names = ["case", "patient", "finding"]
    table = pq.read_table(
        file,
        columns=[*names, "label", "probability"],
        filters=[("model", "==", settings.model)],
        read_dictionary=names,  # names repeat: numbers in their place keep a large run in memory
    ).to_pandas()
    cases = np.array(sorted(table["case"].unique()), object)  # the dictionary knows other models' too
    row_of, column_of = positions(table["case"], cases.tolist()), positions(table["finding"], settings.findings)
    asked = column_of >= 0
    labels, probabilities = (np.full((len(cases), len(settings.findings)), np.nan) for _ in range(2))
    labels[row_of[asked], column_of[asked]] = table["label"].to_numpy()[asked]
    probabilities[row_of[asked], column_of[asked]] = table["probability"].to_numpy()[asked]
    patients = np.empty(len(cases), object)
    patients[row_of] = table["patient"].to_numpy(object)
    drawn = patients if settings.rules.resampling == "patients" else cases
    return LabelledProbabilities(labels, probabilities, drawn.astype(str), cases.astype(str))


def model_estimates(answers: LabelledProbabilities, settings: LocalizationSettings) -> list[Estimate]:
    """AUROC, calibration error and reliability curve of each finding and of all of them."""
    return [*_auroc(answers, settings), *_calibration(answers, settings)] if len(answers.cases) else []


def _auroc(answers: LabelledProbabilities, settings: LocalizationSettings) -> Iterator[Estimate]:
    usable = []
    for column, finding in enumerate(settings.findings):
        truth = answers.labels[:, column]
        known = ~np.isnan(truth)
        n_cases, missing = int(known.sum()), int((~known).sum())
        blank = Estimate(AUROC, "auroc", finding, model=settings.model, n_cases=n_cases, n_undefined=missing)
        if len(set(truth[known])) < 2:
            yield replace(blank, reason="needs cases with and without the finding")
            continue
        usable.append(column)
        statistic = _weighted(truth[known], answers.probabilities[known, column])
        yield _interval(blank, statistic, answers.patients[known], settings)
    if usable:
        columns = [_weighted(answers.labels[:, c], answers.probabilities[:, c]) for c in usable]
        note = coverage(len(usable), len(settings.findings))
        blank = Estimate(AUROC, "auroc", ALL, "", settings.model, n_cases=len(answers.labels), reason=note)
        yield _interval(blank, lambda weights: _mean(columns, weights), answers.patients, settings)


def _mean(columns: list[WeightedStatistic], weights: np.ndarray) -> np.ndarray:
    return np.asarray(np.mean([column(weights) for column in columns], axis=0))


def _interval(
    blank: Estimate, statistic: WeightedStatistic, patients: np.ndarray, settings: LocalizationSettings
) -> Estimate:
    one = bca_from_case_weights(statistic, patients, settings.draws, settings.generator("auroc", blank.finding))[0]
    return fill(replace(blank, n_patients=len(np.unique(patients))), one, joined(one.reason, blank.reason))


def _weighted(labels: np.ndarray, probabilities: np.ndarray) -> WeightedStatistic:
    return lambda weights: weighted_auroc(labels, probabilities, weights)


def _calibration(answers: LabelledProbabilities, settings: LocalizationSettings) -> Iterator[Estimate]:
    columns = [(f, answers.labels[:, i], answers.probabilities[:, i]) for i, f in enumerate(settings.findings)]
    n_patients = len(np.unique(answers.patients))
    for finding, truth, said in [*columns, (ALL, answers.labels.ravel(), answers.probabilities.ravel())]:
        error = expected_calibration_error(truth, said)
        blank = Estimate(CALIBRATION, "ece", finding, "", settings.model, error.value, reason=error.reason)
        yield replace(blank, n_cases=int((~np.isnan(truth)).sum()), n_patients=n_patients)
        for number, one in enumerate(reliability_curve(truth, said, bins=10)):
            at = condition(bin=number, predicted=one.predicted)
            yield Estimate(
                RELIABILITY, OBSERVED, finding, "", settings.model, one.observed, condition=at, n_cases=one.n
            )
