"""What each segment adds to the score, estimated by showing the model many subsets of the segments.

The subsets are drawn once per image and scored once; the values of every target are solved from the same scores.
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
from heatcheck.methods.covering.segments import GRID, SegmentCovers, SegmentRule, notes_of, number_of, segments_of
from heatcheck.methods.gradient import Baseline, baseline_of, generators_of
from heatcheck.methods.registry import Access, Passes, method

Samples = Annotated[int, Field(ge=2)]
Shown = Bool[Tensor, "subset segment"]  # True where the segment is shown
Answers = Float[Tensor, "subset target"]
Values = Float[Tensor, "segment target"]


@dataclass(frozen=True, slots=True)
class Solved:
    """The value of each segment for each target, and how far the values' sum is from the score they share."""

    values: Values
    error: Float[Tensor, " target"]


class OverSubsets(ABC):
    """A method that shows the model subsets of the segments and computes the segments' values from its scores."""

    segments: SegmentRule
    baseline: Baseline
    max_batch: MaxBatch
    one_by_one: ClassVar[bool] = False  # most subsets differ from the one before in a single segment

    @abstractmethod
    def subsets(self, segments: int, generator: torch.Generator) -> Shown:
        """The segments that are shown, one row per subset."""

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all targets
        """One per subset."""
        return Passes(covered=len(self.subsets(number_of(self.segments, shape), torch.Generator().manual_seed(0))))

    @abstractmethod
    def solve(self, shown: Shown, answers: Answers) -> Solved:
        """The segments' values from the scores of the subsets, in double precision."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:
        """One map per image and target, with a channel for all unless segments are per channel."""
        cuts = [segments_of(image, self.segments) for image in images]
        fills = baseline_of(images, self.baseline)
        painted, errors = [], []
        with evaluating(classifier, self.max_batch) as evaluate:
            each = zip(images, fills, targets, cuts, generators_of(seeds), strict=True)
            for image, fill, target, segments, generator in each:
                shown = self.subsets(segments.count, generator)
                covers = SegmentCovers(~shown.to(image.device), segments)
                score = evaluate.covered_in_turn if self.one_by_one else evaluate.covered
                answers = score(image, covers, fill)
                solved = self.solve(shown, answers[:, target].double().cpu())
                painted.append(segments.painted(solved.values.T.float().to(image.device)))
                errors.append(solved.error.float().to(image.device))
        return MapBatch(torch.stack(painted), torch.stack(errors), notes_of(cuts))


@method(
    "shapley_value_sampling",
    label="Shapley sampling",
    family="masks",
    models="any, including a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 per permutation and segment",
    summary="What a segment adds to the finding's score on average when segments are shown one after another",
    paper="Strumbelj and Kononenko 2010",
    trial={"segments": {"kind": "grid", "cells": 2}, "permutations": 1},
)
@dataclass(frozen=True)
class ShapleyValueSampling(OverSubsets):
    """The mean gain of showing a segment, over random orders in which all are shown.

    The gains of one order telescope, so that the error |Σ values − (f(x) − f(baseline))| is rounding alone.
    """

    one_by_one: ClassVar[bool] = True

    permutations: Annotated[int, Field(ge=1)] = 8
    segments: SegmentRule = GRID
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def subsets(self, segments: int, generator: torch.Generator) -> Shown:
        """Nothing, everything, and the segments shown after each step but the last of each order."""
        orders = torch.stack([torch.randperm(segments, generator=generator) for _ in range(self.permutations)])
        steps = torch.arange(1, segments).reshape(1, -1, 1)
        # `argsort` inverts an order: it gives the step at which each segment is shown
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
    models="any, including a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 per sample",
    summary="Each segment's fair share of the finding's score, estimated from random subsets of the segments",
    paper="Lundberg and Lee 2017",
    trial={"segments": {"kind": "grid", "cells": 2}, "samples": 8},
)
@dataclass(frozen=True)
class KernelShap(OverSubsets):
    """Weighted least squares with the Shapley kernel, under the constraint Σ values = f(x) − f(baseline).

    Where `samples` allow it, all subsets are shown and the values are the exact Shapley values. Otherwise subsets are
    drawn with the kernel's probabilities, each with its complement, and weighted equally. With fewer samples than
    segments, what they leave undetermined is shared evenly.
    """

    samples: Samples = 512
    segments: SegmentRule = GRID
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def subsets(self, segments: int, generator: torch.Generator) -> Shown:
        """Nothing, everything, and all or some of the subsets between."""
        if 2**segments - 2 <= self.samples:
            # the binary digits of 1, 2, … are the subsets
            between = torch.arange(1, 2**segments - 1).unsqueeze(1) >> torch.arange(segments) & 1 == 1
            return torch.cat([_ends(segments), between])
        sizes = torch.arange(1, segments)
        # the kernel 1 / (C(M, s)·s·(M − s)), summed over the C(M, s) subsets of size s
        share = 1 / (sizes * (segments - sizes)).double()
        drawn = sizes[torch.multinomial(share, -(-self.samples // 2), replacement=True, generator=generator)]
        ranks = torch.rand(len(drawn), segments, generator=generator).argsort(1).argsort(1)
        half = ranks < drawn.unsqueeze(1)  # each a uniform subset of its size
        return torch.cat([_ends(segments), torch.stack([half, ~half], 1).flatten(0, 1)[: self.samples]])

    def solve(self, shown: Shown, answers: Answers) -> Solved:
        """Even shares of f(x) − f(baseline), plus the least-squares departures from them, whose sum is 0.

        Every centred row is orthogonal to the constant vector, and the solution of least norm lies in the span of the
        rows: so the departures sum to 0, and the constraint holds, whatever the samples.
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
    def _weights(sizes: Float[Tensor, "subset 1"], segments: int) -> Float[Tensor, "subset 1"]:
        """The Shapley kernel (up to a factor) where all subsets are shown; drawn ones follow it by their frequency."""
        if len(sizes) < 2**segments - 2:
            return torch.ones_like(sizes)
        total = torch.tensor(float(segments), dtype=sizes.dtype)
        log_choose = torch.lgamma(total + 1) - torch.lgamma(sizes + 1) - torch.lgamma(total - sizes + 1)
        return torch.exp(-log_choose) / (sizes * (segments - sizes))


