"""A network and its preprocessing, ready to be explained."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import CaseError, ConstantChannelError
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


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean and standard deviation of each channel of one image, over its pixels that are not 0."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


def statistics_of(image: Image, wanted: Preprocessing) -> Statistics | None:
    """What the image is scaled by where the contract asks for its own; None where all images are scaled alike.

    Copies of an image in which something is covered are prepared with those of the intact image.
    """
    if wanted.scaling == "fixed":
        return None
    if not np.isfinite(image).all():
        raise CaseError("image has pixels that are no numbers (NaN or infinite); mend the file", stage="prepare")
    mean, std = [], []
    for number, channel in enumerate(image):
        seen = channel[channel != 0].astype(np.float64)
        if not seen.size or seen.min() == seen.max():
            raise ConstantChannelError(number, f"channel {number + 1} of {len(image)}")
        mean.append(float(seen.mean()))
        std.append(float(seen.std()))
    return Statistics(tuple(mean), tuple(std))


def prepared(
    image: Image, wanted: Preprocessing, statistics: Statistics | None = None
) -> Float[Tensor, "channel *space"]:
    """The image as the contract asks for it; scaled by its own statistics, where it has such, unless others are given.

    Pixels that are 0 stay 0 where images are scaled by their own statistics.
    """
    tensor = torch.as_tensor(image, dtype=torch.float32)
    if tensor.shape[0] not in {1, wanted.channels}:
        raise CaseError(f"image has {tensor.shape[0]} channels, the model expects {wanted.channels}", stage="prepare")
    if tensor.ndim - 1 != len(wanted.size):
        raise CaseError(f"image has {tensor.ndim - 1} axes, the model expects {len(wanted.size)}", stage="prepare")
    # scaled first, so that padding is the training set's mean grey, or 0 as the background
    if wanted.scaling == "fixed":
        scaled = _standardised(tensor.expand(wanted.channels, *tensor.shape[1:]), wanted)
    else:
        own = _standardised(tensor, statistics or statistics_of(image, wanted) or wanted)
        scaled = torch.where(tensor == 0, tensor, own).expand(wanted.channels, *tensor.shape[1:])
    return image_to_model(scaled, placed(image, wanted))


def _standardised(image: Tensor, by: Preprocessing | Statistics) -> Tensor:
    """The image less the mean, over the standard deviation."""
    axes = (-1,) + (1,) * (image.ndim - 1)
    mean, std = torch.tensor(by.mean).reshape(axes), torch.tensor(by.std).reshape(axes)
    return (image - mean) / std


def activated(logits: Logits, wanted: Preprocessing) -> Logits:
    """The probabilities that belong to the logits, as the contract says."""
    return logits.sigmoid() if wanted.activation == "sigmoid" else logits.softmax(-1)
