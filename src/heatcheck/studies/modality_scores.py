"""The scores of one map of one case: does it give each modality its due, and does it find the lesion in it?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heatcheck.core.records import Measured, Score, condition
from heatcheck.metrics.modality.msfi import ByModality, ModalitySums, msfi, sums_of, weights_of
from heatcheck.metrics.modality.shares import (
    UNINFORMATIVE,
    inside_share,
    lesion_share,
    median_iou,
    mi_correlation,
    modality_sum,
    uniform_sums,
)
from heatcheck.studies.modality_cases import ModalCase
from heatcheck.studies.modality_explaining import ModalMap
from heatcheck.studies.modality_importance import Importances
from heatcheck.studies.modality_rule import UNIFORM

WEIGHTS = ("positive", "min_max")
Named = tuple[str, dict[str, str], Measured]  # the metric, what else its condition says, and the value


@dataclass(frozen=True)
class MapScorer:
    """Scores maps of the cases of one fold."""

    modalities: tuple[str, ...]
    importances: Importances
    model: str
    fold: int

    def scores(self, case: ModalCase, method: str, values: ModalMap, *, shared: bool) -> list[Score]:
        """Every score of a map; `shared` where the method makes one map for all modalities by its nature."""
        sums = sums_of(values, case.masks)
        found = [
            ("mi_correlation", {}, self._correlation(sums.sums, shared=shared)),
            ("median_iou", {}, median_iou(values, case.masks)),
            *self._inside(sums),
            *self._by_modality(sums),
        ]
        return [self._score(case, method, *one) for one in found]

    def floor(self, case: ModalCase) -> list[Score]:
        """The scores of a map that is 1 on the whole head."""
        sums = uniform_sums(case.head, case.masks)
        return [self._score(case, UNIFORM, *one) for one in self._inside(sums)]

    def missing(self, case: ModalCase, method: str, reason: str) -> list[Score]:
        """The rows of a case of which the method has no map."""
        names = ["mi_correlation", "median_iou", "lesion_share"]
        rows: list[Named] = [(name, {}, Measured(np.nan, reason)) for name in names]
        rows += [("msfi", more, Measured(np.nan, reason)) for more, _ in self._weighted()]
        rows += [
            (name, {"modality": modality}, Measured(np.nan, reason))
            for modality in self.modalities
            for name in ("modality_sum", "inside_share")
        ]
        return [self._score(case, method, *one) for one in rows]

    def _correlation(self, sums: ByModality, *, shared: bool) -> Measured:
        return Measured(np.nan, UNINFORMATIVE) if shared else mi_correlation(self.importances.modality, sums)

    def _inside(self, sums: ModalitySums) -> Iterator[Named]:
        yield "lesion_share", {}, lesion_share(*sums)
        for more, weights in self._weighted():
            yield "msfi", more, msfi(*sums, weights)

    def _weighted(self) -> Iterator[tuple[dict[str, str], ByModality]]:
        """Each way to weigh the modalities."""
        for name, importance in self.importances.of_features.items():
            for rule in WEIGHTS:
                yield {"importance": name, "weights": rule}, weights_of(importance, rule)  # type: ignore[arg-type]

    def _by_modality(self, sums: ModalitySums) -> Iterator[Named]:
        shares = zip(self.modalities, modality_sum(sums.sums), inside_share(*sums), strict=True)
        for name, share, inside in shares:
            yield "modality_sum", {"modality": name}, share
            yield "inside_share", {"modality": name}, inside

    def _score(self, case: ModalCase, method: str, metric: str, more: dict[str, str], value: Measured) -> Score:
        key, at = case.case.key, condition(fold=self.fold, **more)
        return Score(key.case, key.patient, case.label, method, self.model, metric, value.value, at, "", value.reason)
