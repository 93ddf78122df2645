"""How good the model itself is: discrimination and calibration, with patients resampled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Unpack

import numpy as np
import pyarrow.parquet as pq
from jaxtyping import Bool, Float, Shaped

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import ONE_VALUE, Estimate
from heatcheck.core.vocabulary import AUROC, RELIABILITY, Condition, condition_of
from heatcheck.estimating.calibration import calibration_rows
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_table import positions
from heatcheck.judging.patients import judged_together
from heatcheck.metrics.classification import reliability_curve
from heatcheck.stats.auroc import clustered_auroc
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.studentised import (
    FEWEST_PATIENTS,
    Linearised,
    linearised_macro,
    side_by_side,
    simultaneous_intervals,
    t_intervals,
)
from heatcheck.studies.localization.answers.views import views_in
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import OBSERVED

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


def read_answers(
    file: Path,
    settings: LocalizationSettings,
    *,
    per: Literal["answer", "image"] = "answer",
    among: Shaped[np.ndarray, " cases"] | None = None,
) -> LabelledProbabilities:
    """One model's answers, from a table of predictions that may hold several models', on all images or `among` some.

    Where the views of an examination are joined, it is one answer; per image, each view has the joined probability.
    """
    names = ["case", "patient", "finding"]
    table = pq.read_table(
        file,
        columns=[*names, "label", "probability"],
        filters=[("model", "==", settings.model)],
        read_dictionary=names,  # names repeat: numbers in their place keep a large run in memory
    ).to_pandas()
    table = table if among is None else table[table["case"].isin(among)]
    views = views_in(file.parent, settings)
    if views and len(table):
        table = views.joined(table) if per == "answer" else views.spread(table)
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
    return [*auroc_estimates(answers, settings), *_calibration(answers, settings)] if len(answers.cases) else []


def auroc_estimates(answers: LabelledProbabilities, settings: LocalizationSettings) -> Iterator[Estimate]:
    """The AUROC of each finding, and the mean over findings."""
    usable = usable_findings(answers)
    for column, finding in enumerate(settings.findings):
        known = ~np.isnan(answers.labels[:, column])
        template = Estimate(AUROC, "auroc", finding, model=settings.model, n_cases=int(known.sum()))
        template = replace(template, n_undefined=int((~known).sum()))
        if column not in usable:
            yield replace(template, reason=ONE_CLASS)
            continue
        counted = replace(template, n_patients=len(np.unique(answers.patients[known])))
        labels, probabilities = answers.labels[:, column], answers.probabilities[:, column]
        yield fill(counted, clustered_auroc(labels, probabilities, answers.patients).interval)
    if usable:
        note, n_patients = coverage(len(usable), len(settings.findings)), len(np.unique(answers.patients))
        template = Estimate(AUROC, "auroc", ALL, "", settings.model, n_cases=len(answers.labels), n_patients=n_patients)
        interval = _one_or_macro(answers, usable)
        yield fill(template, interval, joined(interval.reason, note))


def usable_findings(answers: LabelledProbabilities) -> list[int]:
    """The columns of the findings that some cases have and others do not."""
    return [column for column, labels in enumerate(answers.labels.T) if len(set(labels[~np.isnan(labels)])) == 2]


def _one_or_macro(answers: LabelledProbabilities, columns: Sequence[int]) -> Interval:
    """The interval of the mean AUROC; of one finding it is that finding's.

    Where every finding is separated perfectly, its spread is unknown, and the findings' limits are averaged instead.
    """
    (interval,) = t_intervals(linearised_macro(linearised_auroc(answers, columns), len(columns)))
    if len(columns) == 1 or interval.reason == ONE_VALUE:
        pairs = ((answers.labels[:, column], answers.probabilities[:, column]) for column in columns)
        each = [clustered_auroc(*pair, answers.patients).interval for pair in pairs]
        low, high = np.mean([[one.low, one.high] for one in each], axis=0).tolist()
        return Interval(interval.value, low, high, each[0].reason if np.isnan(low) else "")
    low, high = np.clip([interval.low, interval.high], 0, 1).tolist()  # NaN stays NaN
    return replace(interval, low=low, high=high)


def linearised_auroc(answers: LabelledProbabilities, columns: Sequence[int]) -> Linearised:
    """The AUROC of each finding as a sum over patients."""
    each = [
        clustered_auroc(answers.labels[:, column], answers.probabilities[:, column], answers.patients)
        for column in columns
    ]
    return Linearised(
        np.array([one.interval.value for one in each]),
        np.stack([one.influences for one in each], axis=1),
        np.stack([one.takes_part for one in each], axis=1),
        np.array([one.error for one in each]),
        np.array([one.freedom for one in each]),
    )


def _calibration(answers: LabelledProbabilities, settings: LocalizationSettings) -> Iterator[Estimate]:
    columns = [(f, answers.labels[:, i], answers.probabilities[:, i]) for i, f in enumerate(settings.findings)]
    n_patients = len(np.unique(answers.patients))
    for finding, labels, probabilities in [*columns, (ALL, answers.labels.ravel(), answers.probabilities.ravel())]:
        patients = np.repeat(answers.patients, labels.size // len(answers.patients))
        error, chance = calibration_rows(labels, probabilities, patients)
        for row in (error, chance):
            yield replace(row, finding=finding, model=settings.model, n_patients=n_patients)
        yield from reliability_rows(labels, probabilities, finding, settings.model)


def reliability_rows(
    labels: np.ndarray, probabilities: np.ndarray, finding: str, model: str, **facts: Unpack[Condition]
) -> Iterator[Estimate]:
    """How often the finding is present in each of ten bins of probabilities."""
    for number, each in enumerate(reliability_curve(labels, probabilities, bins=10)):
        under = condition_of({**facts, "bin": number, "predicted": each.predicted})
        yield Estimate(RELIABILITY, OBSERVED, finding, "", model, each.observed, condition=under, n_cases=each.n)


def judged_statistics(
    templates: Sequence[Estimate],
    statistics: Sequence[Linearised],
    settings: LocalizationSettings,
    size: float,
    furthest: float = 1.0,
) -> list[Estimate]:
    """Differences of AUROCs, each one column, with intervals that hold together, judged by a size that matters.

    The templates have one family, and hold everything but the numbers; no difference can be beyond `furthest`.
    """
    if not templates:
        return []
    family, together = templates[0].family, side_by_side(statistics)
    result = simultaneous_intervals(together, settings.draws, settings.generator("family", family))
    rows = []
    for template, interval, p_value, adjusted in zip(
        templates, result.intervals, result.p_values, result.p_adjusted, strict=True
    ):
        low, high = np.clip([interval.low, interval.high], -furthest, furthest).tolist()  # NaN stays NaN
        row = fill(template, replace(interval, low=low, high=high), joined(interval.reason, template.reason))
        rows.append(replace(row, p_value=float(p_value), p_adjusted=float(adjusted)))
    generator = settings.generator("needed", family)
    return judged_together(rows, [size] * len(rows), together.influences, generator)


def is_enough(answers: LabelledProbabilities, column: int) -> bool:
    """Whether enough patients have the finding, and enough have not, for a comparison of AUROCs."""
    labels = answers.labels[:, column]
    return min(len(np.unique(answers.patients[labels == label])) for label in (0.0, 1.0)) >= FEWEST_PATIENTS
