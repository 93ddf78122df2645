"""A model of which only predictions are available: a function, a service, a network in another framework."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from heatcheck.core.answer_shapes import remedy_for_answers
from heatcheck.core.errors import ModelError
from heatcheck.core.geometry import Placement
from heatcheck.core.records import Image
from heatcheck.core.tensors import Images, Logits
from heatcheck.models.classifier import activated, placed, prepared
from heatcheck.models.contract import Preprocessing

SMALLEST = 1e-6  # probabilities are kept this far from 0 and 1, where logits are infinite


@dataclass(frozen=True)
class BlackBox:
    """A function from a batch of prepared images to scores [image, output], as a classifier of named findings."""

    name: str
    predict: Callable[[Images], torch.Tensor | np.ndarray]
    preprocessing: Preprocessing
    returns: Literal["logits", "probabilities"] = "logits"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The findings, in the order of the scores."""
        return self.preprocessing.outputs

    @property
    def module(self) -> nn.Module:
        """Refused: only predictions are available."""
        raise ModelError(
            f"{self.name} is known by its predictions only, and this method looks inside the network; "
            "use one that needs predictions only (see `heatcheck list methods`)"
        )

    def placement(self, image: Image) -> Placement:
        """Where the image lies on the model's grid."""
        return placed(image, self.preprocessing)

    def prepare(self, images: Sequence[Image]) -> Images:
        """The images on the model's grid, normalised."""
        return torch.stack([prepared(image, self.preprocessing) for image in images])

    def logits(self, images: Images) -> Logits:
        """One logit per image and output; from probabilities, the logits that belong to them."""
        scores = torch.as_tensor(self.predict(images)).to(images)
        shape = tuple(scores.shape)
        if shape != (len(images), len(self.outputs)):
            raise ModelError(
                f"{self.name} must give {len(self.outputs)} scores for each of {len(images)} images, got an array of "
                f"shape {shape}; {remedy_for_answers(shape, len(images), len(self.outputs))}"
            )
        if self.returns == "logits":
            return scores
        if scores.min() < 0 or scores.max() > 1:
            raise ModelError(
                f"{self.name} gives scores outside 0 to 1, which are not probabilities; set `returns` to `logits`"
            )
        clamped = scores.clamp(SMALLEST, 1 - SMALLEST)
        return clamped.logit() if self.preprocessing.activation == "sigmoid" else clamped.log()

    def probabilities(self, logits: Logits) -> Logits:
        """The probabilities that belong to the logits, as the contract says."""
        return activated(logits, self.preprocessing)
