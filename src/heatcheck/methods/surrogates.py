"""What each segment adds to the score, found by showing the model many choices of segments.

One set of choices is drawn for each image and scored once; every target is solved from the same answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from heatcheck.core.batches import MapBatch
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.covering.masking import MaxBatch, evaluating
from heatcheck.methods.covering.segments import GRID, SegmentCovers, SegmentRule, notes_of, segments_of
from heatcheck.methods.gradient import Baseline, baseline_of, generators_of
from heatcheck.methods.registry import Access, method

Samples = Annotated[int, Field(ge=2)]
Shown = Bool[Tensor, "choice segment"]  # True where the segment is shown
Answers = Float[Tensor, "choice target"]
Values = Float[Tensor, "segment target"]


@dataclass(frozen=True, slots=True)
class Solved:
    """The worth of each segment to each target, and how far their sum is from the score they share out."""

    values: Values
    error: Float[Tensor, " target"]


class OverChoices(ABC):
    """A method that shows the model choices of segments, and works the segments' worth out from its answers."""

    segments: SegmentRule
    baseline: Baseline
    max_batch: MaxBatch
    one_by_one: ClassVar[bool] = False  # most choices differ in one segment from the choice before

    @abstractmethod
    def choices(self, segments: int, generator: torch.Generator) -> Shown:
        """The segments that are shown, choice by choice."""

    @abstractmethod
    def solve(self, shown: Shown, answers: Answers) -> Solved:
        """What the answers to the choices say of each segment, in double precision."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:
        """One map per image and target, with a channel for all unless segments are per channel."""
        cut = [segments_of(image, self.segments) for image in images]
        fills = baseline_of(images, self.baseline)
        painted, errors = [], []
        with evaluating(classifier, self.max_batch) as evaluate:
            everything = zip(images, fills, targets, cut, generators_of(seeds), strict=True)
            for image, fill, wanted, segments, generator in everything:
                shown = self.choices(segments.count, generator)
                covers = SegmentCovers(~shown.to(image.device), segments)
                if self.one_by_one:
                    answers = evaluate.covered_in_turn(image, covers, fill)
                else:
                    answers = evaluate.covered(image, covers, fill)
                solved = self.solve(shown, answers[:, wanted].double().cpu())
                painted.append(segments.painted(solved.values.T.float().to(image.device)))
                errors.append(solved.error.float().to(image.device))
        return MapBatch(torch.stack(painted), torch.stack(errors), notes_of(cut))


@method(
    "shapley_value_sampling",
    label="Shapley sampling",
    family="masks",
    models="any, also a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 a permutation and segment",
    summary="What a segment adds to the finding's score on average when segments are shown one after another",
    paper="Strumbelj and Kononenko 2010",
    trial={"segments": {"kind": "grid", "cells": 2}, "permutations": 1},
)
@dataclass(frozen=True)
class ShapleyValueSampling(OverChoices):
    """The mean gain of showing a segment, over random orders in which all are shown.

    The error is |Σ values − (f(x) − f(baseline))|, which only rounding makes differ from 0.
    """

    one_by_one: ClassVar[bool] = True

    permutations: Annotated[int, Field(ge=1)] = 8
    segments: SegmentRule = GRID
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def choices(self, segments: int, generator: torch.Generator) -> Shown:
        """Nothing, everything, and what is shown after each step but the last of each order."""
        orders = torch.stack([torch.randperm(segments, generator=generator) for _ in range(self.permutations)])
        steps = torch.arange(1, segments).reshape(1, -1, 1)
        return torch.cat([_ends(segments), (orders.argsort(1).unsqueeze(1) < steps).flatten(0, 1)])

    def solve(self, shown: Shown, answers: Answers) -> Solved:
        """The mean gain at the step at which the segment was first shown."""
        segments, targets = shown.shape[1], answers.shape[1]
        shown_in = _between_ends(shown, (self.permutations, -1, segments))
        gains = _between_ends(answers, (self.permutations, -1, targets)).diff(dim=1)
        added = (shown_in[:, 1:] & ~shown_in[:, :-1]).int().argmax(2)
        values = torch.zeros(segments, targets, dtype=answers.dtype)
        values.index_add_(0, added.flatten(), gains.flatten(0, 1))
        return _with_error(values / self.permutations, answers)


@method(
    "kernel_shap",
    label="Kernel SHAP",
    family="masks",
    models="any, also a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 a sample",
    summary="Each segment's fair share of the finding's score, estimated from random choices of segments",
    paper="Lundberg and Lee 2017",
    trial={"segments": {"kind": "grid", "cells": 2}, "samples": 8},
)
@dataclass(frozen=True)
class KernelShap(OverChoices):
    """Weighted least squares with the Shapley kernel, under the constraint Σ values = f(x) − f(baseline).

    Where `samples` allow it, all choices of segments are shown and the values are the exact Shapley values. Otherwise
    choices are drawn as the kernel weighs them, each with its complement, and count alike. With fewer samples than
    segments, what they leave open is shared out evenly.
    """

    samples: Samples = 512
    segments: SegmentRule = GRID
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def choices(self, segments: int, generator: torch.Generator) -> Shown:
        """Nothing, everything, and all or some of the choices between."""
        if 2**segments - 2 <= self.samples:
            between = torch.arange(1, 2**segments - 1).unsqueeze(1) >> torch.arange(segments) & 1 == 1
            return torch.cat([_ends(segments), between])
        sizes = torch.arange(1, segments)
        share = 1 / (sizes * (segments - sizes)).double()
        drawn = sizes[torch.multinomial(share, -(-self.samples // 2), replacement=True, generator=generator)]
        ranks = torch.rand(len(drawn), segments, generator=generator).argsort(1).argsort(1)
        half = ranks < drawn.unsqueeze(1)
        return torch.cat([_ends(segments), torch.stack([half, ~half], 1).flatten(0, 1)[: self.samples]])

    def solve(self, shown: Shown, answers: Answers) -> Solved:
        """Even shares of the whole, and the least-squares departures from them, whose sum is 0.

        Departures that sum to 0 are those in the rows' span once each row is centred, where the solution of least
        norm lies; so the constraint holds whatever the samples.
        """
        segments = shown.shape[1]
        even = (answers[1] - answers[0]) / segments
        if segments == 1:
            return _with_error(even.unsqueeze(0), answers)
        rows = shown[2:].double()
        sizes = rows.sum(1, keepdim=True)
        weights = self._weights(sizes, segments).sqrt()
        rest = answers[2:] - answers[0] - sizes * even
        centred = rows - sizes / segments
        departures = torch.linalg.lstsq(weights * centred, weights * rest, driver="gelsd").solution
        return _with_error(even + departures - departures.mean(0), answers)

    @staticmethod
    def _weights(sizes: Float[Tensor, "choice 1"], segments: int) -> Float[Tensor, "choice 1"]:
        """The Shapley kernel (up to a factor) where all choices are there; drawn ones carry it in their number."""
        if len(sizes) < 2**segments - 2:
            return torch.ones_like(sizes)
        whole = torch.tensor(float(segments), dtype=sizes.dtype)
        log_choose = torch.lgamma(whole + 1) - torch.lgamma(sizes + 1) - torch.lgamma(whole - sizes + 1)
        return torch.exp(-log_choose) / (sizes * (segments - sizes))


@method(
    "lime",
    label="LIME",
    family="masks",
    models="any, also a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 a sample",
    summary="The weights of a simple linear model that imitates the network on partly covered copies of the image",
    paper="Ribeiro et al. 2016",
    trial={"segments": {"kind": "grid", "cells": 2}, "samples": 8},
)
@dataclass(frozen=True)
class Lime(OverChoices):
    """The coefficients of a weighted linear model of the scores, on whether each segment is shown.

    As in the lime package's image explainer: each segment is shown with probability ½, the first choice is the whole
    image, a choice weighs √exp(−d²/width²) by its cosine distance d from the whole image, and the model is a ridge
    regression. The lasso's penalty is that of the mean squared error, so that it wants a much smaller `alpha`.
    """

    samples: Samples = 500
    surrogate: Literal["ridge", "lasso"] = "ridge"
    alpha: Annotated[float, Field(ge=0)] = 1.0
    kernel_width: Annotated[float, Field(gt=0)] = 0.25
    segments: SegmentRule = GRID
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def choices(self, segments: int, generator: torch.Generator) -> Shown:
        """Everything, and random choices."""
        drawn = torch.rand(self.samples - 1, segments, generator=generator) < 0.5
        return torch.cat([_ends(segments)[1:], drawn])

    def solve(self, shown: Shown, answers: Answers) -> Solved:
        """The coefficients; they have no sum to keep to."""
        weights = self.weights(shown)
        share = weights / weights.sum()
        rows = shown.double()
        rows = rows - share @ rows
        scores = answers - share @ answers
        fit = {"ridge": _ridge, "lasso": _lasso}[self.surrogate]
        values = fit((rows.T * weights) @ rows, (rows.T * weights) @ scores, self._penalty(weights))
        return Solved(values, torch.full(answers.shape[1:], torch.nan))

    def weights(self, shown: Shown) -> Float[Tensor, " choice"]:
        """How much each choice counts."""
        distance = 1 - shown.double().mean(1).sqrt()
        return torch.exp(-((distance / self.kernel_width) ** 2)).sqrt()

    def _penalty(self, weights: Float[Tensor, " choice"]) -> float:
        return self.alpha if self.surrogate == "ridge" else self.alpha * float(weights.sum())


def _ridge(gram: Tensor, moments: Values, penalty: float) -> Values:
    """The coefficients that minimise the weighted squared error plus penalty · Σ value²."""
    if penalty == 0:
        return torch.linalg.lstsq(gram, moments, driver="gelsd").solution
    return torch.linalg.solve(gram + penalty * torch.eye(len(gram), dtype=gram.dtype), moments)


def _lasso(gram: Tensor, moments: Values, penalty: float, sweeps: int = 1000) -> Values:
    """The coefficients that minimise half the weighted squared error plus penalty · Σ |value|, one after another."""
    values = torch.zeros_like(moments)
    for _ in range(sweeps):
        before = values.clone()
        for segment in gram.diagonal().nonzero().flatten().tolist():
            own = gram[segment, segment]
            pull = moments[segment] - gram[segment] @ values + own * values[segment]
            values[segment] = pull.sign() * (pull.abs() - penalty).clamp(min=0) / own
        if torch.allclose(values, before, rtol=1e-9, atol=1e-12):
            break
    return values


def _ends(segments: int) -> Shown:
    """Nothing and everything."""
    return torch.tensor([[False], [True]]).expand(2, segments)


def _between_ends(rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The rows of each order, with the first two rows before and after them."""
    first, last = (end.expand(shape[0], 1, -1) for end in rows[:2])
    return torch.cat([first, rows[2:].reshape(shape) if len(rows) > 2 else first[:, :0], last], 1)


def _with_error(values: Values, answers: Answers) -> Solved:
    """The values with how far their sum is from what lies between nothing and everything shown."""
    return Solved(values, (values.sum(0) - (answers[1] - answers[0])).abs())
