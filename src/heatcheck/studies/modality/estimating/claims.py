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
from heatcheck.core.vocabulary import DIFFERENCE, condition
from heatcheck.estimating.estimates import fill
from heatcheck.judging.patients import judged
from heatcheck.metrics.modality.shares import NO_CLEAR_PAIR, Pairs, chance_of_order
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.studentised import LEVEL
from heatcheck.stats.resampling.t_families import UnanimousGroup, unanimous_interval, unanimous_p
from heatcheck.stats.resampling.uncertain_weights import Drawn, DrawnWeights, drawn_mean, simultaneous_drawn
from heatcheck.studies.modality.estimating.drawn import ScoreDraws
from heatcheck.studies.modality.estimating.importance import clear_pairs
from heatcheck.studies.modality.estimating.means import CaseMeans, ends_of, within
from heatcheck.studies.modality.estimating.score_tables import COLUMNS, counted, wide
from heatcheck.studies.modality.estimating.subsets import SubsetScores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import (
    AGREEMENT,
    CHANCE,
    CHANCE_ALL,
    EVERY_FOLD,
    FLOORED,
    FLOORS,
    FOLLOWING,
    MODEL_FREE,
    PUBLISHED,
)

FEWEST_NETWORKS = 3
ONE_NETWORK = (
    "one network: a method that always prefers the same modality cannot be distinguished from one that follows it"
)
FEW_NETWORKS = f"fewer than {FEWEST_NETWORKS} networks in which importances clearly differ"
SAME_ORDER = "the networks rely on the modalities in the same order, which a fixed preference would follow as well"
FOLLOWING_ENDS = (-2.0, 2.0)  # of a difference of two correlations

ClearPairs = Mapping[int, Pairs]  # by fold: the sign of each pair that clearly differs, else 0


def claim_rows(scores: pd.DataFrame, subsets: SubsetScores, importances: Sequence[Estimate]) -> Iterator[Estimate]:
    """Each method against every floor, its heat against the clear importances, and both over networks."""
    settings = subsets.settings
    if scores.empty:
        return
    table = wide(counted(scores), COLUMNS)
    means = CaseMeans(table, ScoreDraws.of(subsets, table.index, EVERY_FOLD), settings)
    for metric in FLOORED:
        yield from _versus_floors(means, metric)
    if not scores[scores["metric"] == PUBLISHED].empty:
        clear = clear_pairs(importances, settings)
        yield from _agreement(means, clear)
        yield from _chances(clear, settings)
        yield from _following(means, clear)


def _versus_floors(means: CaseMeans, metric: str) -> Iterator[Estimate]:
    """The difference of each method from every floor, case by case; an empty map counts 0, as in the means.

    All are one family, since a method must beat the best floor, and which one that is the data say.
    """
    settings, text = means.settings, condition(**means.settings.primary(metric))
    columns = [tuple(map(str, column)) for column in means.table.columns.to_list()]
    known = {column[2] for column in columns if column[:2] == (metric, text)}
    rows, drawn = [], []
    for floor in (name for name in FLOORS if name in known):
        size = settings.sizes.above_floor(float(means.table[metric, text, floor].mean()), 1.0)
        for method in (name for name in settings.methods if name in known):
            row = Estimate(DIFFERENCE, metric, ALL, method, settings.model, condition=condition(versus=floor))
            rows.append(replace(row, size=size))
            drawn.append(means.difference(metric, text, method, floor))
    family = _Family(f"{metric}: each method against every floor", ends_of(metric, difference=True), settings)
    yield from family.rows(rows, drawn)


