"""What a fit minimises; the fit itself only knows steps, checks and what to keep."""

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
    """What an objective works with."""

    network: nn.Module  # while learning as the processes share it, with the fit's precision; while judging by itself
    step: int  # steps done before this one
    backward: Callable[[Tensor], None]
    autocast: Callable[[], AbstractContextManager[Any]]  # the fit's precision for whatever else is computed


@dataclass(frozen=True, slots=True)
class LossTerm:
    """A part of the loss on some validation data: a sum, and over how many things; the parts' means are added."""

    total: float
    count: int


@dataclass(frozen=True, slots=True)
class ValidationBatch:
    """What the network makes of one batch of the validation data."""

    terms: tuple[LossTerm, ...]  # as many for every batch
    answers: Float[Tensor, "batch answer"]
    labels: Float[Tensor, "batch finding"]


class Objective(Protocol):
    """A loss, with the pass through the network that it needs; it can be sent to another process."""

    @property
    def stops_at_nan(self) -> bool:
        """Whether a loss or a gradient that is no number ends the fit at once."""

    def check(self, machine: Machine) -> None:
        """Nothing, or an InputError that says why this cannot be learned on the machine."""

    def learn(self, means: Means, batch: Batch) -> float:
        """The loss of a batch; its gradient is added to the weights' `.grad`."""

    def judge(self, means: Means, batch: Batch) -> ValidationBatch:
        """The same loss of validation data, of a network in evaluation mode; asked without a graph."""


def mean_loss(judged: Sequence[ValidationBatch]) -> float:
    """The loss over all batches; a part of which nothing was seen counts 0."""
    parts = zip(*(one.terms for one in judged), strict=True)
    return sum(sum(term.total for term in part) / max(1, sum(term.count for term in part)) for part in parts)


@dataclass(frozen=True, slots=True)
class LabelObjective:
    """Learning from labels alone, by one of the label strategies."""

    strategy: str = "ignore"
    stops_at_nan: bool = False

    def check(self, machine: Machine) -> None:
        """Every machine will do."""

    def learn(self, means: Means, batch: Batch) -> float:
        """The loss of the network's answers, with BatchNorm and dropout at work."""
        images, labels = batch
        means.network.train()
        loss = STRATEGIES[self.strategy].loss(means.network(images), labels)
        means.backward(loss)
        return loss.item()

    def judge(self, means: Means, batch: Batch) -> ValidationBatch:
        """The loss of the answers, each batch weighted by its images."""
        images, labels = batch
        with means.autocast():
            said: Tensor = means.network(images)
        loss = STRATEGIES[self.strategy].loss(said.float(), labels).item()
        return ValidationBatch((LossTerm(loss * len(images), len(images)),), said.float().cpu(), labels.cpu())
