"""How much each modality counts for the networks: Shapley values with their intervals, and their order."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import pivoted
from heatcheck.metrics.modality.msfi import ByModality
from heatcheck.stats.balanced import Strata, balanced_means, balanced_values
from heatcheck.stats.resampling.bootstrap import MeanEstimate
from heatcheck.stats.shapley import contributions, shapley
from heatcheck.studies.modality.means import KEYS, read_scores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import EVERY_FOLD, RIGHT, are_apart, shown_name

_SIGNS = ("=", ">", ";", ",", " is ")  # of an order: a name that holds one stands in quotation marks


@dataclass
class _Ranking:
    """The places so far: groups of which each is surely above the next, and modalities that fit none of them."""

    names: Sequence[str]
    phi: Sequence[MeanEstimate]
    groups: list[list[int]] = field(default_factory=list)
    aside: list[int] = field(default_factory=list)

    def tied(self, one: int, other: int) -> bool:
        """Whether the intervals overlap."""
        return not are_apart(self.phi[one], self.phi[other])

    def place(self, new: int) -> None:
        """Give a modality its place below those that have one; it must be tied with a whole group or with nobody."""
        ties = [[self.tied(new, each) for each in group] for group in self.groups]
        if any(any(group) for group in ties[:-1]) or (ties and any(ties[-1]) and not all(ties[-1])):
            self.aside.append(new)
        elif ties and all(ties[-1]):
            self.groups[-1].append(new)
        else:
            self.groups.append([new])

    def told(self, order: Sequence[int]) -> str:
        """The groups, and how each of the others stands to every modality that was told before it."""
        text = " > ".join(" = ".join(self.names[each] for each in group) for group in self.groups)
        known = [each for each in order if each not in self.aside]
        for one in self.aside:
            text += f"; {self.names[one]} is {self._relations(one, known, order)}"
            known.append(one)
        return text

    def _relations(self, one: int, known: Sequence[int], order: Sequence[int]) -> str:
        apart = [each for each in known if not self.tied(one, each)]
        parts = {
            "below": [each for each in apart if order.index(each) < order.index(one)],
            "above": [each for each in apart if order.index(each) > order.index(one)],
            "tied with": [each for each in known if each not in apart],
        }
        told = {word: ", ".join(self.names[each] for each in found) for word, found in parts.items()}
        return " and ".join(f"{word} {names}" for word, names in told.items() if names)


def in_order(names: Sequence[str], phi: Sequence[MeanEstimate]) -> str:
    """The modalities from the most important on: ">" where intervals are apart, "=" where they overlap.

    Overlap does not go on from one to the next: a wide interval may reach two that are apart. Such a modality stands
    behind a semicolon with what it is tied with, "T1C > FLAIR; T2 is tied with T1C, FLAIR". What has no interval is
    tied with everything.
    """
    order = sorted(range(len(names)), key=lambda place: (-phi[place].value, place))
    ranking = _Ranking([f"“{name}”" if any(sign in name for sign in _SIGNS) else name for name in names], phi)
    for place in order:
        ranking.place(place)
    return ranking.told(order)


PHI = {"modality": "phi_modality", "lesion": "phi_lesion"}
MEASURES = {"accuracy": "accuracy", "balanced": "balanced_accuracy"}
MOST_SHOWN = 64  # subsets whose worth is told one by one
SURE = 1.96  # standard errors


@dataclass(frozen=True)
class SubsetAnswers:
    """Whether each case of some folds was told right, with each subset of the modalities shown."""

    right: Float[np.ndarray, "cases subsets"]
    folds: np.ndarray
    classes: np.ndarray
    patients: np.ndarray

    def only(self, kept: Bool[np.ndarray, " cases"]) -> "SubsetAnswers":
        """Some of the cases."""
        return SubsetAnswers(self.right[kept], self.folds[kept], self.classes[kept], self.patients[kept])

    def by_fold(self) -> Iterator[tuple[str | int, "SubsetAnswers"]]:
        """Each fold's cases, and all of them."""
        for fold in np.unique(self.folds):
            yield int(fold), self.only(self.folds == fold)
        if len(self.folds):
            yield EVERY_FOLD, self

    def strata(self, measure: str, classes: Sequence[str]) -> Strata:
        """Folds count the same, and so do classes, of which none may be missing, where the measure is balanced."""
        return Strata(self.folds, self.classes, classes) if measure == "balanced" else Strata(self.folds)


