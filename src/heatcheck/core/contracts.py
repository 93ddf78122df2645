"""What each kind of part promises; the tests in `tests/contracts` hold every registered part to it."""

from collections.abc import Sequence
from typing import Protocol

from torch import nn

from heatcheck.core.batches import MapBatch
from heatcheck.core.geometry import Placement
from heatcheck.core.records import Case, CaseKey, Image, Mask, TruthKind
from heatcheck.core.tensors import Images, Logits, Targets


class Source(Protocol):
    """Data, one case at a time: the index is cheap, pixels are read when they are needed."""

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings that its labels and masks are about."""

    @property
    def truth_kind(self) -> TruthKind:
        """How the experts' marks are stored."""

    def index(self) -> Sequence[CaseKey]:
        """Every case, sorted by id."""

    def load(self, key: CaseKey) -> Case:
        """The case with pixels, truth and readings; raises CaseError when it cannot be used."""

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The truth masks alone, without reading the image."""

    def stamp(self) -> str:
        """A text that changes when the data behind the cases do; pixels need not be read for it."""


class ModalSource(Source, Protocol):
    """A source whose images have one channel per modality, and whose findings are classes that exclude one another.

    The truth of its cases is keyed by modality: where the lesion is visible in each.
    """

    @property
    def modalities(self) -> tuple[str, ...]:
        """What the channels of every image are, in their order."""


class Classifier(Protocol):
    """A model with its preprocessing: image grid in, one logit per finding out."""

    @property
    def name(self) -> str:
        """The name the scores carry."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The findings, in the order of the logits."""

    @property
    def module(self) -> nn.Module:
        """The network, in evaluation mode; raises ModelError where only predictions can be had."""

    def prepare(self, images: Sequence[Image]) -> Images:
        """The images on the model's grid, normalised, on the model's device."""

    def placement(self, image: Image) -> Placement:
        """Where the image lies on the model's grid."""

    def logits(self, images: Images) -> Logits:
        """One logit per image and output."""

    def probabilities(self, logits: Logits) -> Logits:
        """The probabilities that belong to the logits."""


class Method(Protocol):
    """A saliency method with its settings."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:
        """One map per image and target; leaves the model as it was."""
