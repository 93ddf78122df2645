"""Losses for labels that may be unknown or uncertain.

Findings that can occur together have a label each, and there are four strategies for uncertain ones; of classes that
exclude one another exactly one is present.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from heatcheck.core.records import UNCERTAIN
from heatcheck.core.registry import Registry

Labels = Float[Tensor, "batch finding"]  # 1 present, 0 absent, −1 uncertain, NaN unknown
Answers = Float[Tensor, "batch answer"]  # one number per finding, or three
Loss = Callable[[Answers, Labels], Float[Tensor, ""]]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to learn from labels, and what the answers of the trained network mean."""

    name: str
    summary: str
    loss: Loss
    head: Literal["binary", "three_class"] = "binary"  # what the network answers for each finding
    activation: Literal["sigmoid", "softmax"] = "sigmoid"  # separate findings, or classes that exclude one another
    uncertain: float = math.nan  # what an uncertain label counts as; NaN: as neither present nor absent

    def learned(self, labels: Labels) -> Labels:
        """The labels as the network learns them: present, absent, or NaN."""
        return torch.where(labels == UNCERTAIN, self.uncertain, labels)


def masked_cross_entropy(
    logits: Float[Tensor, "batch output"], labels: Float[Tensor, "batch output"]
) -> Float[Tensor, ""]:
    """The mean binary cross-entropy over the labels that are known; 0 when none is."""
    known = labels.isfinite()
    losses = functional.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), reduction="none")
    return (losses * known).sum() / known.sum().clamp(min=1)


def three_class_cross_entropy(
    logits: Float[Tensor, "batch answer"], labels: Float[Tensor, "batch finding"]
) -> Float[Tensor, ""]:
    """The mean cross-entropy over negative, positive and uncertain, of the labels that are known; 0 when none is.

    Each finding has three logits in this order, side by side.
    """
    known = labels.isfinite()
    classes = torch.where(labels == UNCERTAIN, 2.0, labels).nan_to_num().long()
    losses = functional.cross_entropy(logits.reshape(len(logits), -1, 3).transpose(1, 2), classes, reduction="none")
    return (losses * known).sum() / known.sum().clamp(min=1)


def single_label_cross_entropy(
    logits: Float[Tensor, "batch class"], labels: Float[Tensor, "batch class"]
) -> Float[Tensor, ""]:
    """The mean cross-entropy over the images whose one class is known; 0 when there is none.

    An image with an unknown or uncertain label, with no class or with several is ignored.
    """
    known = one_hot(labels)
    losses = functional.cross_entropy(logits, labels.argmax(1), reduction="none")
    return losses.where(known, 0).sum() / known.sum().clamp(min=1)


def one_hot(labels: Labels) -> Bool[Tensor, " batch"]:
    """Which rows mark exactly one class as present and all others as absent."""
    return ((labels == 0) | (labels == 1)).all(1) & (labels.sum(1) == 1)


def _with_uncertain_as(value: float) -> Loss:
    def loss(logits: Answers, labels: Labels) -> Float[Tensor, ""]:
        return masked_cross_entropy(logits, torch.where(labels == UNCERTAIN, value, labels))

    return loss


STRATEGIES: Registry[Strategy] = Registry("label strategy")
for _one in (
    Strategy("ignore", "uncertain labels are ignored", _with_uncertain_as(torch.nan)),
    Strategy("zeros", "uncertain counts as absent", _with_uncertain_as(0.0), uncertain=0.0),
    Strategy("ones", "uncertain counts as present", _with_uncertain_as(1.0), uncertain=1.0),
    Strategy("three_class", "uncertain is a class of its own", three_class_cross_entropy, "three_class"),
    Strategy("single_label", "one class excludes the others", single_label_cross_entropy, activation="softmax"),
):
    STRATEGIES.add(_one.name, _one)
