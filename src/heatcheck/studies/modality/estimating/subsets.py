"""Whether the networks were right with each subset of the modalities shown: the table that importances come from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from heatcheck.core.vocabulary import condition
from heatcheck.estimating.score_table import pivoted
from heatcheck.stats.balanced import Strata
from heatcheck.studies.modality.estimating.score_tables import KEYS, read_scores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import EVERY_FOLD, RIGHT, Measure, shown_name

PERFORMANCE_ENDS, IMPORTANCE_ENDS = (0.0, 1.0), (-1.0, 1.0)  # the values that are possible


@dataclass(frozen=True)
class SubsetAnswers:
    """Whether the network was right on each case of some folds, with each subset of the modalities shown."""

    right: Float[np.ndarray, "cases subsets"]
    folds: np.ndarray
    classes: np.ndarray
    patients: np.ndarray

    @property
    def cells(self) -> pd.MultiIndex:
        """The fold and the patient of each case."""
        return pd.MultiIndex.from_arrays([self.folds, self.patients])

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
    def read(cls, folder: Path, settings: ModalitySettings, stage: str = "shapley") -> "SubsetScores":
        """Those of a stage in the run's folder."""
        return cls(read_scores(folder / stage, [RIGHT], settings.model), settings)

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
