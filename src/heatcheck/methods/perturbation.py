"""How far the scores fall when parts of the image are covered; only predictions are needed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from pydantic import ConfigDict, Field
from torch import Tensor

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.covering.boxes import Box
from heatcheck.methods.covering.masking import Evaluator, MaxBatch, evaluating, score_drops
from heatcheck.methods.covering.segments import (
    GRID,
    SegmentRule,
    Segments,
    each_alone,
    notes_of,
    number_of,
    segments_of,
)
from heatcheck.methods.gradient import Baseline, baseline_of
from heatcheck.methods.registry import Access, Passes, method

Length = Annotated[int, Field(ge=1)]


@method(
    "occlusion",
    label="Occlusion",
    family="masks",
    models="any, including a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 per window",
    summary="How much the finding's score falls when a window slides over the image and covers it",
    paper="Zeiler and Fergus 2014",
    trial={"window": 128, "stride": 128},
)
@dataclass(frozen=True)
class Occlusion:
    """Each pixel gets the mean drop of the windows that cover it.

    Windows start at the top left and are cuts where they reach over the far edges. By default 64 of them lie side by
    side.
    """

    window: Length | None = None  # pixels along each axis of the model's grid
    stride: Length | None = None  # by default the window's length
    per_channel: bool = False  # the window covers one channel at a time, as MRI sequences need
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target, the same for every channel unless each is covered alone."""
        windows = self.windows(tuple(images.shape[2:]), images.device)
        windows = replace(windows, channels=images.shape[1] if self.per_channel else 1)
        fills = baseline_of(images, self.baseline).unsqueeze(1)
        with evaluating(classifier, self.max_batch) as evaluate:
            drops = score_drops(evaluate, images, targets, [windows] * len(images), list(fills))
        return without_error(torch.stack([windows.spread(drop.T) for drop in drops]))

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all targets
        """One for the image and one per window; a window that changes nothing needs none."""
        return Passes(covered=1 + len(self.windows(shape[1:])) * (shape[0] if self.per_channel else 1))

    def windows(self, shape: tuple[int, ...], device: torch.device | None = None) -> "Windows":
        """Every position of the window on a grid; together they cover all of it."""
        parts = 8 if len(shape) == 2 else 4
        rows = []
        for size in shape:
            window = self.window or -(-size // parts)
            stride = self.stride or window
            if stride > window:
                raise ValueError(f"stride {stride} leaves gaps between windows of {window}; make it smaller")
            last = max(0, -(-(size - window) // stride) * stride)
            starts = torch.arange(0, last + 1, stride, device=device).unsqueeze(1)
            position = torch.arange(size, device=device)
            rows.append((position >= starts) & (position < starts + window))
        return Windows(tuple(rows))


@dataclass(frozen=True, slots=True)
class Windows:
    """Covers that are boxes: along each axis, which positions each step of the window covers."""

    along: tuple[Bool[Tensor, "step size"], ...]
    channels: int = 1  # covered one after another; 1 stands for all together

    def __len__(self) -> int:
        return self.channels * math.prod(map(len, self.along))

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        steps = tuple(len(rows) for rows in self.along)
        indices = torch.arange(len(self), device=self.along[0].device)[some]
        channel, *steps_taken = torch.unravel_index(indices, (self.channels, *steps))
        covered = channel.unsqueeze(1) == torch.arange(self.channels, device=indices.device)
        boxes = covered.reshape(len(indices), self.channels, *[1] * len(steps))
        for axis, step in enumerate(steps_taken):
            rows = self.along[axis][step]
            boxes = boxes & rows.reshape(
                len(step), 1, *[rows.shape[1] if other == axis else 1 for other in range(len(steps))]
            )
        return boxes

    def region(self, index: int, previous: int | None = None) -> Box | None:
        """The window, or a box around two of them."""
        spans = [self._spans(each) for each in (index, previous) if each is not None]
        return Box(tuple((min(a for a, _ in axis), max(b for _, b in axis)) for axis in zip(*spans, strict=True)))

    def _spans(self, index: int) -> list[tuple[int, int]]:
        steps = np.unravel_index(index, (self.channels, *map(len, self.along)))[1:]
        covered = [rows[step].nonzero().flatten() for rows, step in zip(self.along, steps, strict=True)]
        return [(int(positions[0]), int(positions[-1]) + 1) for positions in covered]

    def within(self, index: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """A part of one window's cover."""
        return self[index : index + 1][(slice(None), slice(None), *box.index)]

    def spread(self, drops: Float[Tensor, "target window"]) -> Float[Tensor, "target channel *space"]:
        """The mean drop of the windows at each pixel, computed axis by axis: a box is a product of its sides."""
        values = drops.reshape(len(drops), self.channels, *[len(rows) for rows in self.along])
        for axis, rows in enumerate(self.along):
            share = rows.to(values.dtype) / rows.sum(0)
            values = torch.tensordot(values, share, ([axis + 2], [0])).movedim(-1, axis + 2)
        return values


@method(
    "feature_ablation",
    label="Feature ablation",
    family="masks",
    models="any, including a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 per segment",
    summary="How much the finding's score falls when one segment of the image is covered",
    paper="",
    trial={"segments": {"kind": "grid", "cells": 2}},
)
@dataclass(frozen=True)
class FeatureAblation:
    """Each pixel gets the drop of its segment."""

    segments: SegmentRule = GRID
    baseline: Baseline = "zero"
    max_batch: MaxBatch = "found"

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target, with a channel for all unless segments are per channel."""
        fills = baseline_of(images, self.baseline).unsqueeze(1)
        cuts = [segments_of(image, self.segments) for image in images]
        with evaluating(classifier, self.max_batch) as evaluate:
            return _segment_drops(evaluate, images, targets, cuts, list(fills))

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all targets
        """One for the image and one per segment; a segment whose cover changes nothing needs none."""
        return Passes(covered=1 + number_of(self.segments, shape))


@method(
    "feature_permutation",
    label="Feature permutation",
    family="masks",
    models="any, including a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 per segment",
    summary="How much the finding's score falls when one segment shows what other patients have there",
    paper="Fisher et al. 2019",
    wants_donors=True,
    trial={"segments": {"kind": "grid", "cells": 2}},
)
@dataclass(frozen=True)
class FeaturePermutation:
    """Each pixel gets the drop of its segment, on average over the donors whose pixels replace it.

    The donors rotate over the segments, so that all of them are used even with one pass per segment.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    segments: SegmentRule = GRID
    donors_each: Length = 1  # donors that replace each segment in turn, if there are as many
    max_batch: MaxBatch = "found"
    donors: tuple[Tensor, ...] = field(default=(), metadata={"from_study": True})  # per image: [donor, channel, *space]

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target, with a channel for all unless segments are per channel."""
        if len(self.donors) != len(images) or not all(map(len, self.donors)):
            raise ValueError(
                "feature_permutation needs images of other patients for each image; run it in a study, or pass `donors`"
            )
        for donors in self.donors:
            if donors.shape[1:] != images.shape[1:]:
                raise ValueError(
                    f"donors must lie on the images' grid {tuple(images.shape[1:])}, got {tuple(donors.shape[1:])}"
                )
        cuts = [segments_of(image, self.segments) for image in images]
        fills = list(map(self._fills, cuts, self.donors))
        with evaluating(classifier, self.max_batch) as evaluate:
            return _segment_drops(evaluate, images, targets, cuts, fills)

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all targets
        """One for the image, and one per segment and donor."""
        return Passes(covered=1 + number_of(self.segments, shape) * self.donors_each)

    def _fills(self, segments: Segments, donors: Images) -> Images:
        """Images in which successive segments show different donors; the donors rotate from image to image."""
        return torch.stack(
            [
                donors.gather(0, ((segments.labels + turn) % len(donors)).expand(1, *donors.shape[1:]))[0]
                for turn in range(min(self.donors_each, len(donors)))
            ]
        )


def _segment_drops(
    evaluate: Evaluator, images: Images, targets: Targets, cuts: Sequence[Segments], fills: Sequence[Images]
) -> MapBatch:
    """How far hiding each segment lowers each target's score, painted over the segment."""
    drops = score_drops(evaluate, images, targets, list(map(each_alone, cuts)), fills)
    painted = [segments.painted(drop.T) for segments, drop in zip(cuts, drops, strict=True)]
    return without_error(torch.stack(painted), notes_of(cuts))
