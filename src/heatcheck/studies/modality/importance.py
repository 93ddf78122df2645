"""How important each modality is to the networks: Shapley values with their intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import MEAN, Condition, condition
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import pivoted
from heatcheck.metrics.modality.msfi import ByModality
from heatcheck.stats.balanced import Strata, balanced_means, balanced_values
from heatcheck.stats.resampling.bootstrap import MeanEstimate
from heatcheck.stats.shapley import contributions, shapley
from heatcheck.studies.modality.means import KEYS, read_scores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import (
    EVERY_FOLD,
    KNOWN,
    PERFORMANCE,
    PHI,
    RIGHT,
    SHAPLEY,
    VALUE,
    Importance,
    Measure,
    shown_name,
)

MOST_LISTED = 64  # subsets that each get a row
NORMAL_95 = 1.96  # standard errors of a 95 % interval
DIGITS = 9  # far finer than one case of many; sums in another order must not break a tie


@dataclass(frozen=True)
class SubsetAnswers:
    """Whether the network was right on each case of some folds, with each subset of the modalities shown."""

    right: Float[np.ndarray, "cases subsets"]
    folds: np.ndarray
    classes: np.ndarray
    patients: np.ndarray

    @classmethod
    def of_table(cls, table: pd.DataFrame) -> "SubsetAnswers":
        """Those of a table with one row per case."""
        folds, _, patients, classes = (table.index.get_level_values(n).to_numpy() for n in range(4))
        return cls(table.to_numpy(float), folds, classes, patients)

    def only(self, kept: Bool[np.ndarray, " cases"]) -> "SubsetAnswers":
        """Some of the cases."""
        return SubsetAnswers(self.right[kept], self.folds[kept], self.classes[kept], self.patients[kept])

    def of_fold(self, fold: int) -> "SubsetAnswers":
        """The cases of one fold."""
        return self.only(self.folds == fold)

    def by_fold(self) -> Iterator[tuple[str | int, "SubsetAnswers"]]:
        """Each fold's cases, and all of them."""
        for fold in np.unique(self.folds):
            yield int(fold), self.of_fold(fold)
        if len(self.folds):
            yield EVERY_FOLD, self

    def strata(self, measure: Measure, classes: Sequence[str]) -> Strata:
        """The folds, which weigh the same; where the measure is balanced also the classes, none of which may lack."""
        return Strata(self.folds, self.classes, classes) if measure == "balanced" else Strata(self.folds)


@dataclass(frozen=True)
class SubsetScores:
    """The scores of the subsets of the modalities in a run."""

    scores: pd.DataFrame
    settings: ModalitySettings

    @classmethod
    def read(cls, folder: Path, settings: ModalitySettings) -> "SubsetScores":
        """Those in the run's folder."""
        return cls(read_scores(folder / "shapley", [RIGHT], settings.model), settings)

    @cached_property
    def names(self) -> list[str]:
        """The name of each subset."""
        return [shown_name(row, self.settings.modalities) for row in self.settings.coalitions.members]

    def table(self, ablated: str, filled: str) -> pd.DataFrame:
        """Whether the network was right: one row per case shown with every subset, one column per subset."""
        return self._complete([condition(ablated=ablated, filled=filled, shown=name) for name in self.names])

    def answers(self, ablated: str, filled: str) -> SubsetAnswers:
        """The same without the names of the cases."""
        return SubsetAnswers.of_table(self.table(ablated, filled))

    def known(self, modality: str) -> SubsetAnswers:
        """The answers on the cases in which only this modality is informative."""
        return SubsetAnswers.of_table(self._complete([condition(known=modality)]))

    def _complete(self, conditions: list[str]) -> pd.DataFrame:
        """The cases with a value under each of the conditions."""
        rows = self.scores[self.scores["condition"].isin(conditions)]
        return pivoted(rows, [*KEYS, "finding"], "condition").reindex(columns=conditions).dropna()


def importance_rows(folder: Path, settings: ModalitySettings) -> Iterator[Estimate]:
    """The values of subsets and modalities under every fill and measure, the networks' accuracy, known importances."""
    scores = SubsetScores.read(folder, settings)
    for ablated in PHI:
        for filled in settings.fills:
            answers = scores.answers(ablated, filled)
            for measure in PERFORMANCE:
                for fold, part in answers.by_fold():
                    facts: Condition = {"ablated": ablated, "filled": filled, "fold": fold}
                    yield from _of_fold(scores, part, measure, facts)
    yield from accuracy_rows(scores)
    yield from known_rows(scores)


