"""The scores of one map of one case: modality by modality, in the lesion, and when its voxels are removed."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool

from heatcheck.core.geometry import mask_to_grid
from heatcheck.core.records import Mask, Measured, Score
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import Condition, condition, condition_of
from heatcheck.metrics.features import AGREEMENT, CONCENTRATION, agreements, concentration
from heatcheck.metrics.modality.msfi import ByModality, ModalitySums, msfi, sums_of, weights_of
from heatcheck.metrics.modality.removal import Curve, aupc, delta_aupc, random_shares, random_voxels, removal
from heatcheck.metrics.modality.shares import (
    UNINFORMATIVE,
    clear_correlation,
    inside_share,
    lesion_share,
    median_iou,
    mi_correlation,
    modality_sum,
    uniform_sums,
)
from heatcheck.models import NetworkClassifier
from heatcheck.models.classifier import prepared, statistics_of
from heatcheck.studies.modality.cases import ModalCase, predicted_classes
from heatcheck.studies.modality.estimating.importance import Importances
from heatcheck.studies.modality.explaining import BatchAnswers, ModalBatchMaps, ModalMap, on_model
from heatcheck.studies.modality.floors import Floors
from heatcheck.studies.modality.vocabulary import PUBLISHED, UNIFORM, WEIGHTS

ONE_METHOD = "no other method to agree with"
MetricValue = tuple[str, Condition, Measured]  # the metric, its condition without the fold, and the value


@dataclass(frozen=True)
class MapScorer:
    """Scores maps of the cases of one fold."""

    modalities: tuple[str, ...]
    importances: Importances
    model: str
    fold: int
    model_free: Floors

    def scores(self, case: ModalCase, method: str, values: ModalMap, *, shared: bool) -> list[Score]:
        """Every score of a map; `shared` where the method makes one map for all modalities."""
        sums = sums_of(values, case.masks)
        values_by_metric: list[MetricValue] = [
            *self._correlations(sums.sums, shared=shared),
            ("median_iou", {}, median_iou(values, case.masks)),
            *self._inside(sums),
            *self._by_modality(sums),
        ]
        return [self._score(case, method, *each) for each in values_by_metric]

    def floors(self, case: ModalCase) -> list[Score]:
        """The scores of maps made without the network.

        Of a map that is 1 everywhere in the head, only those in the lesion and the shares that MSFI is a mean of.
        """
        sums = uniform_sums(case.head, case.masks)
        shares = [each for each in self._by_modality(sums) if each[0] == "inside_share"]
        rows = [self._score(case, UNIFORM, *each) for each in (*self._inside(sums), *shares)]
        for name, values, reason in self.model_free.maps(case):
            if values is None:
                rows += self.missing(case, name, reason)
            else:
                rows += self.scores(case, name, values, shared=False)
        return rows

    def features(self, case: ModalCase, small_maps: Mapping[str, ModalMap]) -> list[Score]:
        """What is known of each method's map of a case without the truth; the maps are small copies."""
        agree = agreements(small_maps)
        rows: list[Score] = []
        for method, small in small_maps.items():
            found = {CONCENTRATION: concentration(small), AGREEMENT: agree[method]}
            rows += [
                self._score(case, method, name, {}, Measured(value, ONE_METHOD if math.isnan(value) else ""))
                for name, value in found.items()
            ]
        return rows

    def missing(self, case: ModalCase, method: str, reason: str) -> list[Score]:
        """The rows of a case for which the method has no map."""
        undefined = Measured(np.nan, reason)
        names = ("mi_correlation", PUBLISHED, "median_iou", "lesion_share")
        rows: list[MetricValue] = [(name, {}, undefined) for name in names]
        rows += [("msfi", facts, undefined) for facts, _ in self._weighted()]
        rows += [
            (name, {"modality": modality}, undefined)
            for modality in self.modalities
            for name in ("modality_sum", "inside_share")
        ]
        return [self._score(case, method, *each) for each in rows]

    def _correlations(self, sums: ByModality, *, shared: bool) -> Iterator[MetricValue]:
        published = Measured(np.nan, UNINFORMATIVE) if shared else mi_correlation(self.importances.modality, sums)
        known = not shared and not np.isnan(self.importances.modality).any()
        yield "mi_correlation", {}, clear_correlation(self.importances.clear, sums) if known else published
        yield PUBLISHED, {}, published

    def _inside(self, sums: ModalitySums) -> Iterator[MetricValue]:
        yield "lesion_share", {}, lesion_share(*sums)
        for facts, weights in self._weighted():
            yield "msfi", facts, msfi(*sums, weights)

    def _weighted(self) -> Iterator[tuple[Condition, ByModality]]:
        """Each way to weight the modalities."""
        for name, importance in self.importances.of_features.items():
            for rule in WEIGHTS:
                yield {"importance": name, "weights": rule}, weights_of(importance, rule)

    def _by_modality(self, sums: ModalitySums) -> Iterator[MetricValue]:
        shares = zip(self.modalities, modality_sum(sums.sums), inside_share(*sums), strict=True)
        for name, share, inside in shares:
            yield "modality_sum", {"modality": name}, share
            yield "inside_share", {"modality": name}, inside

    def _score(self, case: ModalCase, method: str, metric: str, facts: Condition, value: Measured) -> Score:
        key, text = case.case.key, condition_of({**facts, "fold": self.fold})
        return Score(key.case, key.patient, case.label, method, self.model, metric, value.value, text, "", value.reason)


