"""The fit loop: the same seed on the same machine gives the same weights, and a stopped fit can be continued.

The weights, the optimizer and the history are saved after each check. Orders and dropout follow from the seed and the
number of the step, so that nothing else needs to be saved.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from heatcheck.core.errors import DivergedError, InputError, ModelError
from heatcheck.core.seeds import generator_for, seed_for
from heatcheck.training.batches import Batch, Batches, Classes, Examples, readable, unreadable
from heatcheck.training.hiding import hiding, shown_channels
from heatcheck.training.machine import Machine, Tick, run_on
from heatcheck.training.objective import Means, Objective, ValidationBatch, mean_loss
from heatcheck.training.rotation import rotated
from heatcheck.training.schedule import OPTIMIZERS, Pace, groups
from heatcheck.training.selection import Check, best_checks

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How a network is trained."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.0
    optimizer: str = "adamw"
    schedule: Literal["cosine", "constant"] = "cosine"
    warm_up: float = 0.15  # share of the steps
    warm_up_steps: int | None = None  # or how many
    rotate: float = 0.0  # training images are rotated by up to this many degrees
    hide: float = 0.0  # probability with which each channel of a training image is hidden
    clip: float | None = 2.0  # largest norm of the gradients
    balanced: bool = False  # all classes are drawn equally often
    check_every: int | None = None  # steps; None: at the end of each epoch
    seed: int = 0

    def pace(self, steps: int) -> Pace:
        """The learning rates of a fit of `steps` steps."""
        return Pace(self.learning_rate, steps, self.schedule, self.warm_up, self.warm_up_steps)


class Keeper(Protocol):
    """Evaluates the network and stores the checkpoints that are worth keeping."""

    @property
    def by(self) -> tuple[str, ...]:
        """The findings whose mean AUROC ranks checkpoints; if empty, the loss ranks them."""

    def judged(self, answers: Tensor, labels: Tensor) -> Mapping[str, float]:
        """The AUROC of each finding from the network's answers on the validation data."""

    def keep(self, history: Sequence[Check], module: nn.Module) -> None:
        """Store the newest weights if they are among the best, and remove those that no longer are."""


@dataclass(frozen=True)
class Job:
    """Everything one fit needs; it can be sent to another process."""

    module: nn.Module
    objective: Objective
    training: Examples
    validation: Examples
    settings: FitSettings
    state_file: Path
    keeper: Keeper
    save_every: float = 0.0  # seconds between two saves of the state, which is three times as large as the network
    classes: Classes | None = None  # of the training examples, for balanced settings

    @property
    def steps(self) -> int:
        """The number of steps of the fit."""
        return self.settings.epochs * len(self.batches())

    def batches(self, rank: int = 0, processes: int = 1) -> Batches:
        """The examples of each step; of each batch the share of one process."""
        settings = self.settings
        if settings.balanced and self.classes is None:
            raise InputError("`balanced` draws classes equally often, but these examples have none; leave it out")
        classes = self.classes if settings.balanced else None
        length = len(self.training)  # type: ignore[arg-type]
        return Batches(length, settings.batch_size, settings.seed, rank=rank, processes=processes, classes=classes)


def fit(job: Job, machine: Machine, tick: Tick) -> list[Check]:
    """The history of the fit; the keeper has stored the best weights.

    `tick(step, loss, auroc)` is called after each step with the newest AUROC, NaN before the first.
    """
    job.objective.check(machine)
    history = [Check(**check) for check in run_on(machine, _fit, job, tick)]
    if not best_checks(history, job.keeper.by, 1):
        kind = DivergedError if job.objective.stops_at_nan else ModelError
        raise kind("the loss was never a number; lower the learning rate")
    return history


def steps_done(state_file: Path) -> int:
    """The number of steps that a stopped fit has saved."""
    if not state_file.exists():
        return 0
    history = torch.load(state_file, map_location="cpu", weights_only=True)["history"]
    return int(history[-1]["step"]) if history else 0


def _fit(fabric: "Fabric", job: Job, machine: Machine, tick: Tick) -> list[dict[str, Any]]:
    """The fit as it runs in each process; its history as plain values, which can be sent between processes."""
    loop = _Loop(fabric, job, machine.workers, tick)
    devices = [fabric.device] if fabric.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        loop.run()
    return [asdict(check) for check in loop.history]


