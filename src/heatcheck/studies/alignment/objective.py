"""What a network of the alignment study minimises: the error of its predictions, and the distance of its maps.

L = BCE over the known labels + α · Σ over findings of the mean map loss of the images that have the finding and a mask.
A batch may go through the network in several passes: every pass is weighted by the counts of the whole batch, and the
network is in evaluation mode, so that the passes add up to the loss and the gradient of the batch at once.
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
    """A block in which the network's ReLUs are softplus of this β; a network without any, or no β, changes nothing.

    A ReLU's second derivative is 0 everywhere, so that a loss on a gradient map says nothing about where it bends.
    """
    found = [] if beta is None else [(part, name, child) for part, name, child in _children(module) if _is_relu(child)]
    for part, name, child in found:
        part._modules[name] = nn.Softplus(beta).train(child.training)  # type: ignore[arg-type]  # noqa: SLF001
    try:
        yield
    finally:
        for part, name, child in found:
            part._modules[name] = child  # noqa: SLF001 - add_module would move it to the end


def _children(module: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    return [(part, name, child) for part in module.modules() for name, child in part.named_children()]


def _is_relu(module: nn.Module) -> bool:
    return isinstance(module, nn.ReLU | nn.ReLU6)


@dataclass(frozen=True, slots=True)
class AlignmentBatch:
    """What an example of the study holds besides the image; a finding is one of the network's own, in its order."""

    images: Float[Tensor, "batch channel *space"]
    labels: Float[Tensor, "batch finding"]  # whatever is neither 0 nor 1 is unknown
    masks: Float[Tensor, "batch finding *grid"]  # on the grid of the method's maps
    marked: Bool[Tensor, "batch finding"]  # whether there is a mask
    numbers: Int[Tensor, " batch"]  # a number of the case's own, from which its chance is drawn

    @property
    def shown(self) -> Bool[Tensor, "batch finding"]:
        """Where a map is asked for: the finding is there, and somebody outlined it."""
        return (self.labels == 1) & self.marked