@dataclass(frozen=True)
class Worths:
    """The subsets' rows of a run."""

    scores: pd.DataFrame
    settings: ModalitySettings

    @classmethod
    def read(cls, folder: Path, settings: ModalitySettings) -> "Worths":
        """Those in the run's folder."""
        return cls(read_scores(folder / "shapley", [RIGHT], settings.model), settings)

    @cached_property
    def names(self) -> list[str]:
        """What tables call each subset."""
        return [shown_name(row, self.settings.modalities) for row in self.settings.coalitions.members]

    def shown(self, ablated: str, filled: str) -> pd.DataFrame:
        """Whether each case was told right, a column for each subset that was shown, of one way to ablate."""
        return self._complete([condition(ablated=ablated, filled=filled, shown=name) for name in self.names])

    def told(self, ablated: str, filled: str) -> SubsetAnswers:
        """The cases that were shown with every subset, of one way to ablate."""
        return _told(self.shown(ablated, filled))

    def known(self, modality: str) -> SubsetAnswers:
        """The cases on which one modality alone tells the class."""
        return _told(self._complete([condition(known=modality)]))

    def _complete(self, at: list[str]) -> pd.DataFrame:
        """The cases with a value under each of the conditions."""
        rows = self.scores[self.scores["at"].isin(at)]
        return pivoted(rows, [*KEYS, "finding"], "at").reindex(columns=at).dropna()


def _told(table: pd.DataFrame) -> SubsetAnswers:
    folds, _, patients, classes = (table.index.get_level_values(n).to_numpy() for n in range(4))
    return SubsetAnswers(table.to_numpy(float), folds, classes, patients)


def worth_rows(folder: Path, settings: ModalitySettings) -> Iterator[Estimate]:
    """The worth of subsets and modalities under every fill and measure, the networks' accuracy, known importance."""
    worths = Worths.read(folder, settings)
    for ablated in PHI:
        for filled in settings.fills:
            told = worths.told(ablated, filled)
            for measure in MEASURES:
                for fold, own in told.by_fold():
                    facts = {"filled": filled, "fold": fold, "measure": measure}
                    yield from _of_fold(worths, own, ablated, facts)
    yield from accuracy_rows(worths)
    yield from known_rows(worths)


def _of_fold(worths: Worths, told: SubsetAnswers, ablated: str, facts: dict[str, str | int]) -> Iterator[Estimate]:
    """The worth of the subsets, of the modalities, and these in order."""
    settings, measure, among = worths.settings, str(facts["measure"]), worths.settings.coalitions
    shown = _shown(among.members)
    values = np.hstack([told.right[:, shown], told.right @ contributions(among)])
    # one draw of the patients for every fill: what is compared is compared on the same
    generator = settings.generator("worth", ablated, str(facts["fold"]))
    strata = told.strata(measure, settings.classes)
    found = balanced_means(values, strata, told.patients, settings.draws, generator)
    beside = {"ablated": ablated, "filled": facts["filled"], "fold": facts["fold"]}
    for place, one in zip(np.flatnonzero(shown), found[: shown.sum()], strict=True):
        at = condition(**beside, shown=worths.names[place])
        yield fill(Estimate("value", MEASURES[measure], ALL, model=settings.model, condition=at), one)
    errors = shapley(balanced_values(told.right, strata), among).errors
    phi = [_widened(one, float(error)) for one, error in zip(found[shown.sum() :], errors, strict=True)]
    for modality, one in zip(settings.modalities, phi, strict=True):
        at = condition(**facts, modality=modality)
        yield fill(Estimate("shapley", PHI[ablated], ALL, model=settings.model, condition=at), one)
    if not strata.lacking:
        yield Estimate(
            "order", PHI[ablated], ALL, model=settings.model, condition=condition(**facts), n_cases=len(told.right),
            reason=in_order(settings.modalities, phi),
        )  # fmt: skip


