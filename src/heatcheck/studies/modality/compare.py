"""Two runs of the modality study: by how much their maps' scores and the worth of their modalities differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import condition
from heatcheck.estimating.compared_scores import Compared, ComparedScore, compared_scores, known
from heatcheck.runs.store import Run
from heatcheck.stats.balanced import Strata, balanced_means
from heatcheck.stats.shapley import contributions
from heatcheck.studies.modality.importance import MEASURES, PHI, Worths
from heatcheck.studies.modality.means import read_scores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import RANKED

_CASE = ["case", "patient", "finding"]


@dataclass(frozen=True)
class ComparedModalities:
    """What two runs of the modality study say of the cases both tested, whatever fold these were in."""

    runs: Sequence[Run]
    draws: int

    @cached_property
    def settings(self) -> list[ModalitySettings]:
        """How each run estimates."""
        return [ModalitySettings.of_run(run.manifest) for run in self.runs]

    def rows(self) -> Iterator[ComparedScore]:
        """The scores of the methods' maps, and the worth of the modalities where the runs have the same."""
        yield from self._maps()
        if not self._other_modalities():
            for measure, filled in product(*self._used()):
                yield from self._worth(measure, filled)

    def sentences(self) -> Iterator[str]:
        """What is not compared, and why."""
        one, other = self.settings
        if self._other_modalities():
            names = "; ".join(", ".join(each.modalities) for each in (one, other))
            yield f"The runs have other modalities ({names}), whose importance cannot be compared."
            return
        for filled in self._fills(one, other):
            if not all(filled in each.fills for each in (one, other)):
                yield f"The importance of modalities when filled by {filled} is in one run only, and not compared."
        if not one.coalitions.exact:
            yield "Intervals of the importance do not hold the error that is left where orders of modalities are drawn."

    def _other_modalities(self) -> bool:
        one, other = self.settings
        return one.modalities != other.modalities

    @staticmethod
    def _fills(one: ModalitySettings, other: ModalitySettings) -> list[str]:
        """The fill that counts in each run."""
        return sorted({one.fills[0], other.fills[0]})

    def _used(self) -> tuple[list[str], list[str]]:
        """The measures that count in a run, and of the fills that do those which both runs have."""
        one, other = self.settings
        fills = [name for name in self._fills(one, other) if name in one.fills and name in other.fills]
        return sorted({one.measure, other.measure}), fills

    def _maps(self) -> Iterator[ComparedScore]:
        """The metrics by which methods are ranked, MSFI under the weights of either run."""
        one, other = (
            read_scores(run.path, RANKED, each.model) for run, each in zip(self.runs, self.settings, strict=True)
        )
        for metric in RANKED:
            ways = {condition(**way): way for way in (each.primary(metric) for each in self.settings)}
            for at, way in ways.items():
                name = f"{metric} ({', '.join(way.values())})" if len(ways) > 1 else metric
                pair = [table[(table["metric"] == metric) & (table["at"] == at)] for table in (one, other)]
                merged = pair[0].merge(pair[1], on=[*_CASE, "method"], suffixes=("_first", "_second"))
                yield from compared_scores(merged.assign(metric=name, finding=ALL_FINDINGS), self.draws)

    def _worth(self, measure: str, filled: str) -> Iterator[ComparedScore]:
        """The accuracy, and the worth of each modality and of its lesion."""
        several = max(map(len, self._used())) > 1
        under = f" ({measure}, {filled})" if several else ""
        for ablated, metric in PHI.items():
            tables = [self._contributions(number, ablated, filled) for number in range(2)]
            merged = tables[0].merge(tables[1], on=_CASE, suffixes=("_first", "_second"))
            if merged.empty:
                continue
            if ablated == "modality" and filled == self._used()[1][0]:  # with all of them shown nothing is filled
                yield self._difference(merged, "", measure, MEASURES[measure])
            for modality in self.settings[0].modalities:
                yield self._difference(merged, modality, measure, f"{metric}{under}")

    def _contributions(self, number: int, ablated: str, filled: str) -> pd.DataFrame:
        """What each case of a run adds to the modalities' worth, and whether it was told with all of them."""
        each = self.settings[number]
        worths = Worths.read(self.runs[number].path, each)
        table = worths.shown(ablated, filled)
        right = table.to_numpy(float)
        values = np.column_stack([right @ contributions(each.coalitions), right[:, -1]])
        return pd.DataFrame(values, columns=[*each.modalities, ""], index=table.index).reset_index()

    def _difference(self, merged: pd.DataFrame, column: str, measure: str, metric: str) -> ComparedScore:
        first, second = (merged[f"{column}_{run}"].to_numpy(float) for run in ("first", "second"))
        same = (merged["fold_first"] == merged["fold_second"]).all()  # then folds count the same, as in the reports
        folds = merged["fold_first"].to_numpy() if same else np.zeros(len(merged), int)
        one, other, apart = balanced_means(
            np.stack([first, second, second - first], 1),
            Strata(folds, merged["finding"].to_numpy() if measure == "balanced" else None),
            merged["patient"].to_numpy(str),
            self.draws,
            generator_for("compare", metric, column),
        )
        return ComparedScore(
            metric, ALL_FINDINGS, column, one.value, other.value, apart.value, known(apart.low), known(apart.high),
            len(merged),
        )  # fmt: skip


def compare_modality(runs: Sequence[Run], draws: int) -> Compared:
    """What two runs of the modality study say of the cases both tested."""
    compared = ComparedModalities(runs, draws)
    return Compared(tuple(compared.rows()), tuple(compared.sentences()))
