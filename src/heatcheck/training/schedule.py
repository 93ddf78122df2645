"""The learning rate of each step, and what the optimizer decays."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from heatcheck.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Pace:
    """The learning rate of each step: constant, or a linear rise followed by half a cosine."""

    rate: float
    steps: int
    schedule: Literal["cosine", "constant"] = "cosine"
    warm_up: float = 0.15  # share of the steps in which the rate rises
    warm_up_steps: int | None = None  # or how many steps

    def __post_init__(self) -> None:
        if self.schedule == "cosine" and self.warm_up_steps is not None and self.warm_up_steps >= self.steps:
            raise InputError(
                f"`warm_up_steps` {self.warm_up_steps} leaves nothing of a fit of {self.steps} steps; lower it, or "
                "train for longer"
            )

    def rate_at(self, step: int) -> float:
        """The rate of a step, counted from 0."""
        if self.schedule == "constant":
            return self.rate
        rise = self.warm_up_steps or max(1, round(self.warm_up * self.steps))
        if step < rise:
            return self.rate * (step + 1) / rise
        return self.rate * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, self.steps - rise)))


OPTIMIZERS: dict[str, type[torch.optim.Adam | torch.optim.AdamW]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


def groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters in two groups: weights that decay, and biases and normalisation that do not."""
    matrices = [p for p in module.parameters() if p.ndim > 1]
    vectors = [p for p in module.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