def _shown(members: Bool[np.ndarray, "subsets players"]) -> Bool[np.ndarray, " subsets"]:
    """The subsets that are told one by one: all, or of many those of none, one, all but one, and all."""
    size = members.sum(1)
    few = len(members) <= MOST_SHOWN
    return np.asarray(few | (size <= 1) | (size >= members.shape[1] - 1))


def _widened(one: MeanEstimate, error: float) -> MeanEstimate:
    """The estimate whose interval also holds the error that sampling orders left."""
    low = one.value - math.hypot(one.value - one.low, SURE * error)
    high = one.value + math.hypot(one.high - one.value, SURE * error)
    return replace(one, low=low, high=high) if error > 0 else one


def accuracy_rows(worths: Worths) -> Iterator[Estimate]:
    """How often the networks are right on the intact cases."""
    told = worths.told("modality", worths.settings.fills[0])
    everyone = int(np.argmax(worths.settings.coalitions.members.sum(1)))
    for measure, metric in MEASURES.items():
        for fold, own in told.by_fold():
            blank = Estimate("mean", metric, ALL, model=worths.settings.model, condition=condition(fold=fold))
            yield _mean(worths.settings, own, blank, measure, everyone)


def known_rows(worths: Worths) -> Iterator[Estimate]:
    """How often the networks are right where one modality alone tells the class: its importance by construction."""
    for modality in worths.settings.known:
        for fold, own in worths.known(modality).by_fold():
            at = condition(fold=fold, modality=modality)
            blank = Estimate("known", "known_importance", ALL, model=worths.settings.model, condition=at)
            yield _mean(worths.settings, own, blank, "accuracy", 0)


def _mean(settings: ModalitySettings, told: SubsetAnswers, blank: Estimate, measure: str, subset: int) -> Estimate:
    generator = settings.generator(blank.statistic, blank.metric, blank.condition)
    values = told.right[:, subset : subset + 1]
    (found,) = balanced_means(values, told.strata(measure, settings.classes), told.patients, settings.draws, generator)
    return fill(blank, found)


DIGITS = 9  # far finer than one case of many; sums in another order must not break a tie


@dataclass(frozen=True)
class Importances:
    """The worth of each modality of one fold, in the order of the modalities; NaN where no case tells.

    So, too, where a class has no case and classes count the same.
    """

    modality: ByModality  # what is lost without it
    lesion: ByModality  # what is lost without its lesion
    known: ByModality | None = None  # how often it alone leads to the right class, where that was tried

    @property
    def of_features(self) -> Mapping[str, ByModality]:
        """Each worth that may weigh the modalities of a map."""
        return {"lesion": self.lesion} | ({} if self.known is None else {"known": self.known})


def importances(folder: Path, fold: int, settings: ModalitySettings) -> Importances:
    """The worths of one fold under the measure and the fill that count, from the rows in the run's folder."""
    worths = Worths.read(folder, settings)
    return Importances(_shapley(worths, "modality", fold), _shapley(worths, "lesion", fold), _known(worths, fold))


def _shapley(worths: Worths, kind: str, fold: int) -> ByModality:
    settings = worths.settings
    told = _answers_of_fold(worths.told(kind, settings.fills[0]), fold)
    if not len(told.right):
        return np.full(len(settings.modalities), np.nan)
    found = shapley(balanced_values(told.right, told.strata(settings.measure, settings.classes)), settings.coalitions)
    return np.round(found.values, DIGITS)


def _known(worths: Worths, fold: int) -> ByModality | None:
    """The accuracy on the cases of each modality that was tried, and 0 for the others."""
    settings = worths.settings
    if not settings.known:
        return None
    found = {name: _answers_of_fold(worths.known(name), fold).right for name in settings.known}
    shares = {name: float(right.mean()) if right.size else float("nan") for name, right in found.items()}
    return np.array([shares.get(name, 0.0) for name in settings.modalities])


def _answers_of_fold(told: SubsetAnswers, fold: int) -> SubsetAnswers:
    return told.only(told.folds == fold)
