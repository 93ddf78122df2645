"""What methods are graded on: the images on which an attack worked, and images with real artefacts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from heatcheck.core.boxes import box_around
from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError
from heatcheck.core.records import CaseKey, Mask
from heatcheck.explaining.batch import Explainer
from heatcheck.metrics.trigger_boxes import Planted
from heatcheck.models import NetworkClassifier
from heatcheck.models.classifier import prepared
from heatcheck.studies.triggers.attack import said_classes
from heatcheck.studies.triggers.images import plain_contract
from heatcheck.studies.triggers.networks import Network, TriggerNetworks
from heatcheck.studies.triggers.scores import AttackedImage, Detector, Scorer, attacked_subject
from heatcheck.studies.triggers.vocabulary import ARTEFACT


@dataclass(frozen=True)
class EvaluationSettings:
    """What all exams of a study share."""

    model: str  # what scores call it
    seed: int
    detector: Detector
    pairs: tuple[tuple[str, ...], ...]  # metrics of two maps; those that share their work stand together
    explainer: Callable[[NetworkClassifier], Explainer]


@dataclass(frozen=True)
class TriggerEvaluation:
    """A victim and the test images that its trigger sends to the target."""

    network: Network
    networks: TriggerNetworks
    places: Sequence[int]
    grading: EvaluationSettings

    @property
    def label(self) -> str:
        """What its maps are called where they are kept."""
        return f"{self.network.name}-seed{self.network.seed}"

    def explainer(self) -> Explainer:
        """The victim with the methods."""
        return self.grading.explainer(self.networks.classifier(self.network))

    def scorer(self) -> Scorer:
        """Who scores the maps, with the victim and the baseline for the recovered images."""
        return Scorer(
            self.network.name,
            self.grading.model,
            {"seed": self.network.seed},
            self.grading.detector,
            self.grading.seed,
            victim=self.networks.classifier(self.network),
            baseline=self.networks.classifier(Network(self.network.seed)),
            target=self.networks.target,
            pairs=self.grading.pairs,
        )

    def key(self, place: int) -> CaseKey:
        """The case of a test image."""
        return self.networks.splits.test.keys[place]

    def subjects(self, places: Sequence[int]) -> list[AttackedImage]:
        """The images with their triggers."""
        images, attack = self.networks.splits.test, self.networks.attack(self.network)
        if attack is None:
            raise ValueError("a baseline has no trigger")
        target = self.networks.contract.outputs[self.networks.target]
        stamps = attack.stamps(images, places)
        return [
            attacked_subject(self.key(place), target, images.image(place), stamp)
            for place, stamp in zip(places, stamps, strict=True)
        ]


@dataclass(frozen=True)
class ArtefactExam:
    """A network as it is, and images with one kind of artefact."""

    artefact: str
    source: Source
    keys: Sequence[CaseKey]
    network: Callable[[], NetworkClassifier]
    grading: EvaluationSettings
    target: str = ""  # the class asked about; the one that the network says where none is named

    @property
    def label(self) -> str:
        """What its maps are called where they are kept."""
        return self.artefact

    @cached_property
    def places(self) -> Sequence[int]:
        """The images on which the artefact is marked; one whose marks cannot be read counts, so that it is told."""
        return [place for place, key in enumerate(self.keys) if self._is_marked(key)]

    def _is_marked(self, key: CaseKey) -> bool:
        try:
            return bool(self.source.truth(key).get(self.artefact, np.zeros(1, bool)).any())
        except CaseError:
            return True

    def explainer(self) -> Explainer:
        """The network with the methods."""
        return self.grading.explainer(self.network())

    def scorer(self) -> Scorer:
        """Who scores the maps; without a clean twin nothing can be recovered."""
        grading = self.grading
        return Scorer(self.artefact, grading.model, ARTEFACT, grading.detector, grading.seed, pairs=grading.pairs)

    def key(self, place: int) -> CaseKey:
        """The case of an image."""
        return self.keys[place]

    def subjects(self, places: Sequence[int]) -> list[AttackedImage]:
        """The images on the model's grid with the artefact's mask, each asked about what the network says it shows."""
        return [self._subject(self.keys[place]) for place in places]

    def _subject(self, key: CaseKey) -> AttackedImage:
        network = self.network()
        case = self.source.load(key)
        mask = case.truth.get(self.artefact)
        if mask is None or not mask.any():
            raise CaseError(f"{key.case} has no mask of {self.artefact!r}; add one, or label it 0", stage="truth")
        image = prepared(case.image, plain_contract(network.preprocessing, len(case.image))).numpy()
        small = _on_grid(mask, network.preprocessing.size)
        said = self.target or network.outputs[int(said_classes(network, [image])[0])]
        return AttackedImage(key, said, image, Planted(box_around(small), small, small))


def _on_grid(mask: Mask, size: tuple[int, ...]) -> Mask:
    """The mask on the model's grid: pixels of which it covers half, or the most covered one where none is."""
    share = cv2.resize(mask.astype(np.float32), size[::-1], interpolation=cv2.INTER_AREA)
    return np.asarray(share >= min(0.5, float(share.max())))
