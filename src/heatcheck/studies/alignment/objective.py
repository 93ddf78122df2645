"""What a network of the alignment study minimises: the error of its predictions, and the distance of its maps.

L = BCE over the known labels + α · Σ over findings of the mean map loss of the images that have the finding and a mask.
A batch may go through the network in several passes. Every pass is weighted by the counts of the whole batch, and the
network is in evaluation mode, so that the passes add up to the loss and the gradient of one pass over the batch.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heatcheck.core.contracts import Method
from heatcheck.core.errors import InputError, ModelError
from heatcheck.core.geometry import MapGrid
from heatcheck.core.seeds import seed_for
from heatcheck.methods import METHODS
from heatcheck.methods.differentiable import backward, differentiable
from heatcheck.methods.lrp import Lrp
from heatcheck.models import NetworkClassifier, explained
from heatcheck.training import Machine
from heatcheck.training.batches import Batch
from heatcheck.training.map_loss import Direction, map_loss, widened
from heatcheck.training.objective import LossTerm, Means, ValidationBatch


@contextmanager
def smooth_activations(module: nn.Module, beta: float | None) -> Iterator[None]:
    """A block in which the network's ReLUs are softplus of this β; without a β nothing changes.

    A ReLU's second derivative is 0 everywhere, so that a loss on a gradient map says nothing about where it bends.
    """
    relus = (
        []
        if beta is None
        else [
            (part, name, child)
            for part in module.modules()
            for name, child in part.named_children()
            if isinstance(child, nn.ReLU | nn.ReLU6)
        ]
    )
    for part, name, child in relus:
        part._modules[name] = nn.Softplus(beta).train(child.training)  # type: ignore[arg-type]  # noqa: SLF001
    try:
        yield
    finally:
        for part, name, child in relus:
            part._modules[name] = child  # noqa: SLF001 - add_module would move it to the end


@dataclass(frozen=True, slots=True)
class AlignmentBatch:
    """Images with labels and masks; the findings are those of the network, in its order."""

    images: Float[Tensor, "batch channel *space"]
    labels: Float[Tensor, "batch finding"]  # neither 0 nor 1: unknown
    masks: Float[Tensor, "batch finding *grid"]  # on the grid of the method's maps
    marked: Bool[Tensor, "batch finding"]  # whether there is a mask
    numbers: Int[Tensor, " batch"]  # of the cases, for their random draws

    @property
    def shown(self) -> Bool[Tensor, "batch finding"]:
        """Where a map is needed: the finding is present and has a mask."""
        return (self.labels == 1) & self.marked


@dataclass(frozen=True)
class AlignmentObjective:
    """The objective of one network; without a weight of the maps, or without a method, it learns from labels alone.

    SmoothGrad and similar methods draw new noise for each case in every step: a network could fit noise that never
    changes. The draw is a function of the seed, the case and the step, so that an interrupted fit continues alike. In
    validation a case has the same noise at every check, or chance would choose the checkpoint.
    """

    classifier: NetworkClassifier  # of the module that is fitted
    targets: tuple[int, ...]  # the indices of the findings among its outputs
    method: Method | None = None
    direction: Direction = "align"
    alpha: float = 1.0
    at_once: int | None = None  # images per pass; None: the whole batch
    seed: int = 0
    softplus: float | None = None  # β of the softplus instead of ReLU in training; saved with its own activations
    stops_at_nan: bool = True

    def check(self, machine: Machine) -> None:
        """Refuse a model, method or machine with which the loss cannot be minimised."""
        if self.classifier.preprocessing.activation == "softmax":
            raise ModelError(
                f"the outputs of model {self.classifier.name} exclude each other (softmax); findings are aligned "
                "separately, so use a model with one sigmoid output per finding"
            )
        if self.method is not None:
            differentiable(self.method)
        if machine.precision == "16-mixed":
            raise InputError(
                "precision 16-mixed scales the loss, but the second of the two passes that differentiate maps is not "
                "scaled; use bf16-mixed or 32-true"
            )
        if machine.devices > 1:
            raise InputError("the gradients of maps are not shared between processes; use one device per network")

    def learn(self, means: Means, batch: Batch) -> float:
        """The loss of a batch; its gradient is added to the weights' `.grad`."""
        examples, module = self._examples(means, batch), self.classifier.module
        module.eval()  # BatchNorm keeps the statistics of the base, and there is no dropout
        with smooth_activations(module, self.softplus):
            loss = self._learn_labels(means, examples)
            for maps in self._map_passes(examples, means.step):
                loss += self._learn_maps(means, maps)
        return loss

    def judge(self, means: Means, batch: Batch) -> ValidationBatch:
        """The same loss as sums, so that it does not depend on how the data are cut into batches."""
        examples = self._examples(means, batch)
        with means.autocast():
            logits = torch.cat([self._logits(images) for images in self._cut(examples.images)])
        terms = [LossTerm(_errors(logits, examples.labels).sum().item(), _n_known(examples.labels))]
        sums = torch.zeros(len(self.targets), dtype=torch.float64)
        for maps in self._map_passes(examples, None):
            with self._map_precision(means):
                batch_maps = self._method(explained(self.classifier), maps.images, maps.targets, maps.seeds)
            losses = map_loss(batch_maps.values, maps.masks, self.direction)[:, 0]
            sums.index_add_(0, maps.findings.cpu(), self.alpha * losses.double().cpu())
        if self._makes_maps:
            terms += map(LossTerm, sums.tolist(), examples.shown.sum(0).tolist())
        return ValidationBatch(tuple(terms), logits.cpu(), examples.labels.cpu())

    @property
    def _makes_maps(self) -> bool:
        return self.method is not None and self.alpha > 0

    @property
    def _method(self) -> Method:
        if self.method is None:
            raise ValueError("a control has no method")
        return self.method

    def _examples(self, means: Means, batch: Batch) -> AlignmentBatch:
        if self.classifier.module not in (means.network, getattr(means.network, "module", None)):
            raise ValueError("the objective's classifier must hold the module that is fitted")
        examples = AlignmentBatch(*batch)
        if examples.labels.shape[1:] != (len(self.targets),) or examples.marked.shape != examples.labels.shape:
            raise ValueError(
                f"labels and marks must have a column for each of {len(self.targets)} findings, got "
                f"{tuple(examples.labels.shape)} and {tuple(examples.marked.shape)}"
            )
        return examples

    def _cut(self, tensor: Tensor) -> tuple[Tensor, ...]:
        return torch.split(tensor, self.at_once or max(1, len(tensor)))

    def _logits(self, images: Tensor) -> Float[Tensor, "batch finding"]:
        return widened(self.classifier.logits(images)[:, list(self.targets)])

    def _learn_labels(self, means: Means, examples: AlignmentBatch) -> float:
        total, count = 0.0, max(1, _n_known(examples.labels))
        for images, labels in zip(self._cut(examples.images), self._cut(examples.labels), strict=True):
            with means.autocast():
                logits = self._logits(images)
            loss = _errors(logits, labels).sum() / count
            means.backward(loss)
            total += loss.item()
        return total

    def _learn_maps(self, means: Means, maps: "_MapPass") -> float:
        def loss(values: Float[Tensor, "map 1 channel *grid"]) -> Float[Tensor, ""]:
            losses = map_loss(values, maps.masks, self.direction)[:, 0]
            return (losses * losses.new_tensor(maps.weights)).sum()

        with self._map_precision(means):
            inputs = (maps.images, maps.targets, maps.seeds)
            value, _ = backward(self._method, explained(self.classifier), inputs, loss)
        return value.item()

    def _map_precision(self, means: Means) -> AbstractContextManager[Any]:
        """The fit's precision, but full precision for LRP, which divides by sums that may be near 0."""
        return nullcontext() if isinstance(self.method, Lrp) else means.autocast()

    def _map_passes(self, examples: AlignmentBatch, step: int | None) -> Iterator["_MapPass"]:
        """The maps that the loss needs, pass by pass; `step` is None in validation."""
        counts = examples.shown.sum(0)
        if not (self._makes_maps and counts.any()):
            return
        for pairs in self._cut(examples.shown.nonzero()):
            cases, findings = pairs.unbind(1)
            yield _MapPass(
                images=examples.images[cases],
                findings=findings,
                targets=torch.tensor(self.targets, device=findings.device)[findings][:, None],
                masks=examples.masks[cases, findings][:, None],
                weights=[self.alpha / count for count in counts[findings].tolist()],
                seeds=[self._seed(number, step) for number in examples.numbers[cases].tolist()],
            )

    def _seed(self, number: int, step: int | None) -> int:
        return seed_for(self.seed, number, "map", "judged" if step is None else step)


