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
from heatcheck.studies.triggers.attack import predicted_classes
from heatcheck.studies.triggers.images import plain_contract
from heatcheck.studies.triggers.networks import Network, TriggerNetworks
from heatcheck.studies.triggers.scores import AttackedImage, Detector, Scorer, attacked_image
from heatcheck.studies.triggers.vocabulary import ARTEFACT


@dataclass(frozen=True)
class EvaluationSettings:
    """What all evaluations of a run share."""

    model: str  # its name in the tables
    seed: int
    detector: Detector
    pairs: tuple[tuple[str, ...], ...]  # metrics of two maps, grouped where they share their computation
    explainer: Callable[[NetworkClassifier], Explainer]


@dataclass(frozen=True)
class TriggerEvaluation:
    """A poisoned model and the test images that its trigger alone sends to the target."""

    network: Network
    networks: TriggerNetworks
    positions: Sequence[int]  # in the test split
    settings: EvaluationSettings

    @property
    def label(self) -> str:
        """The first part of the names of stored maps."""
        return self.network.file

    def explainer(self) -> Explainer:
        """The poisoned model with the methods."""
        return self.settings.explainer(self.networks.classifier(self.network))

    def control(self) -> Explainer:
        """The baseline with the methods: it ignores the trigger, so that its maps of stamped images are the control."""
        return self.settings.explainer(self.networks.classifier(Network(self.network.seed)))

    def scorer(self) -> Scorer:
        """The scorer, with the poisoned model and the baseline that classify recovered images."""
        return Scorer(
            self.network.name,
            self.settings.model,
            {"seed": self.network.seed},
            self.settings.detector,
            self.settings.seed,
            poisoned_model=self.networks.classifier(self.network),
            baseline=self.networks.classifier(Network(self.network.seed)),
            pairs=self.settings.pairs,
        )

    def key(self, position: int) -> CaseKey:
        """The case of a test image."""
        return self.networks.splits.test.keys[position]

    def images(self, positions: Sequence[int]) -> list[AttackedImage]:
        """The images with their triggers."""
        clean, attack = self.networks.splits.test, self.networks.attack(self.network)
        if attack is None:
            raise ValueError("a baseline has no trigger")
        target = self.networks.contract.outputs[self.networks.target]
        return [
            attacked_image(self.key(position), target, clean.image(position), stamp)
            for position, stamp in zip(positions, attack.stamps(clean, positions), strict=True)
        ]


@dataclass(frozen=True)
class ArtefactEvaluation:
    """A network that was not attacked, and images with one kind of artefact."""

    artefact: str
    source: Source
    keys: Sequence[CaseKey]
    network: Callable[[], NetworkClassifier]
    settings: EvaluationSettings
    target: str = ""  # the class that is explained; the predicted one where none is named

    @property
    def label(self) -> str:
        """The first part of the names of stored maps."""
        return self.artefact

    @cached_property
    def positions(self) -> Sequence[int]:
        """The images with marks of the artefact; one whose marks cannot be read is kept, so that it is recorded."""
        return [position for position, key in enumerate(self.keys) if self._is_marked(key)]

    def _is_marked(self, key: CaseKey) -> bool:
        try:
            return bool(self.source.truth(key).get(self.artefact, np.zeros(1, bool)).any())
        except CaseError:
            return True

    def explainer(self) -> Explainer:
        """The network with the methods."""
        return self.settings.explainer(self.network())

    def control(self) -> None:
        """None: no network is known to ignore a real artefact."""

    def scorer(self) -> Scorer:
        """The scorer; without a clean twin no image can be recovered."""
        settings = self.settings
        return Scorer(self.artefact, settings.model, ARTEFACT, settings.detector, settings.seed, pairs=settings.pairs)

    def key(self, position: int) -> CaseKey:
        """The case of an image."""
        return self.keys[position]

    def images(self, positions: Sequence[int]) -> list[AttackedImage]:
        """The images on the model's grid with the artefact's mask; raises CaseError where one cannot be used."""
        return [self._image(self.keys[position]) for position in positions]

    def _image(self, key: CaseKey) -> AttackedImage:
        network = self.network()
        case = self.source.load(key)
        mask = case.truth.get(self.artefact)
        if mask is None or not mask.any():
            raise CaseError(f"{key.case} has no mask of {self.artefact!r}; add one, or label it 0", stage="truth")
        image = prepared(case.image, plain_contract(network.preprocessing, len(case.image))).numpy()
        on_grid = _on_grid(mask, network.preprocessing.size)
        explained = self.target or network.outputs[int(predicted_classes(network, [image])[0])]
        return AttackedImage(key, explained, image, Planted(box_around(on_grid), on_grid, on_grid))


Evaluation = TriggerEvaluation | ArtefactEvaluation


def _on_grid(mask: Mask, size: tuple[int, ...]) -> Mask:
    """The mask on the model's grid: the pixels of which it covers half, or the most covered one where there is none."""
    share = cv2.resize(mask.astype(np.float32), size[::-1], interpolation=cv2.INTER_AREA)
    return np.asarray(share >= min(0.5, float(share.max())))
