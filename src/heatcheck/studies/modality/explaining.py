"""One batch of cases through network and methods: what the network says, and a map of each modality by each method."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heatcheck.core.contracts import Method
from heatcheck.core.records import Case, Mask
from heatcheck.core.tensors import Images, Logits
from heatcheck.explaining.batch import MapRequest, answers_of, extra_values_for, require_finite
from heatcheck.explaining.extra_inputs import ExtraInput
from heatcheck.maps.joint import joint
from heatcheck.maps.resize import to_image
from heatcheck.models import NetworkClassifier

ModalMap = Float[np.ndarray, "channel *space"]  # a channel for each modality, or one that stands for all
PREDICTED = ("the class the model names",)


@dataclass(frozen=True)
class Answered:
    """What the network says of a batch."""

    cases: Sequence[Case]
    images: Images
    logits: Logits
    probabilities: Logits

    @property
    def said(self) -> list[int]:
        """The place of the class that is told for each case."""
        return [int(place) for place in self.logits.argmax(1)]


@dataclass(frozen=True)
class MadeMaps:
    """The maps of one method of a batch, of the class that is told, on the method's own grid."""

    method: str
    values: Float[Tensor, "batch channel *grid"]
    seconds: float
    missing: Mapping[int, str]  # by place in the batch: why there is no map


@dataclass(frozen=True)
class ModalExplainer:
    """A network with the methods to be judged on it."""

    classifier: NetworkClassifier
    methods: Mapping[str, Method]
    seed: int
    extra_inputs: tuple[ExtraInput, ...] = ()
    findings: tuple[str, ...] = PREDICTED  # one map a case

    def answers(self, cases: Sequence[Case]) -> Answered:
        """What the network says of the cases."""
        images = self.classifier.prepare([case.image for case in cases])
        return Answered(cases, images, *answers_of(self.classifier, images))

    def maps(self, answered: Answered) -> Iterator[MadeMaps]:
        """Method by method, so that one method's maps are in memory at a time."""
        for name in self.methods:
            yield self.made(name, answered)

    def made(self, name: str, answered: Answered) -> MadeMaps:
        """One method's maps of the class that is told for each case."""
        begun = time.perf_counter()
        extra_values = extra_values_for(name, self.extra_inputs, answered.cases, self.classifier)
        targets = torch.tensor(answered.said, device=answered.images.device).unsqueeze(1)
        names = [case.key.case for case in answered.cases]
        request = MapRequest(self.classifier, names, answered.images, targets, self.seed)
        # channels are modalities: each has its map, resized as it is
        values = request.maps(name, extra_values.filled_in(self.methods[name]), channels=None)[:, 0]
        require_finite(name, values)
        spent = time.perf_counter() - begun
        missing = {place: next(iter(own.values())) for place, own in enumerate(extra_values.missing) if own}
        return MadeMaps(name, values.detach().cpu().float(), spent, missing)


def on_image(classifier: NetworkClassifier, case: Case, values: Float[Tensor, "channel *grid"], head: Mask) -> ModalMap:
    """A case's map on its image's grid, capped, without evidence against the class, scaled over all modalities."""
    return joint(to_image(values, classifier.placement(case.image)), head)


def on_model(values: Float[Tensor, "channel *grid"], size: tuple[int, ...], head: Mask) -> ModalMap:
    """The same on the network's own grid, where voxels are taken away; `head` lies there, too."""
    if tuple(values.shape[1:]) != size:
        mode = "bilinear" if len(size) == 2 else "trilinear"
        values = functional.interpolate(values[None], size, mode=mode, align_corners=False)[0]
    return joint(values.numpy(), head)
