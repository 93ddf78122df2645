"""How important each modality is to the networks: Shapley values with their intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, Condition, condition
from heatcheck.estimating.estimates import fill
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.judging.patients import judged
from heatcheck.metrics.modality.msfi import ByModality
from heatcheck.metrics.modality.shares import Pairs
from heatcheck.stats.balanced import Strata, balanced_means, balanced_values, linearised_balanced, with_unanimous
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.studentised import LEVEL
from heatcheck.stats.resampling.t_families import simultaneous_t
from heatcheck.stats.shapley import Shapley, contributions, shapley
from heatcheck.studies.modality.estimating.drawn import DIGITS
from heatcheck.studies.modality.estimating.subsets import IMPORTANCE_ENDS, PERFORMANCE_ENDS, SubsetAnswers, SubsetScores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import (
    EVERY_FOLD,
    KNOWN,
    PERFORMANCE,
    PHI,
    PHI_MODALITY,
    SHAPLEY,
    VALUE,
    Importance,
    Measure,
)

MOST_LISTED = 64  # subsets that each get a row
NORMAL_95 = 1.96  # standard errors of a 95 % interval


def importance_rows(scores: SubsetScores) -> Iterator[Estimate]:
    """The values of subsets and modalities under every fill and measure, the networks' accuracy, known importances."""
    for ablated in PHI:
        for filled in scores.settings.fills:
            answers = scores.answers(ablated, filled)
            for measure in PERFORMANCE:
                for fold, part in answers.by_fold():
                    facts: Condition = {"ablated": ablated, "filled": filled, "fold": fold}
                    yield from _of_fold(scores, part, measure, facts)
    yield from accuracy_rows(scores)
    yield from known_rows(scores)


def _of_fold(scores: SubsetScores, answers: SubsetAnswers, measure: Measure, facts: Condition) -> Iterator[Estimate]:
    """The performance with each subset shown, and the Shapley value of each modality and of each pair's difference."""
    settings, subsets, ablated = scores.settings, scores.settings.coalitions, facts["ablated"]
    listed = _listed(subsets.members)
    strata = answers.strata(measure, settings.classes)
    means = balanced_means(answers.right[:, listed], strata, answers.patients, PERFORMANCE_ENDS)
    template = Estimate(VALUE, PERFORMANCE[measure], ALL, model=settings.model)
    for index, mean in zip(np.flatnonzero(listed), means, strict=True):
        shown: Condition = {**facts, "shown": scores.names[index]}
        yield fill(replace(template, condition=condition(**shown)), mean)
    template = Estimate(
        SHAPLEY, PHI[ablated], ALL, model=settings.model, n_cases=len(answers.right),
        n_patients=len(np.unique(answers.patients)), reason=strata.lacking,
    )  # fmt: skip
    game: Condition = {"filled": facts["filled"], "fold": facts["fold"], "measure": measure}
    yield from ShapleyGame(settings, answers, measure, template, game).rows()


@dataclass(frozen=True)
class ShapleyGame:
    """The Shapley values of one game: what is ablated and how it is filled and measured, in one fold or in all."""

    settings: ModalitySettings
    answers: SubsetAnswers
    measure: Measure
    template: Estimate  # with its counts, and the reason why there is no value
    facts: Condition
    contribution: float = math.nan  # of all modalities, by which sizes are measured; NaN: that of this game
    ends: tuple[float, float] = IMPORTANCE_ENDS

    def rows(self) -> Iterator[Estimate]:
        """Each modality, and each pair: intervals that hold for all of them together, and the size that matters."""
        yield from self.modalities("modality")
        names = self.settings.modalities
        pairs = list(combinations(range(len(names)), 2))
        if pairs and not self.template.reason:
            paired: list[Condition] = [{**self.facts, "modality": names[i], "versus": names[j]} for i, j in pairs]
            first, second = np.array(pairs).T
            game = replace(self, template=replace(self.template, statistic=DIFFERENCE))
            yield from game.family(self._values[:, first] - self._values[:, second], "pair of modalities", paired)

    def modalities(self, what: str) -> Iterator[Estimate]:
        """Each modality."""
        alone: list[Condition] = [{**self.facts, "modality": name} for name in self.settings.modalities]
        if self.template.reason:
            yield from (replace(self.template, condition=condition(**facts)) for facts in alone)
        else:
            yield from self.family(self._values, what, alone)

    @cached_property
    def _values(self) -> Float[np.ndarray, "cases modalities"]:
        """What each case contributes to the Shapley values, which are means over cases."""
        return np.round(self.answers.right @ contributions(self.settings.coalitions), DIGITS) + 0.0  # no −0

    def family(
        self, values: Float[np.ndarray, "cases columns"], what: str, conditions: Sequence[Condition]
    ) -> Iterator[Estimate]:
        """Means of what cases contribute, with intervals that hold together and the size that matters."""
        settings, strata, patients = self.settings, self._strata, self.answers.patients
        statistics = linearised_balanced(values, strata, patients)
        # the same draws for every fill, so that fills are compared on the same patients
        generator = settings.generator("importance", what, self.template.metric, str(self.facts["fold"]))
        result = simultaneous_t(statistics, settings.draws, generator)
        level = 1 - (1 - LEVEL) / len(conditions)
        intervals = with_unanimous(result.intervals, values, strata, patients, self.ends, level)
        template = replace(self.template, family=f"{self.template.metric}: every {what}")
        errors = self._sampling_errors(len(conditions))
        for column, (facts, interval) in enumerate(zip(conditions, intervals, strict=True)):
            row = replace(
                fill(replace(template, condition=condition(**facts)), _widened(interval, float(errors[column]))),
                p_value=float(result.p_values[column]), p_adjusted=float(result.p_adjusted[column]),
            )  # fmt: skip
            yield self._judged(row, statistics.influences[:, column], generator)

    @property
    def _strata(self) -> Strata:
        return self.answers.strata(self.measure, self.settings.classes)

    @cached_property
    def _shapley(self) -> Shapley:
        return shapley(balanced_values(self.answers.right, self._strata), self.settings.coalitions)

    @property
    def contributed(self) -> float:
        """What all modalities together contribute."""
        return float(self._shapley.values.sum()) if math.isnan(self.contribution) else self.contribution

    def _sampling_errors(self, columns: int) -> Float[np.ndarray, " columns"]:
        """The error that is left where orders of modalities were drawn; of a pair at most that of both."""
        errors = self._shapley.errors
        if columns == len(errors):
            return errors
        first, second = np.triu_indices(len(errors), 1)
        return np.asarray(np.hypot(errors[first], errors[second]))

    def _judged(
        self, row: Estimate, influences: Float[np.ndarray, " patients"], generator: np.random.Generator
    ) -> Estimate:
        """The row with the size that matters and, of the primary rules, the patients that would decide it."""
        size = self.settings.sizes.of_contribution(self.contributed)
        rules = (self.facts["fold"], self.facts["filled"], self.measure)
        if rules != (EVERY_FOLD, self.settings.fills[0], self.settings.measure):
            return replace(row, size=size)
        return judged(row, size, influences, generator)