Removed = Bool[np.ndarray, "channel *grid"]  # the voxels that are replaced


@dataclass(frozen=True)
class RemovalTest:
    """How voxels are removed from the input of a network: step by step, and for comparison in random orders."""

    classifier: NetworkClassifier
    steps: int
    orders: int  # drawn at random
    batch_size: int  # copies of a case in one forward pass
    seed: int

    def case(self, answers: BatchAnswers, index: int, case: ModalCase) -> "RemovalCase":
        """A case on the network's grid, with the mean curve of the random orders."""
        contract, image = self.classifier.preprocessing, case.case.image
        head = mask_to_grid(case.head, self.classifier.placement(image), contract.size)
        empty = prepared(np.zeros_like(image), contract, statistics_of(image, contract))
        intact = answers.images[index]
        removal_case = RemovalCase(self, intact, empty.to(intact.device), head, contract.outputs.index(case.label))
        shares = random_shares(self.steps)
        chance = generator_for(self.seed, case.case.key.case, "removal")
        curves = [removal_case.right(random_voxels(head, len(intact), shares, chance)) for _ in range(self.orders)]
        return replace(removal_case, random=np.mean(curves, 0))


@dataclass(frozen=True)
class RemovalCase:
    """One case whose voxels are removed."""

    test: RemovalTest
    image: torch.Tensor  # [channel, *grid], prepared
    empty: torch.Tensor  # the image that removed voxels are taken from
    head: Mask  # on the network's grid
    label: int
    random: Curve | None = None  # how often the class is still right with random orders, by removed share

    def right(self, steps: Iterable[Removed]) -> Curve:
        """Whether the predicted class is right with nothing removed, and then after each step."""
        copies = self._copies(steps)
        predicted: list[int] = []
        while batch := list(islice(copies, self.test.batch_size)):
            predicted += predicted_classes(self.test.classifier, torch.stack(batch)).tolist()
        return np.array([index == self.label for index in predicted], float)

    def _copies(self, steps: Iterable[Removed]) -> Iterator[torch.Tensor]:
        yield self.image
        for voxels in steps:
            yield torch.where(torch.from_numpy(voxels).to(self.image.device), self.empty, self.image)


def removal_rows(
    removals: Sequence[RemovalCase], cases: Sequence[ModalCase], maps: ModalBatchMaps, model: str, fold: int
) -> list[Score]:
    """AUPC and ΔAUPC of each case's map."""
    rows: list[Score] = []
    for index, (removal_case, case) in enumerate(zip(removals, cases, strict=True)):
        missing = index in maps.missing
        areas = (Measured(np.nan, maps.missing[index]),) * 2 if missing else _areas(removal_case, maps, index)
        key, text = case.case.key, condition(fold=fold)
        rows += [
            Score(key.case, key.patient, case.label, maps.method, model, metric, area.value, text, "", area.reason)
            for metric, area in zip(("aupc", "delta_aupc"), areas, strict=True)
        ]
    return rows


def _areas(case: RemovalCase, maps: ModalBatchMaps, index: int) -> tuple[Measured, Measured]:
    values = on_model(maps.maps.of_case(index), tuple(case.image.shape[1:]), case.head)
    steps = removal(values, case.head, case.test.steps)
    right = case.right(steps.voxels(values, case.head))
    if case.random is None:
        raise ValueError("a case must have a curve of random orders to compare with; make it with RemovalTest.case")
    return aupc(right), delta_aupc(right, steps.shares, case.random, random_shares(case.test.steps))