def _of_fold(scores: SubsetScores, answers: SubsetAnswers, measure: Measure, facts: Condition) -> Iterator[Estimate]:
    """The performance with each subset shown, and the Shapley value of each modality."""
    settings, subsets, ablated = scores.settings, scores.settings.coalitions, facts["ablated"]
    listed = _listed(subsets.members)
    # a Shapley value is a mean over cases of what each contributes, so one bootstrap serves subsets and modalities
    values = np.hstack([answers.right[:, listed], answers.right @ contributions(subsets)])
    # the same draws of patients for every fill, so that fills are compared on the same patients
    generator = settings.generator("worth", ablated, str(facts["fold"]))
    strata = answers.strata(measure, settings.classes)
    means = balanced_means(values, strata, answers.patients, settings.draws, generator)
    template = Estimate(VALUE, PERFORMANCE[measure], ALL, model=settings.model)
    for index, mean in zip(np.flatnonzero(listed), means[: listed.sum()], strict=True):
        shown: Condition = {**facts, "shown": scores.names[index]}
        yield fill(replace(template, condition=condition(**shown)), mean)
    errors = shapley(balanced_values(answers.right, strata), subsets).errors
    template = Estimate(SHAPLEY, PHI[ablated], ALL, model=settings.model)
    for modality, mean, error in zip(settings.modalities, means[listed.sum() :], errors, strict=True):
        text = condition(filled=facts["filled"], fold=facts["fold"], measure=measure, modality=modality)
        yield fill(replace(template, condition=text), _widened(mean, float(error)))


def _listed(members: Bool[np.ndarray, "subsets players"]) -> Bool[np.ndarray, " subsets"]:
    """The subsets that get a row: all, or if there are many those of none, one, all but one, and all modalities."""
    size = members.sum(1)
    few = len(members) <= MOST_LISTED
    return np.asarray(few | (size <= 1) | (size >= members.shape[1] - 1))


def _widened(mean: MeanEstimate, error: float) -> MeanEstimate:
    """The estimate with an interval that includes the error of sampling orders."""
    low = mean.value - math.hypot(mean.value - mean.low, NORMAL_95 * error)
    high = mean.value + math.hypot(mean.high - mean.value, NORMAL_95 * error)
    return replace(mean, low=low, high=high) if error > 0 else mean


def accuracy_rows(scores: SubsetScores) -> Iterator[Estimate]:
    """How often the networks are right on the intact cases."""
    answers = scores.answers("modality", scores.settings.fills[0])
    full = int(np.argmax(scores.settings.coalitions.members.sum(1)))
    for measure, metric in PERFORMANCE.items():
        for fold, part in answers.by_fold():
            template = Estimate(MEAN, metric, ALL, model=scores.settings.model, condition=condition(fold=fold))
            yield _mean(scores.settings, part, template, measure, full)


def known_rows(scores: SubsetScores) -> Iterator[Estimate]:
    """How often the networks are right where only one modality is informative: its importance by construction."""
    for modality in scores.settings.known:
        for fold, part in scores.known(modality).by_fold():
            text = condition(fold=fold, modality=modality)
            template = Estimate(KNOWN, "known_importance", ALL, model=scores.settings.model, condition=text)
            yield _mean(scores.settings, part, template, "accuracy", 0)


def _mean(
    settings: ModalitySettings, answers: SubsetAnswers, template: Estimate, measure: Measure, subset: int
) -> Estimate:
    generator = settings.generator(template.statistic, template.metric, template.condition)
    values, strata = answers.right[:, subset : subset + 1], answers.strata(measure, settings.classes)
    (mean,) = balanced_means(values, strata, answers.patients, settings.draws, generator)
    return fill(template, mean)


@dataclass(frozen=True)
class Importances:
    """The importance of each modality in one fold, in the order of the modalities.

    NaN where the fold has no case, or where classes weigh the same and one has no case.
    """

    modality: ByModality  # what is lost without it
    lesion: ByModality  # what is lost without its lesion
    known: ByModality | None = None  # the accuracy where only it is informative, if that was tried

    @property
    def of_features(self) -> Mapping[Importance, ByModality]:
        """Each importance that MSFI may weight the modalities by."""
        importances: dict[Importance, ByModality] = {"lesion": self.lesion}
        return importances if self.known is None else {**importances, "known": self.known}


def importances(folder: Path, fold: int, settings: ModalitySettings) -> Importances:
    """The importances of one fold by the primary measure and fill, from the scores in the run's folder."""
    scores = SubsetScores.read(folder, settings)
    return Importances(_shapley(scores, "modality", fold), _shapley(scores, "lesion", fold), _known(scores, fold))


def _shapley(scores: SubsetScores, ablated: str, fold: int) -> ByModality:
    settings = scores.settings
    answers = scores.answers(ablated, settings.fills[0]).of_fold(fold)
    if not len(answers.right):
        return np.full(len(settings.modalities), np.nan)
    values = balanced_values(answers.right, answers.strata(settings.measure, settings.classes))
    return np.round(shapley(values, settings.coalitions).values, DIGITS)


def _known(scores: SubsetScores, fold: int) -> ByModality | None:
    """The accuracy on the cases of each modality that was tried, and 0 for the others."""
    settings = scores.settings
    if not settings.known:
        return None
    right = {name: scores.known(name).of_fold(fold).right for name in settings.known}
    accuracy = {name: float(each.mean()) if each.size else math.nan for name, each in right.items()}
    return np.array([accuracy.get(name, 0.0) for name in settings.modalities])
