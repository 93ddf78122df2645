"""Two runs of the modality study: how much the scores of their maps and the importances of their modalities differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import condition
from heatcheck.estimating.compared_scores import Compared, ComparedScore, compared_scores, known
from heatcheck.runs.store import Run
from heatcheck.stats.balanced import Strata, balanced_means
from heatcheck.stats.shapley import contributions
from heatcheck.studies.modality.estimating.score_tables import read_scores
from heatcheck.studies.modality.estimating.subsets import SubsetScores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import PERFORMANCE, PHI, RANKED, Fill, Measure, ModalityManifest

_CASE = ["case", "patient", "finding"]


@dataclass(frozen=True)
class ComparedModalities:
    """Two runs of the modality study on the cases that both tested, in whatever fold."""

    runs: Sequence[Run]
    draws: int

    @cached_property
    def settings(self) -> list[ModalitySettings]:
        """The settings of each run."""
        return [ModalitySettings.of_run(run.manifest_as(ModalityManifest)) for run in self.runs]

    def rows(self) -> Iterator[ComparedScore]:
        """The scores of the methods' maps, and the importances of the modalities where the runs have the same ones."""
        yield from self._maps()
        if not self._other_modalities():
            for measure, filled in product(*self._used()):
                yield from self._importances(measure, filled)

    def sentences(self) -> Iterator[str]:
        """What is not compared, and why."""
        one, other = self.settings
        if self._other_modalities():
            names = "; ".join(", ".join(each.modalities) for each in (one, other))
            yield f"The runs have other modalities ({names}), whose importance cannot be compared."
            return
        for filled in self._primary_fills():
            if not all(filled in each.fills for each in self.settings):
                yield f"The importance of modalities when filled by {filled} is in one run only, and not compared."
        if not one.coalitions.exact:
            yield "Intervals of the importance do not hold the error that is left where orders of modalities are drawn."

    def _other_modalities(self) -> bool:
        one, other = self.settings
        return one.modalities != other.modalities

    def _primary_fills(self) -> list[Fill]:
        return sorted({each.fills[0] for each in self.settings})

    def _used(self) -> tuple[list[Measure], list[Fill]]:
        """The primary measures, and those primary fills that both runs have."""
        fills = [name for name in self._primary_fills() if all(name in each.fills for each in self.settings)]
        return sorted({each.measure for each in self.settings}), fills

    def _maps(self) -> Iterator[ComparedScore]:
        """The metrics by which methods are ranked, MSFI with the weights of either run."""
        one, other = (
            read_scores(run.path, RANKED, each.model) for run, each in zip(self.runs, self.settings, strict=True)
        )
        for metric in RANKED:
            primaries = {condition(**each.primary(metric)): each for each in self.settings}
            for text, each in primaries.items():
                name = f"{metric} ({each.importance}, {each.weights})" if len(primaries) > 1 else metric
                pair = [table[(table["metric"] == metric) & (table["condition"] == text)] for table in (one, other)]
                merged = pair[0].merge(pair[1], on=[*_CASE, "method"], suffixes=("_first", "_second"))
                yield from compared_scores(merged.assign(metric=name, finding=ALL_FINDINGS), self.draws)

    def _importances(self, measure: Measure, filled: Fill) -> Iterator[ComparedScore]:
        """The accuracy, and the importance of each modality and of its lesion."""
        measures, fills = self._used()
        several = len(measures) > 1 or len(fills) > 1
        suffix = f" ({measure}, {filled})" if several else ""
        for ablated, metric in PHI.items():
            tables = [self._contributions(number, ablated, filled) for number in range(2)]
            merged = tables[0].merge(tables[1], on=_CASE, suffixes=("_first", "_second"))
            if merged.empty:
                continue
            if ablated == "modality" and filled == fills[0]:  # no fill matters where all modalities are shown
                yield self._difference(merged, "", measure, PERFORMANCE[measure])
            for modality in self.settings[0].modalities:
                yield self._difference(merged, modality, measure, f"{metric}{suffix}")

    def _contributions(self, number: int, ablated: str, filled: Fill) -> pd.DataFrame:
        """What each case of a run contributes to the importances, and whether it was right with all modalities."""
        settings = self.settings[number]
        table = SubsetScores.read(self.runs[number].path, settings).table(ablated, filled)
        right = table.to_numpy(float)
        values = np.column_stack([right @ contributions(settings.coalitions), right[:, -1]])
        return pd.DataFrame(values, columns=[*settings.modalities, ""], index=table.index).reset_index()

    def _difference(self, merged: pd.DataFrame, column: str, measure: Measure, metric: str) -> ComparedScore:
        first, second = (merged[f"{column}_{run}"].to_numpy(float) for run in ("first", "second"))
        same = (merged["fold_first"] == merged["fold_second"]).all()  # then folds weigh the same, as in the reports
        folds = merged["fold_first"].to_numpy() if same else np.zeros(len(merged), int)
        one, other, difference = balanced_means(
            np.stack([first, second, second - first], 1),
            Strata(folds, merged["finding"].to_numpy() if measure == "balanced" else None),
            merged["patient"].to_numpy(str),
            (-2.0, 2.0) if column else (-1.0, 1.0),  # of a difference of two importances, or of two accuracies
        )
        return ComparedScore(
            metric, ALL_FINDINGS, column, one.value, other.value, difference.value, known(difference.low),
            known(difference.high), len(merged),
        )  # fmt: skip


def compare_modality(runs: Sequence[Run], draws: int) -> Compared:
    """The differences of two runs of the modality study on the cases that both tested."""
    compared = ComparedModalities(runs, draws)
    return Compared(tuple(compared.rows()), tuple(compared.sentences()))
