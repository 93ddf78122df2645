"""A batch of cases through network and methods: the network's answers, and each method's map of each modality."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from heatcheck.core.contracts import Method
from heatcheck.core.geometry import place
from heatcheck.core.records import Case, Mask
from heatcheck.core.tensors import Images, Logits
from heatcheck.explaining.batch import GridMaps, MapRequest, answers_of, extra_values_for, require_finite
from heatcheck.explaining.extra_inputs import ExtraInput
from heatcheck.maps.channels import MapOrder
from heatcheck.maps.joint import joint
from heatcheck.maps.resize import to_image
from heatcheck.models import NetworkClassifier

ModalMap = Float[np.ndarray, "channel *space"]  # one channel per modality, or one for all
PREDICTED = ("the class the model names",)


@dataclass(frozen=True)
class BatchAnswers:
    """The network's answers to a batch."""

    cases: Sequence[Case]
    images: Images
    logits: Logits
    probabilities: Logits

    @property
    def predicted(self) -> list[int]:
        """The index of the predicted class of each case."""
        return [int(index) for index in self.logits.argmax(1)]


@dataclass(frozen=True)
class ModalBatchMaps:
    """One method's maps of a batch for the predicted class, on the method's own grid."""

    method: str
    maps: GridMaps  # [case, channel, *grid]
    seconds: float
    missing: Mapping[int, str]  # by index in the batch: why there is no map


@dataclass(frozen=True)
class ModalExplainer:
    """A network with the methods that explain it."""

    classifier: NetworkClassifier
    methods: Mapping[str, Method]
    seed: int
    map_order: MapOrder = "reduce_first"
    extra_inputs: tuple[ExtraInput, ...] = ()
    findings: tuple[str, ...] = PREDICTED  # one map per case

    def answers(self, cases: Sequence[Case]) -> BatchAnswers:
        """The network's answers to the cases."""
        images = self.classifier.prepare([case.image for case in cases])
        return BatchAnswers(cases, images, *answers_of(self.classifier, images))

    def maps(self, answers: BatchAnswers) -> Iterator[ModalBatchMaps]:
        """Method by method, so that one method's maps are in memory at a time."""
        for name in self.methods:
            yield self.maps_by(name, answers)

    def maps_by(self, name: str, answers: BatchAnswers) -> ModalBatchMaps:
        """One method's maps of the predicted class of each case."""
        begun = time.perf_counter()
        extra_values = extra_values_for(name, self.extra_inputs, answers.cases, self.classifier)
        targets = torch.tensor(answers.predicted, device=answers.images.device).unsqueeze(1)
        names = [case.key.case for case in answers.cases]
        request = MapRequest(self.classifier, names, answers.images, targets, self.seed)
        # channels are modalities: each keeps its own map
        made = request.made_by(name, extra_values.filled_in(self.methods[name]))
        values = made.values[:, 0].detach().cpu().float()
        require_finite(name, values)
        if self.map_order == "reduce_first":
            values = values.clamp(min=0)
        seconds = time.perf_counter() - begun
        missing = {index: next(iter(each.values())) for index, each in enumerate(extra_values.missing) if each}
        return ModalBatchMaps(name, GridMaps(values, made.cells), seconds, missing)


def on_image(classifier: NetworkClassifier, case: Case, maps: GridMaps, head: Mask) -> ModalMap:
    """A case's map on the image's grid, capped, without evidence against the class, scaled over all modalities."""
    return joint(to_image(maps.values, classifier.placement(case.image), maps.cells), head)


def on_model(maps: GridMaps, size: tuple[int, ...], head: Mask) -> ModalMap:
    """The same on the network's grid, where voxels are removed; `head` is on that grid, too."""
    return joint(to_image(maps.values, place(size, size, "stretch"), maps.cells), head)