@dataclass(frozen=True, slots=True)
class _MapPass:
    """Pairs of an image and a finding whose maps are made in one pass."""

    images: Float[Tensor, "map channel *space"]
    findings: Int[Tensor, " map"]
    targets: Int[Tensor, "map 1"]
    masks: Float[Tensor, "map 1 *grid"]
    weights: list[float]  # in the loss of the whole batch
    seeds: list[int]


def map_grid(method: Method, classifier: NetworkClassifier) -> MapGrid:
    """The grid of the method's maps: that of the model's input, or of a feature map."""
    trial = next((facts.trial for facts in METHODS.values() if facts.settings is type(method)), {})
    cheap: Any = replace(method, **trial) if trial else method  # type: ignore[type-var]
    wanted = classifier.preprocessing
    image = torch.zeros(1, wanted.channels, *wanted.size, device=classifier.device)
    maps = cheap(explained(classifier), image, torch.zeros(1, 1, dtype=torch.long, device=image.device), [0])
    return MapGrid(tuple(maps.values.shape[3:]), maps.cells)


def _n_known(labels: Float[Tensor, "batch finding"]) -> int:
    return int(((labels == 0) | (labels == 1)).sum())


def _errors(
    logits: Float[Tensor, "batch finding"], labels: Float[Tensor, "batch finding"]
) -> Float[Tensor, "batch finding"]:
    """The binary cross-entropy of each known label, 0 for the others."""
    known = (labels == 0) | (labels == 1)
    truth = labels.to(logits).where(known, 0)
    return functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").where(known, 0)
