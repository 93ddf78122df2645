"""The importances of the modalities when patients are drawn anew, and the weights that scores take from them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped
from scipy.special import ndtri, stdtrit

from heatcheck.core.vocabulary import facts_of
from heatcheck.metrics.modality.msfi import WeightRule
from heatcheck.stats.balanced import balanced_means, linearised_balanced
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.clusters import cluster_codes, resampled_weights
from heatcheck.stats.resampling.studentised import Linearised
from heatcheck.stats.resampling.uncertain_weights import DrawnWeights
from heatcheck.stats.shapley import contributions
from heatcheck.studies.modality.estimating.subsets import PERFORMANCE_ENDS, SubsetAnswers, SubsetScores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import EVERY_FOLD, PHI, PUBLISHED, WEIGHTS, Importance

DIGITS = 9  # far finer than one case of many; sums in another order must not break a tie
_TAIL = 0.025  # of an interval
_NO_SPREAD = 1e-12  # of influences: no patient changes the importance

ByNetwork = Float[np.ndarray, "*draws networks modalities"]


@dataclass(frozen=True, slots=True)
class PatientDraws:
    """The patients of each network, and how often each is drawn."""

    index: pd.MultiIndex  # fold and patient
    networks: Int[np.ndarray, " patients"]  # the position of the fold among the folds
    times: Float[np.ndarray, "draws patients"]

    @classmethod
    def of(
        cls, index: pd.MultiIndex, folds: Sequence[int], draws: int, generator: np.random.Generator
    ) -> "PatientDraws":
        """Draws of all patients together; someone tested by several networks is drawn once for all of them."""
        patients = cluster_codes(index.get_level_values(1).to_numpy())
        n_patients = int(patients.max(initial=-1)) + 1
        networks = np.searchsorted(np.asarray(folds), index.get_level_values(0).to_numpy())
        if not n_patients:
            return cls(index, networks, np.zeros((draws, 0)))
        return cls(index, networks, np.concatenate([*resampled_weights(n_patients, draws, generator)])[:, patients])

    def codes(self, folds: Shaped[np.ndarray, " cases"], patients: Shaped[np.ndarray, " cases"]) -> np.ndarray:
        """The position of each case's patient."""
        return np.asarray(self.index.get_indexer(pd.MultiIndex.from_arrays([folds, patients])))


@dataclass(frozen=True, slots=True)
class DrawnImportances:
    """The importance of each modality to each network, and in every draw of patients; NaN where it is not known."""

    values: Float[np.ndarray, "networks modalities"]
    drawn: Float[np.ndarray, "draws networks modalities"]

    @classmethod
    def of(
        cls,
        networks: Mapping[int, tuple[Linearised, Int[np.ndarray, " patients"]]],
        shape: tuple[int, int],
        draws: PatientDraws,
    ) -> "DrawnImportances":
        """Those of networks by their positions, from the influences of patients, whose positions are given.

        The deviations are as wide as the importances' own intervals, which allow for few patients. `shape` is the
        number of networks and of modalities.
        """
        values, drawn = np.full(shape, np.nan), np.full((len(draws.times), *shape), np.nan)
        for number, (statistics, codes) in networks.items():
            values[number] = statistics.values  # noqa: PD011 - not a table
            moved = draws.times[:, codes] @ statistics.influences
            drawn[:, number] = values[number] - moved * _scale(statistics)
        return cls(np.round(values, DIGITS), np.round(drawn, DIGITS))

    def by_pairs(self, draws: PatientDraws) -> DrawnWeights:
        """The weights by which pairs of modalities add up to the modality correlation of a case.

        The orders of all networks should hold together, so the deviations are widened by the number of networks.
        """
        wider = ndtri(1 - _TAIL / max(1, len(self.values))) / ndtri(1 - _TAIL)
        drawn = np.round(self.values + wider * (self.drawn - self.values), DIGITS)
        return DrawnWeights(pair_weights(self.values), pair_weights(drawn), draws.times, draws.networks, cancel=False)

    def by_modality(self, rule: WeightRule, draws: PatientDraws) -> DrawnWeights:
        """The weights by which shares of heat inside the lesions add up to MSFI."""
        weights = share_weights(self.values, rule), share_weights(self.drawn, rule)
        return DrawnWeights(*weights, draws.times, draws.networks)


def _scale(statistics: Linearised) -> Float[np.ndarray, " modalities"]:
    """By how much draws of influences are widened to be as wide as the intervals by Student's t."""
    spread = np.sqrt(np.sum(statistics.influences**2, axis=0))
    reach = stdtrit(np.maximum(statistics.freedom, 1), 1 - _TAIL) / ndtri(1 - _TAIL) * statistics.errors
    return np.divide(reach, spread, out=np.zeros_like(reach), where=spread > _NO_SPREAD)


def pair_weights(importances: ByNetwork) -> Float[np.ndarray, "*draws networks pairs"]:
    """The sign of each pair's difference over the root of the number of pairs that differ; NaN if none does."""
    signs = signs_of_pairs(importances)
    untied = np.sum(signs**2, axis=-1, keepdims=True)
    return np.asarray(signs / np.sqrt(np.where(untied > 0, untied, np.nan)))


