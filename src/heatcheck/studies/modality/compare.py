"""Runs of the modality study: how much the scores of their maps and the importances of their modalities differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import condition
from heatcheck.estimating.compared_scores import (
    Compared,
    ComparedScore,
    RunMean,
    compared_scores,
    known,
    paired,
    with_interval,
)
from heatcheck.runs.store import Run
from heatcheck.stats.balanced import Strata, balanced_means, linearised_balanced, with_unanimous
from heatcheck.stats.resampling.studentised import LEVEL
from heatcheck.stats.resampling.t_families import simultaneous_t
from heatcheck.stats.shapley import contributions
from heatcheck.studies.modality.estimating.score_tables import read_scores
from heatcheck.studies.modality.estimating.subsets import SubsetScores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import PERFORMANCE, PHI, RANKED, Fill, Measure, ModalityManifest

_CASE = ["case", "patient", "finding"]
Family = tuple[list[ComparedScore], list[RunMean]]


@dataclass(frozen=True)
class ComparedModalities:
    """Runs of the modality study on the cases that all of them tested, in whatever fold."""

    runs: Sequence[Run]
    draws: int

    @cached_property
    def settings(self) -> list[ModalitySettings]:
        """The settings of each run."""
        return [ModalitySettings.of_run(run.manifest_as(ModalityManifest)) for run in self.runs]

    def families(self) -> Iterator[Family]:
        """The scores of the methods' maps, and the importances of the modalities where the runs have the same ones."""
        yield from self._maps()
        if not self._other_modalities():
            for measure, filled in product(*self._used()):
                yield from self._importances(measure, filled)

    def sentences(self) -> Iterator[str]:
        """What is not compared, and why."""
        if self._other_modalities():
            names = "; ".join(", ".join(each.modalities) for each in self.settings)
            yield f"The runs have other modalities ({names}), whose importance cannot be compared."
            return
        for filled in self._primary_fills():
            if not all(filled in each.fills for each in self.settings):
                where = "one run only" if len(self.runs) == 2 else "some runs only"
                yield f"The importance of modalities when filled by {filled} is in {where}, and not compared."
        if not self.settings[0].coalitions.exact:
            yield "Intervals of the importance do not hold the error that is left where orders of modalities are drawn."

    def _other_modalities(self) -> bool:
        return len({each.modalities for each in self.settings}) > 1

    def _primary_fills(self) -> list[Fill]:
        return sorted({each.fills[0] for each in self.settings})

    def _used(self) -> tuple[list[Measure], list[Fill]]:
        """The primary measures, and those primary fills that all runs have."""
        fills = [name for name in self._primary_fills() if all(name in each.fills for each in self.settings)]
        return sorted({each.measure for each in self.settings}), fills

    def _maps(self) -> Iterator[Family]:
        """The metrics by which methods are ranked, MSFI with the weights of each run."""
        tables = [read_scores(run.path, RANKED, each.model) for run, each in zip(self.runs, self.settings, strict=True)]
        sizes = self.settings[0].sizes
        for metric in RANKED:
            primaries = {condition(**each.primary(metric)): each for each in self.settings}
            for text, each in primaries.items():
                name = f"{metric} ({each.importance}, {each.weights})" if len(primaries) > 1 else metric
                chosen = [
                    table.loc[
                        (table["metric"] == metric) & (table["condition"] == text), [*_CASE, "method", "value"]
                    ].assign(metric=name, finding=ALL_FINDINGS)
                    for table in tables
                ]
                yield from compared_scores(paired(chosen), self.draws, lambda *_: sizes.between_methods(metric))  # noqa: B023

    def _importances(self, measure: Measure, filled: Fill) -> Iterator[Family]:
        """The accuracy, and the importance of each modality and of its lesion."""
        measures, fills = self._used()
        suffix = f" ({measure}, {filled})" if len(measures) > 1 or len(fills) > 1 else ""
        for ablated, metric in PHI.items():
            tables = [self._contributions(number, ablated, filled) for number in range(len(self.runs))]
            merged = paired_contributions(tables)
            if merged.empty:
                continue
            modalities = list(self.settings[0].modalities)
            if ablated == "modality" and filled == fills[0]:  # no fill matters where all modalities are shown
                yield self._family(merged, [""], measure, PERFORMANCE[measure])
            yield self._family(merged, modalities, measure, f"{metric}{suffix}")

    def _contributions(self, number: int, ablated: str, filled: Fill) -> pd.DataFrame:
        """What each case of a run contributes to the importances, and whether it was right with all modalities."""
        settings = self.settings[number]
        table = SubsetScores.read(self.runs[number].path, settings).table(ablated, filled)
        right = table.to_numpy(float)
        values = np.column_stack([right @ contributions(settings.coalitions), right[:, -1]])
        return pd.DataFrame(values, columns=[*settings.modalities, ""], index=table.index).reset_index()

    def _family(self, merged: pd.DataFrame, columns: Sequence[str], measure: Measure, metric: str) -> Family:
        """The differences of every other run from the first, with intervals that hold together, and the means."""
        runs = range(len(self.runs))
        values = np.stack([merged[[f"{name}_{run}" for name in columns]].to_numpy(float) for run in runs])
        folds = merged[[f"fold_{run}" for run in runs]].to_numpy()
        same = bool((folds == folds[:, :1]).all())  # then folds weigh the same, as in the reports
        strata = Strata(
            folds[:, 0] if same else np.zeros(len(merged), int),
            merged["finding"].to_numpy() if measure == "balanced" else None,
        )
        patients, width = merged["patient"].to_numpy(str), 1.0 if columns == [""] else 2.0
        flat = values.transpose(1, 0, 2).reshape(len(merged), -1)
        means = balanced_means(flat, strata, patients, (1 - width, 1.0))
        every = [(run, name) for run in runs for name in columns]
        by_run = [
            RunMean(metric, ALL_FINDINGS, name, run, mean.value, known(mean.low), known(mean.high), len(merged))
            for (run, name), mean in zip(every, means, strict=True)
        ]
        family = f"{metric} over all cases"
        rows = [
            ComparedScore(
                metric, ALL_FINDINGS, each.method, first.value, each.value, each.value - first.value, None, None,
                len(merged), strata.lacking, each.run, len(np.unique(patients)), family=family,
                size=self._size(columns, by_run),
            )
            for each, first in zip(by_run[len(columns) :], by_run[: len(columns)] * (len(runs) - 1), strict=True)
        ]  # fmt: skip
        if strata.lacking:
            return rows, by_run
        apart = (values[1:] - values[:1]).transpose(1, 0, 2).reshape(len(merged), -1)
        result = simultaneous_t(
            linearised_balanced(apart, strata, patients), self.draws, generator_for("compare", family)
        )
        level = 1 - (1 - LEVEL) / len(rows)
        intervals = with_unanimous(result.intervals, apart, strata, patients, (-width, width), level)
        return [
            with_interval(replace(row, difference=interval.value, p_adjusted=float(p)), interval)
            for row, interval, p in zip(rows, intervals, result.p_adjusted, strict=True)
        ], by_run

    def _size(self, columns: Sequence[str], means: Sequence[RunMean]) -> float:
        """A share of what all modalities contribute in the first run; of the accuracy, the size of a rate."""
        sizes = self.settings[0].sizes
        if list(columns) == [""]:
            return sizes.methods.hit
        return sizes.of_contribution(sum(mean.value for mean in means if mean.run == 0))


def paired_contributions(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One row per case that every run has; the columns of each run end in its number."""
    merged = tables[0][_CASE]
    for run, table in enumerate(tables):
        own = [name for name in table.columns if name not in _CASE]
        merged = merged.merge(table.rename(columns={name: f"{name}_{run}" for name in own}), on=_CASE)
    return merged


def compare_modality(runs: Sequence[Run], draws: int) -> Compared:
    """The differences of runs of the modality study on the cases that all of them tested."""
    compared = ComparedModalities(runs, draws)
    families = list(compared.families())
    rows = tuple(row for rows, _ in families for row in rows)
    means = tuple(mean for _, means in families for mean in means)
    return Compared(rows, tuple(compared.sentences()), means)