class _Loop:
    """A running fit."""

    def __init__(self, fabric: "Fabric", job: Job, workers: int, tick: Tick) -> None:
        settings = job.settings
        self.fabric, self.job, self.settings, self.tick = fabric, job, settings, tick
        self.batches = job.batches(fabric.global_rank, fabric.world_size)
        loader = DataLoader(job.training, batch_sampler=self.batches, num_workers=workers)
        self.training = fabric.setup_dataloaders(loader, use_distributed_sampler=False)
        self.validation = DataLoader(job.validation, settings.batch_size, num_workers=workers)
        optimizer = OPTIMIZERS[settings.optimizer](groups(job.module, settings.weight_decay), lr=settings.learning_rate)
        self.network, self.optimizer = fabric.setup(job.module, optimizer)
        self.pace = settings.pace(job.steps)
        self.losses: list[float] = []  # since the last check
        self.unreadable = 0  # images since the last check
        self.saved_at = time.monotonic()
        self.history = self._resumed()

    def _resumed(self) -> list[Check]:
        if not self.job.state_file.exists():
            return []
        state = self._state([])
        # everything in the file is a tensor, a number or a list of them: nothing executable is loaded
        self.fabric.load(self.job.state_file, state, weights_only=True)
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        return [Check(**past) for past in state["history"]]

    def _state(self, history: list[Check]) -> dict[str, Any]:
        return {
            "network": self.network,
            "optimizer": self.optimizer,
            "precision": self.fabric.strategy.precision.state_dict(),
            "history": [asdict(check) for check in history],
        }

    def run(self) -> None:
        """All remaining steps."""
        step = self.history[-1].step if self.history else 0
        for epoch in range(step // len(self.batches), self.settings.epochs):
            self.batches.epoch, self.batches.first = epoch, step - epoch * len(self.batches)
            for images, *more in self.training:
                self.unreadable += int(unreadable(images).sum())
                batch = self._hidden(step, self._rotated(step, _readable([images, *more])))
                self.losses.append(self._step(step, batch))
                step += 1
                loss = self.losses[-1]
                if self._is_due(step):
                    self._check(step, epoch)
                if self.fabric.is_global_zero:
                    self.tick(step, loss, self.history[-1].mean_auroc if self.history else float("nan"))

    def _is_due(self, step: int) -> bool:
        return step % (self.settings.check_every or len(self.batches)) == 0 or step == self.pace.steps

    def _summed(self, value: float) -> float:
        """The sum over all processes."""
        if self.fabric.world_size == 1:
            return value
        total = self.fabric.all_reduce(torch.tensor(value, dtype=torch.float64), reduce_op="sum")
        return float(total)  # type: ignore[arg-type]

    def _step(self, step: int, batch: Batch) -> float:
        torch.manual_seed(seed_for(self.settings.seed, step, self.fabric.global_rank, "dropout"))
        for group in self.optimizer.param_groups:
            group["lr"] = self.pace.rate_at(step)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.job.objective.learn(self._means(self.network, step), batch)
        self._require_number(loss, step)
        if self.settings.clip:
            strict = not self.job.objective.stops_at_nan  # else `_require_number` reports it
            norm = self.fabric.clip_gradients(
                self.network, self.optimizer, max_norm=self.settings.clip, error_if_nonfinite=strict
            )
            self._require_number(float(norm), step)  # type: ignore[arg-type]
        self.optimizer.step()
        return loss

    def _rotated(self, step: int, batch: Batch) -> Batch:
        """The batch with rotated images if `rotate` is set; the same for any number of processes."""
        largest = self.settings.rotate
        if not largest:
            return batch
        if len(batch) > 2:
            raise InputError("`rotate` turns images and not the masks that belong to them; leave it out")
        generator = generator_for(self.settings.seed, step, "rotation")
        angles = generator.uniform(-largest, largest, self.settings.batch_size)[self.batches.share]
        return [rotated(batch[0], torch.from_numpy(angles).to(batch[0])), batch[1]]

    def _hidden(self, step: int, batch: Batch) -> Batch:
        """The batch with some channels hidden if `hide` is set; the same for any number of processes."""
        if not self.settings.hide:
            return batch
        images, *more = batch
        generator = generator_for(self.settings.seed, step, "hidden channels")
        shown = shown_channels(self.settings.batch_size, images.shape[1], self.settings.hide, generator)
        return [hiding(images, shown[self.batches.share]), *more]

    def _means(self, network: nn.Module, step: int) -> Means:
        return Means(network, step, self.fabric.backward, self.fabric.autocast)

    def _require_number(self, value: float, step: int) -> None:
        """Stop the fit if its objective asks for that; the weights are still those before the step."""
        if self.job.objective.stops_at_nan and not math.isfinite(value):
            raise DivergedError(f"the loss was no longer a number in step {step + 1}; lower the learning rate")

    def _check(self, step: int, epoch: int) -> None:
        """Evaluate and keep the network, in the first process only, and save the state."""
        loss = self._summed(sum(self.losses)) / len(self.losses) / self.fabric.world_size
        check = Check(step, epoch, loss, float("nan"), unreadable=int(self._summed(self.unreadable)))
        self.losses, self.unreadable = [], 0
        if self.fabric.is_global_zero:
            check = replace(check, **self._judged(step))
        self.history.append(check)
        if self.fabric.is_global_zero:
            self.job.keeper.keep(self.history, self.job.module)
        waited = time.monotonic() - self.saved_at >= self.job.save_every
        if waited or step == self.pace.steps or self.fabric.world_size > 1:  # clocks of several processes differ
            self._save()

    def _save(self) -> None:
        """Save the state; a fit stopped before the next save repeats the checks since, with the same results."""
        temporary = self.job.state_file.with_suffix(".tmp")
        self.fabric.save(temporary, self._state(self.history))
        if self.fabric.is_global_zero:
            temporary.replace(self.job.state_file)
        self.fabric.barrier()
        self.saved_at = time.monotonic()

    @torch.no_grad()
    def _judged(self, step: int) -> dict[str, Any]:
        """The loss and the AUROC on the validation data.

        The bare network is evaluated, without the wrapper for several processes: the others do not take part.
        """
        self.job.module.eval()
        means, judged, missing = self._means(self.job.module, step), list[ValidationBatch](), 0
        for batch in self.validation:
            missing += int(unreadable(batch[0]).sum())
            on_device = _readable([part.to(self.fabric.device) for part in batch])
            judged.append(self.job.objective.judge(means, on_device))
        answers, labels = torch.cat([one.answers for one in judged]), torch.cat([one.labels for one in judged])
        if missing == len(labels):
            raise InputError("none of the validation images can be read with the model's channels; check the source")
        return {"validation_loss": mean_loss(judged), "auroc": dict(self.job.keeper.judged(answers, labels))}


def _readable(batch: Batch) -> Batch:
    """The batch with an empty image and unknown labels in place of each unreadable image."""
    images, labels, *more = batch
    return [*readable(images, labels), *more]