@method(
    "lime",
    label="LIME",
    family="masks",
    models="any, including a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 per sample",
    summary="The weights of a simple linear model that imitates the network on partly covered copies of the image",
    paper="Ribeiro et al. 2016",
    trial={"segments": {"kind": "grid", "cells": 2}, "samples": 8},
)
@dataclass(frozen=True)
class Lime(OverSubsets):
    """The coefficients of a weighted linear model of the scores, on whether each segment is shown.

    As in the lime package's image explainer: each segment is shown with probability ½, the first subset is the full
    image, a subset has the weight √exp(−d²/width²) with its cosine distance d from the full image, and the model is a
    ridge regression. The lasso's penalty applies to the mean squared error, so that it needs a much smaller `alpha`.
    """

    samples: Samples = 500
    surrogate: Literal["ridge", "lasso"] = "ridge"
    alpha: Annotated[float, Field(ge=0)] = 1.0
    kernel_width: Annotated[float, Field(gt=0)] = 0.25
    segments: SegmentRule = GRID
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def subsets(self, segments: int, generator: torch.Generator) -> Shown:
        """Everything, and random subsets."""
        drawn = torch.rand(self.samples - 1, segments, generator=generator) < 0.5
        return torch.cat([_ends(segments)[1:], drawn])

    def solve(self, shown: Shown, answers: Answers) -> Solved:
        """The coefficients; they need not add up to the score, so the error is NaN."""
        weights = self.weights(shown)
        share = weights / weights.sum()
        # centring by the weighted means replaces an intercept, which is not penalised
        rows = shown.double()
        rows = rows - share @ rows
        scores = answers - share @ answers
        fit = {"ridge": _ridge, "lasso": _lasso}[self.surrogate]
        values = fit((rows.T * weights) @ rows, (rows.T * weights) @ scores, self._penalty(weights))
        return Solved(values, torch.full(answers.shape[1:], torch.nan))

    def weights(self, shown: Shown) -> Float[Tensor, " subset"]:
        """The weight of each subset."""
        distance = 1 - shown.double().mean(1).sqrt()  # cosine distance of a 0/1 vector from the vector of ones
        return torch.exp(-((distance / self.kernel_width) ** 2)).sqrt()

    def _penalty(self, weights: Float[Tensor, " subset"]) -> float:
        return self.alpha if self.surrogate == "ridge" else self.alpha * float(weights.sum())


def _ridge(gram: Tensor, moments: Values, penalty: float) -> Values:
    """The coefficients that minimise the weighted squared error plus penalty · Σ value²."""
    if penalty == 0:
        return torch.linalg.lstsq(gram, moments, driver="gelsd").solution
    return torch.linalg.solve(gram + penalty * torch.eye(len(gram), dtype=gram.dtype), moments)


def _lasso(gram: Tensor, moments: Values, penalty: float, sweeps: int = 1000) -> Values:
    """The coefficients that minimise half the weighted squared error plus penalty · Σ |value|.

    Coordinate descent: one coefficient at a time has the closed solution of soft thresholding.
    """
    values = torch.zeros_like(moments)
    for _ in range(sweeps):
        before = values.clone()
        for segment in gram.diagonal().nonzero().flatten().tolist():
            curvature = gram[segment, segment]
            residual = moments[segment] - gram[segment] @ values + curvature * values[segment]
            values[segment] = residual.sign() * (residual.abs() - penalty).clamp(min=0) / curvature
        if torch.allclose(values, before, rtol=1e-9, atol=1e-12):
            break
    return values


def _ends(segments: int) -> Shown:
    """The two subsets of nothing and of everything."""
    return torch.tensor([[False], [True]]).expand(2, segments)


def _between_ends(rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The rows of each order, between the row of nothing and the row of everything."""
    first, last = (end.expand(shape[0], 1, -1) for end in rows[:2])
    return torch.cat([first, rows[2:].reshape(shape) if len(rows) > 2 else first[:, :0], last], 1)


def _with_error(values: Values, answers: Answers) -> Solved:
    """The values, and how far their sum is from f(x) − f(baseline)."""
    return Solved(values, (values.sum(0) - (answers[1] - answers[0])).abs())
