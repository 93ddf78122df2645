"""What the model says at its operating point, and whether it is right."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.studies.localization.answers.predictions import LabelledProbabilities, read_answers
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import COUNT, OPERATING_POINT, Calls

Matrix = Float[np.ndarray, "cases findings"]
OperatingPoint = float | Mapping[str, float] | None
NO_POINT = "no case with and without the finding to choose an operating point on"


@dataclass(frozen=True, slots=True)
class CalledAnswers:
    """The answers, and the probability from which on each finding is called present."""

    answers: LabelledProbabilities
    points: Float[np.ndarray, " findings"]  # NaN where none could be chosen
    chosen_on: tuple[str, ...]

    def of(self, call: str) -> Bool[np.ndarray, "cases findings"]:
        """Where the model gave this answer; an unknown label is neither right nor wrong."""
        labels, says_yes = self.answers.labels, self.answers.probabilities >= self.points
        known = ~np.isnan(labels) & ~np.isnan(self.points)
        right = {Calls.FOUND: (True, 1), Calls.FALSE_ALARM: (True, 0), Calls.MISSED: (False, 1)}
        yes, label = right.get(call, (False, 0))
        return np.asarray(known & (says_yes == yes) & (labels == label))

    def wrong(self, call: str) -> Matrix:
        """1 where a positive (or negative) call is wrong, 0 where it is right, NaN for all other answers."""
        right, wrong = _KINDS[call]
        return np.where(self.of(wrong), 1.0, np.where(self.of(right), 0.0, np.nan))


_KINDS = {Calls.POSITIVE: (Calls.FOUND, Calls.FALSE_ALARM), Calls.NEGATIVE: (Calls.CLEARED, Calls.MISSED)}


def called_answers(folder: Path, settings: LocalizationSettings, given: OperatingPoint) -> CalledAnswers:
    """The run's answers at the operating points of the spec, or else at those of the highest Youden index.

    Those are chosen on the validation data where the run has any. Chosen on the run itself they fit its cases a little
    too well, which the report says.
    """
    answers = read_answers(folder / "predictions.parquet", settings, per="image")
    validation = folder / "validation" / "predictions.parquet"
    where = Calls.ON_VALIDATION if validation.exists() else Calls.ON_RUN
    chosen = read_answers(validation, settings, per="image") if validation.exists() else answers
    points, sources = [], []
    for column, finding in enumerate(settings.findings):
        stated = given.get(finding) if isinstance(given, Mapping) else given
        sources.append(where if stated is None else Calls.ON_SPEC)
        best = youden_point(chosen.labels[:, column], chosen.probabilities[:, column]) if stated is None else stated
        points.append(best)
    return CalledAnswers(answers, np.array(points, float), tuple(sources))


def youden_point(labels: Float[np.ndarray, " cases"], probabilities: Float[np.ndarray, " cases"]) -> float:
    """The probability at which sensitivity + specificity is highest, the lowest of equals; NaN with one class only."""
    known = ~np.isnan(labels)
    present, said = labels[known] == 1, probabilities[known]
    if present.all() or not present.any():
        return math.nan
    levels = np.unique(said)
    positive, negative = (np.sort(said[rows]) for rows in (present, ~present))
    sensitivity = 1 - np.searchsorted(positive, levels) / len(positive)
    specificity = np.searchsorted(negative, levels) / len(negative)
    return float(levels[int(np.argmax(np.round(sensitivity + specificity, 12)))])


def call_estimates(called: CalledAnswers, settings: LocalizationSettings) -> Iterator[Estimate]:
    """The operating point of every finding, and how many answers of each kind it gives."""
    counts = {call: called.of(call).sum(0) for pair in _KINDS.values() for call in pair}
    for column, finding in enumerate(settings.findings):
        template = Estimate(OPERATING_POINT, "probability", finding, "", settings.model)
        point, source = float(called.points[column]), called.chosen_on[column]
        reason = NO_POINT if math.isnan(point) else ""
        yield replace(template, value=point, reason=reason, condition=condition(fitted_on=source))
        for call, numbers in counts.items() if not reason else ():
            row = replace(template, statistic=COUNT, metric="answers", condition=condition(call=call))
            yield replace(row, value=float(numbers[column]), n_cases=int(numbers[column]))