@dataclass(frozen=True)
class _Family:
    """Comparisons that are made together."""

    name: str
    ends: tuple[float, float]  # of the values that are possible
    settings: ModalitySettings

    def rows(self, templates: Sequence[Estimate], drawn: Sequence[Drawn]) -> Iterator[Estimate]:
        """The templates with intervals that hold together, corrected p-values, and what would decide a claim."""
        if not drawn:
            return
        result = simultaneous_drawn(list(drawn))
        generator = self.settings.generator("decide", templates[0].statistic, templates[0].metric)
        for number, (template, each) in enumerate(zip(templates, drawn, strict=True)):
            interval, p_value = result.intervals[number], float(result.p_values[number])
            p_adjusted = float(result.p_adjusted[number])
            if interval.reason == ONE_VALUE:
                level = 1 - (1 - LEVEL) / len(drawn)
                interval = unanimous_interval([UnanimousGroup(each.value, each.n_patients)], self.ends, level)
                p_value = unanimous_p(each.value, each.n_patients, self.ends)
                p_adjusted = min(1.0, p_value * len(drawn))
            row = fill(template, within(interval, self.ends))
            row = replace(
                row, p_value=p_value, p_adjusted=p_adjusted, family=self.name, n_cases=each.n_cases,
                n_patients=each.n_patients,
            )  # fmt: skip
            yield judged(row, template.size, each.influences, generator)


def _agreement(means: CaseMeans, clear: ClearPairs) -> Iterator[Estimate]:
    """How far the heat has the order of the modalities that clearly differ: 1 in all such pairs, 0 in half of them.

    Then how much better each method has it than each floor with a map for every modality that has it at all.
    """
    settings, patients = means.settings, means.draws.patients
    folds = np.unique(patients.index.get_level_values(0).to_numpy()).tolist()
    weights = np.array([_normed(clear.get(fold, np.zeros(0)), settings) for fold in folds])
    template = Estimate(AGREEMENT, "mi_correlation", ALL, model=settings.model, condition=condition(fold=EVERY_FOLD))
    floors = [floor for floor in MODEL_FREE if means.has_order(floor)]
    if np.isnan(weights).all():
        every = (*means.informative, *floors)
        yield from (replace(template, method=method, reason=NO_CLEAR_PAIR) for method in every)
        return
    fixed = DrawnWeights(weights, np.broadcast_to(weights, (settings.draws, *weights.shape)), patients.times,
                         patients.networks)  # fmt: skip
    signs = {method: means.defined_signs(method) for method in (*means.informative, *floors)}
    alone = [drawn_mean(means.part_sums(each), fixed) for each in signs.values()]
    size = settings.sizes.above_floor(0.0, 1.0)
    family = _Family("mi_correlation: each method on the clear pairs", ends_of("mi_correlation"), settings)
    yield from family.rows([replace(template, method=method, size=size) for method in signs], alone)
    values = dict(zip(signs, (each.value for each in alone), strict=True))
    better = [floor for floor in floors if values[floor] > 0]  # than no order at all, which every method must beat
    pairs = [(method, floor) for method in means.informative for floor in better]
    rows = [
        replace(template, method=method, condition=condition(fold=EVERY_FOLD, versus=floor),
                size=settings.sizes.above_floor(values[floor], 1.0))
        for method, floor in pairs
    ]  # fmt: skip
    drawn = [drawn_mean(means.part_sums(signs[method] - signs[floor]), fixed) for method, floor in pairs]
    yield from _Family("mi_correlation: each method against every floor", FOLLOWING_ENDS, settings).rows(rows, drawn)


def _chances(clear: ClearPairs, settings: ModalitySettings) -> Iterator[Estimate]:
    """What a fixed liking for modalities gets by chance, given which pairs are clear in each network."""
    for fold, signs in clear.items():
        found = chance_of_order(signs, len(settings.modalities), settings.generator("orders", str(fold)))
        row = Estimate(CHANCE, "mi_correlation", ALL, model=settings.model, condition=condition(fold=fold))
        row = replace(row, n_cases=found.orders, reason="" if signs.any() else NO_CLEAR_PAIR)
        yield replace(row, value=found.above_zero)
        yield replace(row, statistic=CHANCE_ALL, value=found.all_pairs)


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
