"""How good the model itself is: discrimination and calibration, with patients resampled."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pyarrow.parquet as pq
from jaxtyping import Bool, Float, Shaped

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import AUROC, RELIABILITY, Condition, condition_of
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_table import positions
from heatcheck.metrics.classification import expected_calibration_error, reliability_curve, weighted_auroc
from heatcheck.stats.resampling.bootstrap import bca_from_case_weights
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import CALIBRATION, OBSERVED

WeightedStatistic = Callable[[np.ndarray], np.ndarray]  # of the weights of the cases
ONE_CLASS = "needs cases with and without the finding"


@dataclass(frozen=True, slots=True)
class LabelledProbabilities:
    """Labels and probabilities, with a row per case in the order of their ids and a column per finding."""

    labels: Float[np.ndarray, "cases findings"]
    probabilities: Float[np.ndarray, "cases findings"]
    patients: Shaped[np.ndarray, " cases"]
    cases: Shaped[np.ndarray, " cases"]

    def rows(self, chosen: Bool[np.ndarray, " cases"]) -> "LabelledProbabilities":
        """Those of the chosen cases."""
        return LabelledProbabilities(
            self.labels[chosen], self.probabilities[chosen], self.patients[chosen], self.cases[chosen]
        )


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
    kept = column_of >= 0
    labels, probabilities = (np.full((len(cases), len(settings.findings)), np.nan) for _ in range(2))
    labels[row_of[kept], column_of[kept]] = table["label"].to_numpy()[kept]
    probabilities[row_of[kept], column_of[kept]] = table["probability"].to_numpy()[kept]
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
        labels = answers.labels[:, column]
        known = ~np.isnan(labels)
        n_cases, missing = int(known.sum()), int((~known).sum())
        template = Estimate(AUROC, "auroc", finding, model=settings.model, n_cases=n_cases, n_undefined=missing)
        if len(set(labels[known])) < 2:
            yield replace(template, reason=ONE_CLASS)
            continue
        usable.append(column)
        yield auroc_interval(template, mean_auroc(answers.rows(known), [column]), answers.patients[known], settings)
    if usable:
        note = coverage(len(usable), len(settings.findings))
        template = Estimate(AUROC, "auroc", ALL, "", settings.model, n_cases=len(answers.labels), reason=note)
        yield auroc_interval(template, mean_auroc(answers, usable), answers.patients, settings)


def mean_auroc(answers: LabelledProbabilities, columns: Sequence[int]) -> WeightedStatistic:
    """The mean AUROC of the findings in these columns, as a function of the cases' weights."""
    pairs = [(answers.labels[:, column], answers.probabilities[:, column]) for column in columns]
    return lambda weights: np.asarray(np.mean([weighted_auroc(*pair, weights) for pair in pairs], axis=0))


def auroc_interval(
    template: Estimate, statistic: WeightedStatistic, patients: np.ndarray, settings: LocalizationSettings
) -> Estimate:
    """The statistic with its interval; its random draws are those of the finding, whatever the model."""
    generator = settings.generator("auroc", template.finding)
    interval = bca_from_case_weights(statistic, patients, settings.draws, generator)[0]
    counted = replace(template, n_patients=len(np.unique(patients)))
    return fill(counted, interval, joined(interval.reason, template.reason))


def _calibration(answers: LabelledProbabilities, settings: LocalizationSettings) -> Iterator[Estimate]:
    columns = [(f, answers.labels[:, i], answers.probabilities[:, i]) for i, f in enumerate(settings.findings)]
    n_patients = len(np.unique(answers.patients))
    for finding, labels, probabilities in [*columns, (ALL, answers.labels.ravel(), answers.probabilities.ravel())]:
        error = expected_calibration_error(labels, probabilities)
        template = Estimate(CALIBRATION, "ece", finding, "", settings.model, error.value, reason=error.reason)
        yield replace(template, n_cases=int((~np.isnan(labels)).sum()), n_patients=n_patients)
        yield from reliability_rows(labels, probabilities, finding, settings.model)


def reliability_rows(
    labels: np.ndarray, probabilities: np.ndarray, finding: str, model: str, **facts: Unpack[Condition]
) -> Iterator[Estimate]:
    """How often the finding is present in each of ten bins of probabilities."""
    for number, each in enumerate(reliability_curve(labels, probabilities, bins=10)):
        under = condition_of({**facts, "bin": number, "predicted": each.predicted})
        yield Estimate(RELIABILITY, OBSERVED, finding, "", model, each.observed, condition=under, n_cases=each.n)
