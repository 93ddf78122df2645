"""The scores of one map of one case: modality by modality, in the lesion, and when its voxels are taken away."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool

from heatcheck.core.geometry import mask_to_grid
from heatcheck.core.records import Mask, Measured, Score
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import Condition, condition, condition_of
from heatcheck.metrics.modality.msfi import ByModality, ModalitySums, msfi, sums_of, weights_of
from heatcheck.metrics.modality.removal import Curve, aupc, delta_aupc, random_shares, random_voxels, removal
from heatcheck.metrics.modality.shares import (
    UNINFORMATIVE,
    inside_share,
    lesion_share,
    median_iou,
    mi_correlation,
    modality_sum,
    uniform_sums,
)
from heatcheck.models import NetworkClassifier
from heatcheck.models.classifier import prepared, statistics_of
from heatcheck.studies.modality.cases import ModalCase, told
from heatcheck.studies.modality.explaining import Answered, MadeMaps, ModalMap, on_model
from heatcheck.studies.modality.importance import Importances
from heatcheck.studies.modality.vocabulary import UNIFORM, Weights

WEIGHTS: tuple[Weights, ...] = ("positive", "min_max")
Named = tuple[str, Condition, Measured]  # the metric, what else its condition says, and the value


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
        found: list[Named] = [
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

    def _weighted(self) -> Iterator[tuple[Condition, ByModality]]:
        """Each way to weigh the modalities."""
        for name, importance in self.importances.of_features.items():
            for rule in WEIGHTS:
                yield {"importance": name, "weights": rule}, weights_of(importance, rule)

    def _by_modality(self, sums: ModalitySums) -> Iterator[Named]:
        shares = zip(self.modalities, modality_sum(sums.sums), inside_share(*sums), strict=True)
        for name, share, inside in shares:
            yield "modality_sum", {"modality": name}, share
            yield "inside_share", {"modality": name}, inside

    def _score(self, case: ModalCase, method: str, metric: str, facts: Condition, value: Measured) -> Score:
        key, text = case.case.key, condition_of({**facts, "fold": self.fold})
        return Score(key.case, key.patient, case.label, method, self.model, metric, value.value, text, "", value.reason)


Gone = Bool[np.ndarray, "channel *grid"]


@dataclass(frozen=True)
class RemovalTest:
    """The network, and how voxels are taken away from its input: as many at a time, beside random ones."""

    classifier: NetworkClassifier
    steps: int
    orders: int  # drawn at random
    at_once: int  # copies of a case that go through the network together
    seed: int

    def subject(self, answered: Answered, place: int, case: ModalCase) -> "RemovalCase":
        """A case as the network sees it, with its random curve."""
        contract, image = self.classifier.preprocessing, case.case.image
        head = mask_to_grid(case.head, self.classifier.placement(image), contract.size)
        blank = prepared(np.zeros_like(image), contract, statistics_of(image, contract))
        own = answered.images[place]
        bare = RemovalCase(self, own, blank.to(own.device), head, contract.outputs.index(case.label))
        shares = random_shares(self.steps)
        chance = generator_for(self.seed, case.case.key.case, "removal")
        curves = [bare.right(random_voxels(head, len(own), shares, chance)) for _ in range(self.orders)]
        return replace(bare, random=np.mean(curves, 0))


@dataclass(frozen=True)
class RemovalCase:
    """One case whose voxels are taken away."""

    test: RemovalTest
    image: torch.Tensor  # [channel, *grid], prepared
    blank: torch.Tensor  # what takes a voxel's place
    head: Mask  # on the network's grid
    label: int
    random: Curve | None = None  # how often random orders leave the class right, share by share

    def right(self, gone: Iterable[Gone]) -> Curve:
        """Whether the class is told with nothing gone, and then with each choice of voxels gone."""
        copies = self._copies(gone)
        told_by_step: list[int] = []
        while some := list(islice(copies, self.test.at_once)):
            told_by_step += told(self.test.classifier, torch.stack(some)).tolist()
        return np.array([place == self.label for place in told_by_step], float)

    def _copies(self, gone: Iterable[Gone]) -> Iterator[torch.Tensor]:
        yield self.image
        for voxels in gone:
            yield torch.where(torch.from_numpy(voxels).to(self.image.device), self.blank, self.image)


def removal_rows(
    subjects: Sequence[RemovalCase], cases: Sequence[ModalCase], made: MadeMaps, model: str, fold: int
) -> list[Score]:
    """Both areas of each case's map."""
    rows: list[Score] = []
    for place, (subject, case) in enumerate(zip(subjects, cases, strict=True)):
        key, at = case.case.key, condition(fold=fold)
        if place in made.missing:
            found = [("aupc", np.nan, made.missing[place]), ("delta_aupc", np.nan, made.missing[place])]
        else:
            found = _areas(subject, made, place)
        rows += [
            Score(key.case, key.patient, case.label, made.method, model, metric, value, at, "", reason)
            for metric, value, reason in found
        ]
    return rows


def _areas(subject: RemovalCase, made: MadeMaps, place: int) -> list[tuple[str, float, str]]:
    values = on_model(made.values[place], tuple(subject.image.shape[1:]), subject.head)
    steps = removal(values, subject.head, subject.test.steps)
    right = subject.right(steps.voxels(values, subject.head))
    if subject.random is None:
        raise ValueError("a subject is compared with random orders; make it with RemovalTest.subject")
    own, beyond = aupc(right), delta_aupc(right, steps.shares, subject.random, random_shares(subject.test.steps))
    return [("aupc", own.value, own.reason), ("delta_aupc", beyond.value, beyond.reason)]
