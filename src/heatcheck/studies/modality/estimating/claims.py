"""What may be claimed of methods: that they mark the lesion, give heat to what counts, and follow the network."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtr, stdtrit

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import ONE_VALUE, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, Condition, condition
from heatcheck.estimating.estimates import fill
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.judging.patients import judged
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.studentised import LEVEL
from heatcheck.stats.resampling.t_families import UnanimousGroup, unanimous_interval, unanimous_p
from heatcheck.stats.resampling.uncertain_weights import Drawn, DrawnWeights, drawn_mean, simultaneous_drawn
from heatcheck.studies.modality.estimating.drawn import ScoreDraws
from heatcheck.studies.modality.estimating.means import CaseMeans, ends_of, within
from heatcheck.studies.modality.estimating.score_tables import COLUMNS, counted, of_metric, wide
from heatcheck.studies.modality.estimating.subsets import SubsetScores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import (
    AGREEMENT,
    EVERY_FOLD,
    FLOORED,
    FOLLOWING,
    PHI_MODALITY,
    UNIFORM,
)

FEWEST_NETWORKS = 3
ONE_NETWORK = (
    "one network: a method that always prefers the same modality cannot be distinguished from one that follows it"
)
FEW_NETWORKS = f"fewer than {FEWEST_NETWORKS} networks in which importances clearly differ"
SAME_ORDER = "the networks rely on the modalities in the same order, which a fixed preference would follow as well"
NO_CLEAR_PAIR = "no two modalities clearly differ in importance"
FOLLOWING_ENDS = (-2.0, 2.0)  # of a difference of two correlations

ClearPairs = Mapping[int, Float[np.ndarray, " pairs"]]  # by fold: the sign of each pair that clearly differs, else 0


def claim_rows(scores: pd.DataFrame, subsets: SubsetScores, importances: Sequence[Estimate]) -> Iterator[Estimate]:
    """Each method against the uniform map, its heat against the clear importances, and both over networks."""
    settings = subsets.settings
    if scores.empty:
        return
    table = wide(counted(scores), COLUMNS)
    means = CaseMeans(table, ScoreDraws.of(subsets, table.index, EVERY_FOLD), settings)
    for metric in FLOORED:
        if UNIFORM in set(of_metric(scores, metric, settings)["method"]):
            yield from _versus_floor(means, metric)
    if not of_metric(scores, "mi_correlation", settings).empty:
        clear = clear_pairs(importances, settings)
        yield from _agreement(means, clear)
        yield from _following(means, clear)


def _versus_floor(means: CaseMeans, metric: str) -> Iterator[Estimate]:
    """The difference of each method from the uniform map, case by case; an empty map counts 0, as in the means."""
    settings, text = means.settings, condition(**means.settings.primary(metric))
    columns = means.table.columns
    drawn = {
        method: means.difference(metric, text, method, UNIFORM)
        for method in settings.methods
        if (metric, text, method) in columns
    }
    floor = float(means.table[metric, text, UNIFORM].mean())
    template = Estimate(DIFFERENCE, metric, ALL, model=settings.model, condition=condition(versus=UNIFORM))
    family = _Family(f"{metric}: each method against the uniform map", ends_of(metric, difference=True), settings)
    yield from family.rows(template, drawn, settings.sizes.above_floor(floor, 1.0))


@dataclass(frozen=True)
class _Family:
    """Comparisons that are made together."""

    name: str
    ends: tuple[float, float]  # of the values that are possible
    settings: ModalitySettings

    def rows(self, template: Estimate, drawn: Mapping[str, Drawn], size: float) -> Iterator[Estimate]:
        """One row per method: intervals that hold together, corrected p-values, and what would decide a claim."""
        every = list(drawn.values())
        result = simultaneous_drawn(every)
        generator = self.settings.generator("decide", template.statistic, template.metric)
        for number, (method, each) in enumerate(drawn.items()):
            interval, p_value = result.intervals[number], float(result.p_values[number])
            p_adjusted = float(result.p_adjusted[number])
            if interval.reason == ONE_VALUE:
                level = 1 - (1 - LEVEL) / len(every)
                interval = unanimous_interval([UnanimousGroup(each.value, each.n_patients)], self.ends, level)
                p_value = unanimous_p(each.value, each.n_patients, self.ends)
                p_adjusted = min(1.0, p_value * len(every))
            row = fill(replace(template, method=method), within(interval, self.ends))
            row = replace(
                row, p_value=p_value, p_adjusted=p_adjusted, family=self.name, n_cases=each.n_cases,
                n_patients=each.n_patients,
            )  # fmt: skip
            yield judged(row, size, each.influences, generator)


def clear_pairs(importances: Sequence[Estimate], settings: ModalitySettings) -> ClearPairs:
    """The pairs of modalities whose importance to the network of a fold clearly differs, by the primary rules."""
    rows = {row.condition: row for row in importances if row.statistic == DIFFERENCE and row.metric == PHI_MODALITY}
    names, clear = settings.modalities, {}
    for fold in settings.folds:
        signs = []
        for i, one in enumerate(names):
            for other in names[i + 1 :]:
                facts: Condition = {"filled": settings.fills[0], "fold": fold, "measure": settings.measure,
                                    "modality": one, "versus": other}  # fmt: skip
                row = rows.get(condition(**facts))
                signs.append(float(judgement_of(row).is_yes) - float(opposite_of(row).is_yes))
        clear[fold] = np.array(signs)
    return clear


def _agreement(means: CaseMeans, clear: ClearPairs) -> Iterator[Estimate]:
    """How far the heat has the order of the modalities that clearly differ: 1 in all such pairs, 0 in half of them."""
    settings, patients = means.settings, means.draws.patients
    folds = np.unique(patients.index.get_level_values(0).to_numpy()).tolist()
    weights = np.array([_normed(clear.get(fold, np.zeros(0)), settings) for fold in folds])
    fixed = DrawnWeights(weights, np.broadcast_to(weights, (settings.draws, *weights.shape)), patients.times,
                         patients.networks)  # fmt: skip
    drawn = {method: drawn_mean(means.part_sums(means.defined_signs(method)), fixed) for method in means.informative}
    template = Estimate(AGREEMENT, "mi_correlation", ALL, model=settings.model, condition=condition(fold=EVERY_FOLD))
    if np.isnan(weights).all():
        yield from (replace(template, method=method, reason=NO_CLEAR_PAIR) for method in drawn)
        return
    family = _Family("mi_correlation: each method on the clear pairs", ends_of("mi_correlation"), settings)
    yield from family.rows(template, drawn, settings.sizes.above_floor(0.0, 1.0))


def _normed(signs: Float[np.ndarray, " pairs"], settings: ModalitySettings) -> Float[np.ndarray, " pairs"]:
    pairs = math.comb(len(settings.modalities), 2)
    untied = float(np.sum(signs**2))
    return signs / untied if untied else np.full(pairs, np.nan)


def _following(means: CaseMeans, clear: ClearPairs) -> Iterator[Estimate]:
    """How much better the heat fits the network that made it than it fits the other networks, over networks.

    A method that always prefers the same modalities fits every network's order alike. Tested by Student's t over
    networks, at a level that allows for the number of methods (Bonferroni).
    """
    settings = means.settings
    folds = [fold for fold, signs in clear.items() if signs.any()]
    methods = list(means.informative)
    template = Estimate(FOLLOWING, "mi_correlation", ALL, model=settings.model, condition=condition(fold=EVERY_FOLD))
    size = settings.sizes.above_floor(0.0, 1.0)
    weights = {fold: _normed(clear[fold], settings) for fold in folds}
    for method in methods:
        row = replace(template, method=method, family="mi_correlation: each method over networks", size=size)
        gains = gains_over_others(means.mean_signs(method, folds), weights)
        yield over_networks(replace(row, n_cases=len(gains)), gains, len(settings.folds), len(methods))


def gains_over_others(
    heat: Mapping[int, Float[np.ndarray, " pairs"]], weights: Mapping[int, Float[np.ndarray, " pairs"]]
) -> Float[np.ndarray, " networks"]:
    """For each network: the fit of its heat to its own clear pairs less the mean fit to those of the others."""
    gains = []
    for fold, signs in heat.items():
        others = [float(signs @ weights[other]) for other in heat if other != fold]
        if others:
            gains.append(float(signs @ weights[fold]) - float(np.mean(others)))
    return np.array(gains)


def over_networks(template: Estimate, gains: Float[np.ndarray, " networks"], networks: int, methods: int) -> Estimate:
    """The mean gain over networks, by Student's t."""
    n = len(gains)
    if n < FEWEST_NETWORKS:
        return replace(template, reason=ONE_NETWORK if networks == 1 else FEW_NETWORKS)
    value, error = float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(n)
    if error <= 1e-9:
        return fill(template, Interval(value, reason=SAME_ORDER if abs(value) <= 1e-9 else ONE_VALUE))
    reach = float(stdtrit(n - 1, 1 - (1 - LEVEL) / 2 / methods)) * error
    p_value = 2 * float(stdtr(n - 1, -abs(value) / error))
    row = fill(template, within(Interval(value, value - reach, value + reach), FOLLOWING_ENDS))
    return replace(row, p_value=p_value, p_adjusted=min(1.0, p_value * methods))
