"""A network with its preprocessing, as a classifier."""

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
    is_random: bool = False  # the user's function returns other weights at every call: nobody trained them

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
        """One logit per image and output; for a three-class head, the log-odds of positive against negative."""
        return log_odds(self.module(images), self.preprocessing)

    def probabilities(self, logits: Logits) -> Logits:
        """Sigmoid or softmax of the logits, as the contract says."""
        return activated(logits, self.preprocessing)


@dataclass(frozen=True)
class PositiveLogits:
    """A classifier with three classes per finding, as methods explain it: by its positive logits."""

    classifier: NetworkClassifier

    @property
    def name(self) -> str:
        """That of the classifier."""
        return self.classifier.name

    @property
    def outputs(self) -> tuple[str, ...]:
        """The findings, in the order of the logits."""
        return self.classifier.outputs

    @property
    def module(self) -> nn.Module:
        """The complete network, so that its layers keep their names."""
        return self.classifier.module

    def placement(self, image: Image) -> Placement:
        """Where the image lies on the model's grid."""
        return self.classifier.placement(image)

    def prepare(self, images: Sequence[Image]) -> Images:
        """The images on the model's grid, normalised, on the model's device."""
        return self.classifier.prepare(images)

    def logits(self, images: Images) -> Logits:
        """The positive logit of each image and output."""
        answers: Tensor = self.module(images)
        return answers[:, 1::3]

    def probabilities(self, logits: Logits) -> Logits:  # noqa: ARG002 - never computed
        """Refused: the positive logit alone does not say how probable the finding is."""
        raise TypeError(
            f"positive logits of {self.name} give no probabilities; use the classifier they were taken from"
        )


def explained(classifier: Classifier) -> Classifier:
    """The classifier with the logits that maps explain: its own, or the positive ones of a three-class head."""
    if isinstance(classifier, NetworkClassifier) and classifier.preprocessing.head == "three_class":
        return PositiveLogits(classifier)
    return classifier


def log_odds(answers: Float[Tensor, "batch answer"], contract: Preprocessing) -> Logits:
    """One logit per finding from the network's answers; its sigmoid is the softmax over negative and positive."""
    return answers[:, 1::3] - answers[:, 0::3] if contract.head == "three_class" else answers


def placed(image: Image, contract: Preprocessing) -> Placement:
    """Where the image lies on the grid that the contract asks for."""
    return place(tuple(image.shape[1:]), contract.size, contract.fit)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean and standard deviation of each channel of one image, over its pixels that are not 0."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


def statistics_of(image: Image, contract: Preprocessing) -> Statistics | None:
    """The statistics that the image is scaled by; None where the contract scales all images alike.

    Copies of an image with covered parts are prepared with the statistics of the intact image.
    """
    if contract.scaling == "fixed":
        return None
    if not np.isfinite(image).all():
        raise CaseError("image has pixels that are not numbers (NaN or infinite); repair the file", stage="prepare")
    mean, std = [], []
    for index, channel in enumerate(image):
        nonzero = channel[channel != 0].astype(np.float64)
        if not nonzero.size or nonzero.min() == nonzero.max():
            raise ConstantChannelError(index, f"channel {index + 1} of {len(image)}")
        mean.append(float(nonzero.mean()))
        std.append(float(nonzero.std()))
    return Statistics(tuple(mean), tuple(std))


def prepared(
    image: Image, contract: Preprocessing, statistics: Statistics | None = None
) -> Float[Tensor, "channel *space"]:
    """The image as the contract asks for it; `statistics` replace the image's own where it is scaled by them.

    Where images are scaled by their own statistics, pixels that are 0 stay 0.
    """
    tensor = torch.as_tensor(image, dtype=torch.float32)
    if tensor.shape[0] not in {1, contract.channels}:
        raise CaseError(f"image has {tensor.shape[0]} channels, the model expects {contract.channels}", stage="prepare")
    if tensor.ndim - 1 != len(contract.size):
        raise CaseError(f"image has {tensor.ndim - 1} axes, the model expects {len(contract.size)}", stage="prepare")
    # scaled first, so that padding is the training set's mean grey, or 0 as the background
    if contract.scaling == "fixed":
        scaled = _standardised(tensor.expand(contract.channels, *tensor.shape[1:]), contract)
    else:
        standardised = _standardised(tensor, statistics or statistics_of(image, contract) or contract)
        scaled = torch.where(tensor == 0, tensor, standardised).expand(contract.channels, *tensor.shape[1:])
    return image_to_model(scaled, placed(image, contract))


def _standardised(image: Tensor, by: Preprocessing | Statistics) -> Tensor:
    """The image minus the mean, divided by the standard deviation."""
    axes = (-1,) + (1,) * (image.ndim - 1)
    mean, std = torch.tensor(by.mean).reshape(axes), torch.tensor(by.std).reshape(axes)
    return (image - mean) / std


def activated(logits: Logits, contract: Preprocessing) -> Logits:
    """The probabilities that belong to the logits, as the contract says."""
    return logits.sigmoid() if contract.activation == "sigmoid" else logits.softmax(-1)
