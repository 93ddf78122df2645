"""Which checkpoints are worth keeping, and which form the ensemble of a finding."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Check:
    """How well the network does after some steps; the training loss is the mean since the check before."""

    step: int
    epoch: int  # counted from 0
    training_loss: float
    validation_loss: float
    auroc: Mapping[str, float] = field(default_factory=dict)  # by finding, on the validation data; NaN where undefined
    unreadable: int = 0  # images since the check before

    @property
    def mean_auroc(self) -> float:
        """The mean over the findings that have an AUROC."""
        return mean_of(self.auroc.values())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint: what it learned by, in which run, and how well it did."""

    strategy: str
    run: int
    check: Check

    @property
    def name(self) -> str:
        """The name of its file."""
        return file_name(self.strategy, self.run, self.check.step)


def file_name(strategy: str, run: int, step: int) -> str:
    """The name of a checkpoint's file."""
    return f"{strategy}-{run}-{step:06d}.safetensors"


def mean_of(values: Iterable[float]) -> float:
    """The mean of the numbers that are numbers; NaN where there is none."""
    numbers = [value for value in values if math.isfinite(value)]
    return float(np.mean(numbers)) if numbers else math.nan


def merit(check: Check, by: Sequence[str]) -> float:
    """What checkpoints are ranked by: the mean AUROC over the findings, or without any the loss; higher is better."""
    value = mean_of([check.auroc.get(finding, math.nan) for finding in by]) if by else -check.validation_loss
    return value if math.isfinite(value) else -math.inf


def best_checks(checks: Sequence[Check], by: Sequence[str], most: int) -> list[Check]:
    """The best so many checks, best first; of equals the later. A check without a number is never among them."""
    ranked = sorted(checks, key=lambda check: (merit(check, by), check.step), reverse=True)
    return [check for check in ranked if merit(check, by) > -math.inf][:most]


def best_candidate(candidates: Sequence[Candidate], by: Sequence[str]) -> Candidate:
    """The one checkpoint to use alone; of equals the first."""
    return max(candidates, key=lambda one: merit(one.check, by))


def members(candidates: Sequence[Candidate], finding: str, by: Sequence[str], most: int) -> list[Candidate]:
    """The ensemble of a finding: the checkpoints that tell it best, best first.

    Where the validation data cannot say how well it is told, the checkpoints that are best over all form it.
    """

    def rank(one: Candidate) -> tuple[float, float]:
        told = one.check.auroc.get(finding, math.nan)
        return (told if math.isfinite(told) else -math.inf, merit(one.check, by))

    return sorted(candidates, key=rank, reverse=True)[:most]