def signs_of_pairs(values: Float[np.ndarray, "*rows modalities"]) -> Float[np.ndarray, "*rows pairs"]:
    """1 where the first modality of a pair has more than the second, −1 where it has less, 0 where as much."""
    first, second = np.triu_indices(values.shape[-1], 1)
    return np.asarray(np.sign(values[..., first] - values[..., second]))


def share_weights(importances: ByNetwork, rule: WeightRule) -> ByNetwork:
    """The weight of each modality in MSFI, which add up to 1; NaN where there are none (see `msfi.weights_of`)."""
    low, high = importances.min(-1, keepdims=True), importances.max(-1, keepdims=True)
    weights = importances - low if rule == "min_max" else np.maximum(importances, 0)
    total = weights.sum(-1, keepdims=True)
    return np.asarray(weights / np.where((high > low) & (total > 0), total, np.nan))


@dataclass(frozen=True)
class ScoreDraws:
    """Draws of the patients of some folds, and what the importances are in each of them."""

    patients: PatientDraws
    modality: DrawnImportances
    features: Mapping[Importance, DrawnImportances]  # those that MSFI may weight the modalities by

    @classmethod
    def of(cls, subsets: SubsetScores, index: pd.Index, fold: int | str) -> "ScoreDraws":
        """Draws of the patients of one fold, or of all, who are in the index of a table of scores or of answers."""
        settings = subsets.settings
        primary = {name: subsets.answers(name, settings.fills[0]) for name in PHI}
        cells = [
            pd.MultiIndex.from_arrays([index.get_level_values(name) for name in ("fold", "patient")]),
            *(each.cells for each in primary.values()),
        ]
        wanted = {cell for part in cells for cell in part.to_list() if fold in (EVERY_FOLD, cell[0])}
        every = pd.MultiIndex.from_tuples(sorted(wanted), names=["fold", "patient"])
        folds = np.unique(every.get_level_values(0).to_numpy()).tolist()
        generator = settings.generator("draws", str(fold))
        patients = PatientDraws.of(every, folds, settings.draws, generator)
        shape = len(folds), len(settings.modalities)
        drawn = {}
        for name, answers in primary.items():
            found = {number: _influences(answers, one, settings, patients) for number, one in enumerate(folds)}
            drawn[name] = DrawnImportances.of({n: each for n, each in found.items() if each}, shape, patients)
        features: dict[Importance, DrawnImportances] = {"lesion": drawn["lesion"]}
        if settings.known:
            features["known"] = _known_draws(subsets, folds, generator)
        return cls(patients, drawn["modality"], features)

    @property
    def of_scores(self) -> DrawnWeights:
        """The weights of scores that do not rest on importances: 1 in every draw."""
        networks = int(self.patients.networks.max(initial=-1)) + 1
        one = np.ones((networks, 1))
        return DrawnWeights(one, np.ones((len(self.patients.times), networks, 1)), self.patients.times,
                            self.patients.networks)  # fmt: skip

    def weights(self, metric: str, text: str) -> DrawnWeights | None:
        """The weights of the parts of a score; None for a score without such."""
        if metric == PUBLISHED:
            return self.modality.by_pairs(self.patients)
        if metric != "msfi":
            return None
        facts = facts_of(text)
        for name, importances in self.features.items():
            for rule in WEIGHTS:
                if (facts.get("importance"), facts.get("weights")) == (name, rule):
                    return importances.by_modality(rule, self.patients)
        return None


def _influences(
    answers: SubsetAnswers, fold: int, settings: ModalitySettings, patients: PatientDraws
) -> tuple[Linearised, Int[np.ndarray, " patients"]] | None:
    """The importances in one fold as sums over patients, and which patients these are; None where undefined."""
    part = answers.of_fold(fold)
    strata = part.strata(settings.measure, settings.classes)
    if not len(part.right) or strata.lacking:
        return None
    names = np.unique(part.patients)
    values = np.round(part.right @ contributions(settings.coalitions), DIGITS)
    return linearised_balanced(values, strata, part.patients), patients.codes(np.full(len(names), fold), names)


def _known_draws(subsets: SubsetScores, folds: Sequence[int], generator: np.random.Generator) -> DrawnImportances:
    """The known importances, whose cases are others than those of the scores; 0 for modalities that were not tried."""
    settings = subsets.settings
    shape = len(folds), len(settings.modalities)
    values, reach = np.zeros((2, *shape))
    for modality in settings.known:
        answers, column = subsets.known(modality), settings.modalities.index(modality)
        for number, fold in enumerate(folds):
            part = answers.of_fold(fold)
            (mean,) = (
                balanced_means(part.right, part.strata("accuracy", ()), part.patients, PERFORMANCE_ENDS)
                if len(part.right)
                else (Interval(math.nan),)
            )
            values[number, column] = mean.value
            reach[number, column] = np.nan_to_num(mean.high - mean.low) / 2 / ndtri(1 - _TAIL)
    drawn = values + reach * generator.standard_normal((settings.draws, *shape))
    return DrawnImportances(values, drawn)