@dataclass(frozen=True)
class AlignmentObjective:
    """The objective of one network; without weight of the maps, or without a method, labels alone teach it.

    SmoothGrad and its like draw anew for each case in every step: with noise that never changes a network could fit the
    noise. The draw is a function of the seed, the case and the step, so that a stopped fit goes on alike. When the
    network is judged, a case has the same noise at every check, or chance would choose the checkpoint.
    """

    classifier: NetworkClassifier  # of the module that is fitted
    targets: tuple[int, ...]  # the findings' places among its outputs
    method: Method | None = None
    direction: Direction = "align"
    alpha: float = 1.0
    at_once: int | None = None  # images of one pass; None: the whole batch
    seed: int = 0
    softplus: float | None = None  # β of the activations while learning; the network is judged and kept as it is
    stops_at_nan: bool = True

    def check(self, machine: Machine) -> None:
        """Refuse what cannot be learned: a method without second derivatives, or a machine without the arithmetic."""
        if self.classifier.preprocessing.activation == "softmax":
            raise ModelError(
                f"model {self.classifier.name} tells classes that exclude one another; the alignment study needs a "
                "model in which every finding has a probability of its own"
            )
        if self.method is not None:
            differentiable(self.method)
        if machine.precision == "16-mixed":
            raise InputError(
                "precision 16-mixed scales the loss, and maps are differentiated in two passes of which the second "
                "knows nothing of it; use bf16-mixed or 32-true"
            )
        if machine.devices > 1:
            raise InputError("the gradients of maps are not shared by processes; use one device a network")

    def learn(self, means: Means, batch: Batch) -> float:
        """The loss of a batch; its gradient is added to the weights' `.grad`."""
        asked, module = self._batch(means, batch), self.classifier.module
        module.eval()  # BatchNorm's statistics and dropout stay the base's
        with smooth_activations(module, self.softplus):
            loss = self._learn_labels(means, asked)
            for part in self._map_passes(asked, means.step):
                loss += self._learn_maps(means, part)
        return loss

    def judge(self, means: Means, batch: Batch) -> ValidationBatch:
        """The same loss as sums, so that it does not depend on how the data are cut into batches."""
        asked = self._batch(means, batch)
        with means.autocast():
            said = torch.cat([self._logits(images) for images in self._cut(asked.images)])
        terms = [LossTerm(_errors(said, asked.labels).sum().item(), _known(asked.labels))]
        sums = torch.zeros(len(self.targets), dtype=torch.float64)
        for part in self._map_passes(asked, None):
            with self._map_precision(means):
                made = self._method(explained(self.classifier), part.images, part.targets, part.seeds)
            losses = map_loss(made.values, part.masks, self.direction)[:, 0]
            sums.index_add_(0, part.findings.cpu(), self.alpha * losses.double().cpu())
        if self._makes_maps:
            terms += map(LossTerm, sums.tolist(), asked.shown.sum(0).tolist())
        return ValidationBatch(tuple(terms), said.cpu(), asked.labels.cpu())

    @property
    def _makes_maps(self) -> bool:
        return self.method is not None and self.alpha > 0

    @property
    def _method(self) -> Method:
        if self.method is None:
            raise ValueError("a control has no method")
        return self.method

    def _batch(self, means: Means, batch: Batch) -> AlignmentBatch:
        if self.classifier.module not in (means.network, getattr(means.network, "module", None)):
            raise ValueError("the objective's classifier must hold the module that is fitted")
        asked = AlignmentBatch(*batch)
        if asked.labels.shape[1:] != (len(self.targets),) or asked.marked.shape != asked.labels.shape:
            raise ValueError(
                f"labels and marks must have a column for each of {len(self.targets)} findings, got "
                f"{tuple(asked.labels.shape)} and {tuple(asked.marked.shape)}"
            )
        return asked

    def _cut(self, tensor: Tensor) -> tuple[Tensor, ...]:
        return torch.split(tensor, self.at_once or max(1, len(tensor)))

    def _logits(self, images: Tensor) -> Float[Tensor, "batch finding"]:
        return widened(self.classifier.logits(images)[:, list(self.targets)])

    def _learn_labels(self, means: Means, asked: AlignmentBatch) -> float:
        total, count = 0.0, max(1, _known(asked.labels))
        for images, labels in zip(self._cut(asked.images), self._cut(asked.labels), strict=True):
            with means.autocast():
                said = self._logits(images)
            loss = _errors(said, labels).sum() / count
            means.backward(loss)
            total += loss.item()
        return total

    def _learn_maps(self, means: Means, part: "_MapPass") -> float:
        def loss(values: Float[Tensor, "map 1 channel *grid"]) -> Float[Tensor, ""]:
            losses = map_loss(values, part.masks, self.direction)[:, 0]
            return (losses * losses.new_tensor(part.weights)).sum()

        with self._map_precision(means):
            inputs = (part.images, part.targets, part.seeds)
            value, _ = backward(self._method, explained(self.classifier), inputs, loss)
        return value.item()

    def _map_precision(self, means: Means) -> AbstractContextManager[Any]:
        """The fit's precision; LRP divides by sums that may be near 0, for which half has too few digits."""
        return nullcontext() if isinstance(self.method, Lrp) else means.autocast()

    def _map_passes(self, asked: AlignmentBatch, step: int | None) -> Iterator["_MapPass"]:
        """The maps that the loss asks for, some at a time; `step` is None when the network is judged."""
        if not self._makes_maps:
            return
        counts = asked.shown.sum(0)
        if not counts.any():
            return
        for pairs in self._cut(asked.shown.nonzero()):
            cases, findings = pairs.unbind(1)
            yield _MapPass(
                images=asked.images[cases],
                findings=findings,
                targets=torch.tensor(self.targets, device=findings.device)[findings][:, None],
                masks=asked.masks[cases, findings][:, None],
                weights=[self.alpha / count for count in counts[findings].tolist()],
                seeds=[self._seed(number, step) for number in asked.numbers[cases].tolist()],
            )

    def _seed(self, number: int, step: int | None) -> int:
        return seed_for(self.seed, number, "map", "judged" if step is None else step)


@dataclass(frozen=True, slots=True)
class _MapPass:
    """Pairs of an image and a finding whose maps are made together."""

    images: Float[Tensor, "map channel *space"]
    findings: Int[Tensor, " map"]
    targets: Int[Tensor, "map 1"]
    masks: Float[Tensor, "map 1 *grid"]
    weights: list[float]  # in the loss of the whole batch
    seeds: list[int]


def map_grid(method: Method, classifier: NetworkClassifier) -> tuple[int, ...]:
    """The grid of the method's maps, on which masks must be: the model's own, or that of a feature map."""
    trial = next((facts.trial for facts in METHODS.values() if facts.settings is type(method)), {})
    cheap: Any = replace(method, **trial) if trial else method  # type: ignore[type-var]
    wanted = classifier.preprocessing
    image = torch.zeros(1, wanted.channels, *wanted.size, device=classifier.device)
    made = cheap(explained(classifier), image, torch.zeros(1, 1, dtype=torch.long, device=image.device), [0])
    return tuple(made.values.shape[3:])


def _known(labels: Float[Tensor, "batch finding"]) -> int:
    """How many labels are known."""
    return int(((labels == 0) | (labels == 1)).sum())


def _errors(
    logits: Float[Tensor, "batch finding"], labels: Float[Tensor, "batch finding"]
) -> Float[Tensor, "batch finding"]:
    """The binary cross-entropy of each known label, 0 for the others."""
    known = (labels == 0) | (labels == 1)
    truth = labels.to(logits).where(known, 0)
    return functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").where(known, 0)
