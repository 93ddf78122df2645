"""The mean scores of the methods by fold and over all cases, with intervals that hold the error of the importances."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import ONE_VALUE, Estimate
from heatcheck.core.vocabulary import MEAN, Condition, condition, facts_of
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import reasons_by_count
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import MeanEstimate
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.studentised import LEVEL, linearised_ratios, studentised_intervals
from heatcheck.stats.resampling.t_families import UnanimousGroup, unanimous_interval
from heatcheck.stats.resampling.uncertain_weights import Drawn, PartSums, as_deviations, drawn_interval, drawn_mean
from heatcheck.studies.modality.estimating.drawn import ScoreDraws, signs_of_pairs
from heatcheck.studies.modality.estimating.score_tables import COLUMNS, counted, is_empty, wide
from heatcheck.studies.modality.estimating.subsets import SubsetScores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import COUNTED, EMPTY, EVERY_FOLD, PUBLISHED

SIGNED = ("mi_correlation", PUBLISHED, "delta_aupc")  # metrics with values from −1 to 1, not from 0
Parts = Float[np.ndarray, "cases parts"]


def empty_rows(scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """How many maps of each method are empty and count 0, where there are any."""
    for (metric, method), rows in scores[scores["metric"].isin(COUNTED)].groupby(["metric", "method"], sort=True):
        number = int(is_empty(rows).sum())
        if number:
            yield Estimate(
                EMPTY, str(metric), ALL, str(method), settings.model, float(number),
                condition=condition(fold=EVERY_FOLD), n_cases=len(rows),
            )  # fmt: skip


def mean_rows(scores: pd.DataFrame, subsets: SubsetScores) -> Iterator[Estimate]:
    """The mean of every metric of every method in each fold and over all cases; an empty map counts 0."""
    if scores.empty:
        return
    table, reasons = wide(counted(scores), COLUMNS), {key[:-1]: key[-1] for key in reasons_by_count(scores, COLUMNS)}
    folds = table.index.get_level_values("fold").to_numpy()
    for fold in (*np.unique(folds).tolist(), EVERY_FOLD):
        part = table if fold == EVERY_FOLD else table[folds == fold]
        means = CaseMeans(part, ScoreDraws.of(subsets, part.index, fold), subsets.settings)
        yield from _of_fold(means, fold, reasons)


def _of_fold(means: "CaseMeans", fold: int | str, reasons: Mapping[tuple[str, ...], str]) -> Iterator[Estimate]:
    settings, patients = means.settings, means.table.index.get_level_values("patient").to_numpy()
    generator = settings.generator("mean", str(fold))
    plain = studentised_means(means.table.to_numpy(float), patients, settings.draws, generator)
    for column, mean in zip(means.table.columns.to_list(), plain, strict=True):
        metric, text, method = map(str, column)
        facts: Condition = {**facts_of(text), "fold": fold}
        template = fill(Estimate(MEAN, metric, ALL, method, settings.model, condition=condition(**facts)), mean)
        drawn = means.drawn(metric, text, method)
        interval = _plain_interval(mean, ends_of(metric)) if drawn is None else drawn_interval(drawn)
        reason = reasons.get((metric, text, method)) if np.isnan(mean.value) else None
        yield fill(template, within(interval, ends_of(metric)), reason)


def _plain_interval(mean: MeanEstimate, ends: tuple[float, float]) -> Interval:
    """The interval of a mean; where all patients agree, as far as those may differ who were not seen."""
    if mean.reason == ONE_VALUE:
        return unanimous_interval([UnanimousGroup(mean.value, mean.n_patients)], ends, LEVEL)
    return Interval(mean.value, mean.low, mean.high, mean.reason)


def studentised_means(
    values: Float[np.ndarray, "cases columns"],
    patients: Shaped[np.ndarray, " cases"],
    draws: int,
    generator: np.random.Generator,
) -> tuple[MeanEstimate, ...]:
    """The mean of each column over its defined values, with a studentised interval from drawing patients."""
    totals, defined = cluster_totals(values, patients), ~np.isnan(values)
    intervals = studentised_intervals(linearised_ratios(totals.sums, totals.counts), draws, generator)
    counts = zip(defined.sum(0).tolist(), (totals.counts > 0).sum(0).tolist(), (~defined).sum(0).tolist(), strict=True)
    return tuple(
        MeanEstimate(each.value, each.low, each.high, *numbers, each.reason)
        for each, numbers in zip(intervals, counts, strict=True)
    )


def within(interval: Interval, ends: tuple[float, float]) -> Interval:
    """The interval within the values that are possible."""
    low, high = np.clip([interval.low, interval.high], *ends).tolist()  # NaN stays NaN
    return replace(interval, low=low, high=high)


def ends_of(metric: str, *, difference: bool = False) -> tuple[float, float]:
    """The lowest and the highest value of a metric, or of the difference of two methods by it."""
    return (-1.0 if difference or metric in SIGNED else 0.0), 1.0


class CaseMeans:
    """The scores of some cases by metric, condition and method, and the draws of their patients."""

    def __init__(self, table: pd.DataFrame, draws: ScoreDraws, settings: ModalitySettings) -> None:
        self.table, self.draws, self.settings = table, draws, settings
        index = table.index
        self._codes = draws.patients.codes(*(index.get_level_values(name).to_numpy() for name in ("fold", "patient")))

    def drawn(self, metric: str, text: str, method: str) -> Drawn | None:
        """The mean of a score that rests on importances; None for other scores."""
        weights = self.draws.weights(metric, text)
        if weights is None:
            return None
        scores = self.table[metric, text, method].to_numpy(float)
        return drawn_mean(
            self.part_sums(np.column_stack([scores, self._parts(metric, method)])), as_deviations(weights)
        )

    def difference(self, metric: str, text: str, method: str, floor: str) -> Drawn:
        """How much higher a method scores than a floor, on the cases that both have."""
        scores = self.table[metric, text, method].to_numpy(float) - self.table[metric, text, floor].to_numpy(float)
        weights = self.draws.weights(metric, text)
        if weights is None:
            return drawn_mean(self.part_sums(scores[:, None]), self.draws.of_scores)
        parts = np.column_stack([scores, self._parts(metric, method) - self._parts(metric, floor)])
        return drawn_mean(self.part_sums(parts), as_deviations(weights))

    def part_sums(self, parts: Parts) -> PartSums:
        """The sums of a score's parts over the cases of each patient; a case is left out where the first is NaN."""
        defined = ~np.isnan(parts[:, 0])
        codes, n_patients = self._codes[defined], len(self.draws.patients.index)
        sums = [np.bincount(codes, column[defined], n_patients) for column in parts.T]
        return PartSums(np.stack(sums, 1), np.bincount(codes, minlength=n_patients).astype(float))

    def _parts(self, metric: str, method: str) -> Parts:
        """What a case's score is a weighted sum of; 0 where it is not known, so that no weight matters."""
        if metric == "msfi":
            return np.nan_to_num(self.by_modality("inside_share", method))
        signs = self.signs(method)
        untied = np.sum(signs**2, axis=1, keepdims=True)
        return np.asarray(signs / np.sqrt(np.maximum(untied, 1)))

    def signs(self, method: str) -> Parts:
        """Which modality of each pair has more heat; 0 where that is not known or the same."""
        return np.nan_to_num(signs_of_pairs(self.by_modality("modality_sum", method)))

    @property
    def informative(self) -> list[str]:
        """The methods with a modality correlation: those that make a map for each modality."""
        return [method for method in self.settings.methods if self.has_order(method)]

    def has_order(self, method: str) -> bool:
        """Whether the method, or a floor, gives some case a modality correlation."""
        return bool(self._correlations(method).notna().any())

    def defined_signs(self, method: str) -> Parts:
        """The signs of the cases that have a modality correlation, NaN for the others."""
        return np.where(self._correlations(method).notna().to_numpy()[:, None], self.signs(method), np.nan)

    def mean_signs(self, method: str, folds: Sequence[int]) -> dict[int, Float[np.ndarray, " pairs"]]:
        """Their mean over the cases of each of these folds that has any."""
        signs, fold_of = self.defined_signs(method), self.table.index.get_level_values("fold").to_numpy()
        parts = {fold: signs[(fold_of == fold) & ~np.isnan(signs[:, 0])] for fold in folds}
        return {fold: part.mean(0) for fold, part in parts.items() if len(part)}

    def _correlations(self, method: str) -> pd.Series:
        # as published: it has a value also where no two importances clearly differ
        return self.table.reindex(columns=[(PUBLISHED, condition(), method)]).iloc[:, 0]

    def by_modality(self, metric: str, method: str) -> Parts:
        """The scores of each modality; NaN where there are none."""
        wanted = [(metric, condition(modality=name), method) for name in self.settings.modalities]
        return self.table.reindex(columns=pd.MultiIndex.from_tuples(wanted)).to_numpy(float)
