"""Which checkpoints are kept, and which form the ensemble of a finding."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Check:
    """The results of the network after some steps; the training loss is the mean since the check before."""

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
    """A checkpoint with its label strategy, its run and its results."""

    strategy: str
    run: int
    check: Check

    @property
    def name(self) -> str:
        """The name of its file, as `file_name` gives it."""
        return file_name(self.strategy, self.run, self.check.step)


def file_name(strategy: str, run: int, step: int) -> str:
    """The name of a checkpoint's file."""
    return f"{strategy}-{run}-{step:06d}.safetensors"


def mean_of(values: Iterable[float]) -> float:
    """The mean of the finite values; NaN where there are none."""
    numbers = [value for value in values if math.isfinite(value)]
    return float(np.mean(numbers)) if numbers else math.nan


def merit(check: Check, by: Sequence[str]) -> float:
    """What ranks checkpoints, the higher the better: the mean AUROC of the findings, or minus the loss if none."""
    value = mean_of([check.auroc.get(finding, math.nan) for finding in by]) if by else -check.validation_loss
    return value if math.isfinite(value) else -math.inf


def best_checks(checks: Sequence[Check], by: Sequence[str], most: int) -> list[Check]:
    """The `most` best checks, best first, of equals the later; checks without a finite merit are left out."""
    ranked = sorted(checks, key=lambda check: (merit(check, by), check.step), reverse=True)
    return [check for check in ranked if merit(check, by) > -math.inf][:most]


def best_candidate(candidates: Sequence[Candidate], by: Sequence[str]) -> Candidate:
    """The one checkpoint to use alone; of equals the first."""
    return max(candidates, key=lambda one: merit(one.check, by))


def members(candidates: Sequence[Candidate], finding: str, by: Sequence[str], most: int) -> list[Candidate]:
    """The ensemble of a finding: the checkpoints with the highest AUROC for it, best first.

    Where its AUROC is undefined on the validation data, the checkpoints that are best overall form it.
    """

    def rank(one: Candidate) -> tuple[float, float]:
        auroc = one.check.auroc.get(finding, math.nan)
        return (auroc if math.isfinite(auroc) else -math.inf, merit(one.check, by))

    return sorted(candidates, key=rank, reverse=True)[:most]
