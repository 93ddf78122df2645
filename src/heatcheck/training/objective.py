"""What a fit minimises; the fit itself knows only steps, checks and checkpoints."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from jaxtyping import Float
from torch import Tensor, nn

from heatcheck.training.batches import Batch
from heatcheck.training.labels import STRATEGIES
from heatcheck.training.machine import Machine


@dataclass(frozen=True, slots=True)
class Means:
    """What the fit supplies to an objective."""

    network: nn.Module  # in training wrapped for all processes and the fit's precision; in evaluation bare
    step: int  # steps done before this one
    backward: Callable[[Tensor], None]
    autocast: Callable[[], AbstractContextManager[Any]]  # the fit's precision for whatever else is computed


@dataclass(frozen=True, slots=True)
class LossTerm:
    """A term of the loss on validation data, as a sum and a count; the loss is the sum of the terms' means."""

    total: float
    count: int


@dataclass(frozen=True, slots=True)
class ValidationBatch:
    """The results for one batch of the validation data."""

    terms: tuple[LossTerm, ...]  # the same number for every batch
    answers: Float[Tensor, "batch answer"]
    labels: Float[Tensor, "batch finding"]


class Objective(Protocol):
    """A loss, with the pass through the network that it needs; it can be sent to another process."""

    @property
    def stops_at_nan(self) -> bool:
        """Whether a loss or gradient that is not finite ends the fit at once."""

    def check(self, machine: Machine) -> None:
        """Raise an InputError if this cannot be learned on the machine."""

    def learn(self, means: Means, batch: Batch) -> float:
        """The loss of a batch; its gradient is added to the weights' `.grad`."""

    def judge(self, means: Means, batch: Batch) -> ValidationBatch:
        """The same loss on validation data, for a network in evaluation mode and without a graph."""


def mean_loss(judged: Sequence[ValidationBatch]) -> float:
    """The loss over all batches; a term with a count of 0 adds 0."""
    parts = zip(*(one.terms for one in judged), strict=True)
    return sum(sum(term.total for term in part) / max(1, sum(term.count for term in part)) for part in parts)


@dataclass(frozen=True, slots=True)
class LabelObjective:
    """Learning from labels alone, by one of the label strategies."""

    strategy: str = "ignore"
    stops_at_nan: bool = False

    def check(self, machine: Machine) -> None:
        """Any machine can be used."""

    def learn(self, means: Means, batch: Batch) -> float:
        """The loss of the network's answers, with BatchNorm and dropout in training mode."""
        images, labels = batch
        means.network.train()
        loss = STRATEGIES[self.strategy].loss(means.network(images), labels)
        means.backward(loss)
        return loss.item()

    def judge(self, means: Means, batch: Batch) -> ValidationBatch:
        """The loss of the answers, weighted by the number of images."""
        images, labels = batch
        with means.autocast():
            answers: Tensor = means.network(images)
        loss = STRATEGIES[self.strategy].loss(answers.float(), labels).item()
        return ValidationBatch((LossTerm(loss * len(images), len(images)),), answers.float().cpu(), labels.cpu())