def _listed(members: Bool[np.ndarray, "subsets players"]) -> Bool[np.ndarray, " subsets"]:
    """The subsets that get a row: all, or if there are many those of none, one, all but one, and all modalities."""
    size = members.sum(1)
    few = len(members) <= MOST_LISTED
    return np.asarray(few | (size <= 1) | (size >= members.shape[1] - 1))


def _widened(interval: Interval, error: float) -> Interval:
    """The interval with the error of sampling orders."""
    low = interval.value - math.hypot(interval.value - interval.low, NORMAL_95 * error)
    high = interval.value + math.hypot(interval.high - interval.value, NORMAL_95 * error)
    return replace(interval, low=low, high=high) if error > 0 else interval


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
    values, strata = answers.right[:, subset : subset + 1], answers.strata(measure, settings.classes)
    (mean,) = balanced_means(values, strata, answers.patients, PERFORMANCE_ENDS)
    return fill(template, mean)


@dataclass(frozen=True)
class Importances:
    """The importance of each modality in one fold, in the order of the modalities.

    NaN where the fold has no case, or where classes weigh the same and one has no case.
    """

    modality: ByModality  # what is lost without it
    lesion: ByModality  # what is lost without its lesion
    clear: Pairs  # the sign of each pair of modalities whose importance clearly differs, else 0
    known: ByModality | None = None  # the accuracy where only it is informative, if that was tried

    @property
    def of_features(self) -> Mapping[Importance, ByModality]:
        """Each importance that MSFI may weight the modalities by."""
        importances: dict[Importance, ByModality] = {"lesion": self.lesion}
        return importances if self.known is None else {**importances, "known": self.known}


def importances(folder: Path, fold: int, settings: ModalitySettings) -> Importances:
    """The importances of one fold by the primary measure and fill, from the scores in the run's folder."""
    scores = SubsetScores.read(folder, settings)
    return Importances(
        _shapley(scores, "modality", fold),
        _shapley(scores, "lesion", fold),
        clear_pairs(list(_primary_rows(scores, fold)), settings)[fold],
        _known(scores, fold),
    )


def _primary_rows(scores: SubsetScores, fold: int) -> Iterator[Estimate]:
    """The importances of whole modalities in one fold by the primary rules, as `importance_rows` has them."""
    settings = scores.settings
    answers = scores.answers("modality", settings.fills[0]).of_fold(fold)
    if len(answers.right):
        facts: Condition = {"ablated": "modality", "filled": settings.fills[0], "fold": fold}
        yield from _of_fold(scores, answers, settings.measure, facts)


def clear_pairs(rows: Sequence[Estimate], settings: ModalitySettings) -> dict[int, Pairs]:
    """By fold: 1 or −1 for each pair of modalities whose importance to its network clearly differs, else 0.

    By the primary rules and intervals that hold for all pairs together: what they cannot tell apart stays tied.
    """
    by_condition = {row.condition: row for row in rows if row.statistic == DIFFERENCE and row.metric == PHI_MODALITY}
    clear = {}
    for fold in settings.folds:
        found = []
        for one, other in combinations(settings.modalities, 2):
            facts: Condition = {"filled": settings.fills[0], "fold": fold, "measure": settings.measure,
                                "modality": one, "versus": other}  # fmt: skip
            found.append(by_condition.get(condition(**facts)))
        clear[fold] = np.array([float(judgement_of(row).is_yes) - float(opposite_of(row).is_yes) for row in found])
    return clear


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
