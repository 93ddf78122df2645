"""The fit loop: the same seed on the same machine gives the same weights, and a stopped fit goes on where it was."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from heatcheck.core.errors import InputError, ModelError
from heatcheck.core.seeds import generator_for, seed_for
from heatcheck.training.labels import masked_cross_entropy

Examples = Dataset[tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How a network is trained."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    warm_up: float = 0.15  # share of the steps in which the learning rate rises
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the training data achieved."""

    epoch: int
    training_loss: float
    validation_loss: float


class _Order:
    """The order in which one epoch visits the examples."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.seed, self.epoch = length, seed, 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        order: np.ndarray = generator_for(self.seed, self.epoch, "order").permutation(self.length)
        return iter(order.tolist())


def fit(
    module: nn.Module,
    data: tuple[Examples, Examples],
    settings: FitSettings,
    state_file: Path,
    tick: Callable[[int, int, float], None],
) -> list[Epoch]:
    """The history of the fit; the module ends with the weights of the best epoch on the validation data.

    `data` are the training and the validation examples; `state_file` keeps everything after each epoch, so that a
    stopped fit continues; `tick(step, steps, loss)` is called after each step.
    """
    fabric = Fabric(accelerator=torch.device(settings.device).type, devices=1)
    order = _Order(len(data[0]), settings.seed)  # type: ignore[arg-type]
    training = DataLoader(data[0], settings.batch_size, sampler=order, drop_last=True)
    if not len(training):
        raise InputError(f"{len(order)} examples do not fill a batch of {settings.batch_size}; lower the batch size")
    validation = DataLoader(data[1], settings.batch_size)
    optimizer = torch.optim.AdamW(_groups(module, settings.weight_decay), lr=settings.learning_rate)
    network, optimizer = fabric.setup(module, optimizer)
    training, validation = fabric.setup_dataloaders(training, validation)
    state: dict[str, Any] = {"network": network, "optimizer": optimizer, "history": [], "best": {}}
    if state_file.exists():
        # everything in the file is a tensor, a number or a list of them: nothing executable is loaded
        fabric.load(state_file, state, weights_only=True)
    steps = settings.epochs * len(training)
    for epoch in range(len(state["history"]), settings.epochs):
        order.epoch = epoch
        with torch.random.fork_rng():
            torch.manual_seed(seed_for(settings.seed, epoch, "dropout"))
            loss = _train(fabric, network, optimizer, training, _Schedule(settings, epoch * len(training), steps), tick)
            done = Epoch(epoch, loss, _validate(network, validation))
        losses = [past["validation_loss"] for past in state["history"] if math.isfinite(past["validation_loss"])]
        if done.validation_loss <= min(losses, default=math.inf):
            state["best"] = {name: value.detach().clone() for name, value in module.state_dict().items()}
        state["history"].append(asdict(done))
        temporary = state_file.with_suffix(".tmp")
        fabric.save(temporary, state)
        temporary.replace(state_file)
    if not state["best"]:
        raise ModelError("the loss was never a number; lower the learning rate")
    module.load_state_dict(state["best"])
    module.eval()
    return [Epoch(**past) for past in state["history"]]


def _groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Weights that decay, and biases and normalisation that do not."""
    matrices = [p for p in module.parameters() if p.ndim > 1]
    vectors = [p for p in module.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


@dataclass(frozen=True, slots=True)
class _Schedule:
    """The learning rate at each step: a linear rise, then half a cosine."""

    settings: FitSettings
    first: int
    steps: int

    def rate(self, step: int) -> float:
        rise = max(1, round(self.settings.warm_up * self.steps))
        at = self.first + step
        if at < rise:
            return self.settings.learning_rate * (at + 1) / rise
        return self.settings.learning_rate * 0.5 * (1 + math.cos(math.pi * (at - rise) / max(1, self.steps - rise)))


def _train(
    fabric: Fabric,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Any,  # noqa: ANN401 - Fabric's loader has no public type
    schedule: _Schedule,
    tick: Callable[[int, int, float], None],
) -> float:
    network.train()
    total = 0.0
    for step, (images, labels) in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        optimizer.zero_grad(set_to_none=True)
        loss = masked_cross_entropy(network(images), labels)
        fabric.backward(loss)
        fabric.clip_gradients(network, optimizer, max_norm=2.0)
        optimizer.step()
        total += loss.item()
        tick(schedule.first + step + 1, schedule.steps, loss.item())
    return total / max(1, len(batches))


@torch.no_grad()
def _validate(network: nn.Module, batches: Any) -> float:  # noqa: ANN401 - Fabric's loader has no public type
    network.eval()
    losses = [(masked_cross_entropy(network(images), labels).item(), len(images)) for images, labels in batches]
    return sum(loss * n for loss, n in losses) / sum(n for _, n in losses)
