"""A network and its preprocessing, ready to be explained."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import Placement, image_to_model, place
from heatcheck.core.records import Image
from heatcheck.core.tensors import Images, Logits
from heatcheck.models.contract import Preprocessing


@dataclass(frozen=True)
class NetworkClassifier:
    """One torch network as a classifier of named findings."""

    name: str
    module: nn.Module
    preprocessing: Preprocessing
    weights_hash: str = ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The findings, in the order of the logits."""
        return self.preprocessing.outputs

    @property
    def device(self) -> torch.device:
        """Where the network's weights are."""
        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    def placement(self, image: Image) -> Placement:
        """Where the image lies on the model's grid."""
        return placed(image, self.preprocessing)

    def prepare(self, images: Sequence[Image]) -> Images:
        """The images on the model's grid, normalised, on the model's device."""
        return torch.stack([prepared(image, self.preprocessing) for image in images]).to(self.device)

    def logits(self, images: Images) -> Logits:
        """One logit per image and output; of a head with three classes, the log-odds of positive against negative."""
        return log_odds(self.module(images), self.preprocessing)

    def probabilities(self, logits: Logits) -> Logits:
        """Sigmoid or softmax of the logits, as the contract says."""
        return activated(logits, self.preprocessing)


@dataclass(frozen=True)
class PositiveLogits:
    """A classifier with three classes a finding as methods see it: by its positive logits."""

    whole: NetworkClassifier

    @property
    def name(self) -> str:
        """The name of the classifier."""
        return self.whole.name

    @property
    def outputs(self) -> tuple[str, ...]:
        """The findings, in the order of the logits."""
        return self.whole.outputs

    @property
    def module(self) -> nn.Module:
        """The whole network: its layers keep their names."""
        return self.whole.module

    def placement(self, image: Image) -> Placement:
        """Where the image lies on the model's grid."""
        return self.whole.placement(image)

    def prepare(self, images: Sequence[Image]) -> Images:
        """The images on the model's grid, normalised, on the model's device."""
        return self.whole.prepare(images)

    def logits(self, images: Images) -> Logits:
        """The positive logit of each image and output."""
        answers: Tensor = self.module(images)
        return answers[:, 1::3]

    def probabilities(self, logits: Logits) -> Logits:  # noqa: ARG002 - of no use alone
        """Refused: the positive logit alone does not say how probable the finding is."""
        raise TypeError(f"ask the classifier {self.name} itself for probabilities, not what its methods explain")


def explained(classifier: Classifier) -> Classifier:
    """The classifier with the logits that maps explain: its own, or the positive ones of a head with three classes."""
    if isinstance(classifier, NetworkClassifier) and classifier.preprocessing.head == "three_class":
        return PositiveLogits(classifier)
    return classifier


def log_odds(answers: Float[Tensor, "batch answer"], wanted: Preprocessing) -> Logits:
    """One logit a finding from what the network answers; their sigmoid is the softmax over negative and positive."""
    return answers[:, 1::3] - answers[:, 0::3] if wanted.head == "three_class" else answers


def placed(image: Image, wanted: Preprocessing) -> Placement:
    """Where the image lies on the grid that the contract asks for."""
    return place(tuple(image.shape[1:]), wanted.size, wanted.fit)


def prepared(image: Image, wanted: Preprocessing) -> Float[Tensor, "channel *space"]:
    """The image as the contract asks for it."""
    tensor = torch.as_tensor(image, dtype=torch.float32)
    if tensor.shape[0] == 1 and wanted.channels > 1:
        tensor = tensor.expand(wanted.channels, *tensor.shape[1:])
    if tensor.shape[0] != wanted.channels:
        raise CaseError(f"image has {tensor.shape[0]} channels, the model expects {wanted.channels}", stage="prepare")
    if tensor.ndim - 1 != len(wanted.size):
        raise CaseError(f"image has {tensor.ndim - 1} axes, the model expects {len(wanted.size)}", stage="prepare")
    axes = (-1,) + (1,) * len(wanted.size)
    mean, std = torch.tensor(wanted.mean).reshape(axes), torch.tensor(wanted.std).reshape(axes)
    # normalised first, so that padding is the training set's mean grey
    return image_to_model((tensor - mean) / std, placed(image, wanted))


def activated(logits: Logits, wanted: Preprocessing) -> Logits:
    """The probabilities that belong to the logits, as the contract says."""
    return logits.sigmoid() if wanted.activation == "sigmoid" else logits.softmax(-1)
