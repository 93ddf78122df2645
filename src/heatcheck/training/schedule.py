"""How fast to learn, step by step."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class Pace:
    """The learning rate at each step: always the same, or a linear rise and then half a cosine."""

    rate: float
    steps: int
    schedule: Literal["cosine", "constant"] = "cosine"
    warm_up: float = 0.15  # share of the steps in which the rate rises

    def at(self, step: int) -> float:
        """The rate of a step, counted from 0."""
        if self.schedule == "constant":
            return self.rate
        rise = max(1, round(self.warm_up * self.steps))
        if step < rise:
            return self.rate * (step + 1) / rise
        return self.rate * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, self.steps - rise)))


OPTIMIZERS: dict[str, type[torch.optim.Adam | torch.optim.AdamW]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


def groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Weights that decay, and biases and normalisation that do not."""
    matrices = [p for p in module.parameters() if p.ndim > 1]
    vectors = [p for p in module.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
