"""What the model's scores lose when parts of the image are covered; only predictions are needed."""

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
from heatcheck.methods.covering.segments import GRID, SegmentRule, Segments, each_alone, notes_of, segments_of
from heatcheck.methods.gradient import Baseline, baseline_of
from heatcheck.methods.registry import Access, method

Length = Annotated[int, Field(ge=1)]


@method(
    "occlusion",
    label="Occlusion",
    family="masks",
    models="any, also a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 a window",
    summary="How much the finding's score falls when a window slides over the image and covers it",
    paper="Zeiler and Fergus 2014",
    trial={"window": 128, "stride": 128},
)
@dataclass(frozen=True)
class Occlusion:
    """Each pixel gets the mean drop of the windows that cover it.

    Windows start at the top left and may reach over the far edges, where they are cut. Where nothing is said, 64 of
    them lie side by side.
    """

    window: Length | None = None  # pixels along each axis of the model's grid
    stride: Length | None = None  # the window's own length
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
            place = torch.arange(size, device=device)
            rows.append((place >= starts) & (place < starts + window))
        return Windows(tuple(rows))


@dataclass(frozen=True, slots=True)
class Windows:
    """Covers that are boxes: along each axis, which positions each step of the window covers."""

    along: tuple[Bool[Tensor, "step size"], ...]
    channels: int = 1  # that are covered one after the other; 1 stands for all together

    def __len__(self) -> int:
        return self.channels * math.prod(map(len, self.along))

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        steps = tuple(len(rows) for rows in self.along)
        numbers = torch.arange(len(self), device=self.along[0].device)[some]
        channel, *places = torch.unravel_index(numbers, (self.channels, *steps))
        covered = channel.unsqueeze(1) == torch.arange(self.channels, device=numbers.device)
        boxes = covered.reshape(len(numbers), self.channels, *[1] * len(steps))
        for axis, at in enumerate(places):
            rows = self.along[axis][at]
            boxes = boxes & rows.reshape(
                len(at), 1, *[rows.shape[1] if other == axis else 1 for other in range(len(steps))]
            )
        return boxes

    def region(self, place: int, since: int | None = None) -> Box | None:
        """The window, or a box around two of them."""
        spans = [self._spans(number) for number in (place, since) if number is not None]
        return Box(tuple((min(a for a, _ in axis), max(b for _, b in axis)) for axis in zip(*spans, strict=True)))

    def _spans(self, place: int) -> list[tuple[int, int]]:
        steps = np.unravel_index(place, (self.channels, *map(len, self.along)))[1:]
        covered = [rows[step].nonzero().flatten() for rows, step in zip(self.along, steps, strict=True)]
        return [(int(own[0]), int(own[-1]) + 1) for own in covered]

    def within(self, place: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """A part of one window's cover."""
        return self[place : place + 1][(slice(None), slice(None), *box.place)]

    def spread(self, drops: Float[Tensor, "target window"]) -> Float[Tensor, "target channel *space"]:
        """The mean over the windows at each pixel, axis by axis: no window need be drawn for it."""
        values = drops.reshape(len(drops), self.channels, *[len(rows) for rows in self.along])
        for axis, rows in enumerate(self.along):
            share = rows.to(values.dtype) / rows.sum(0)
            values = torch.tensordot(values, share, ([axis + 2], [0])).movedim(-1, axis + 2)
        return values


@method(
    "feature_ablation",
    label="Feature ablation",
    family="masks",
    models="any, also a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 a segment",
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
        cut = [segments_of(image, self.segments) for image in images]
        with evaluating(classifier, self.max_batch) as evaluate:
            return _segment_drops(evaluate, images, targets, cut, list(fills))


@method(
    "feature_permutation",
    label="Feature permutation",
    family="masks",
    models="any, also a function that only predicts",
    needs=Access.PREDICTIONS,
    cost="1 a segment",
    summary="How much the finding's score falls when one segment shows what other patients have there",
    paper="Fisher et al. 2019",
    wants_donors=True,
    trial={"segments": {"kind": "grid", "cells": 2}},
)
@dataclass(frozen=True)
class FeaturePermutation:
    """Each pixel gets the drop of its segment, on average over the donors whose pixels take its place.

    Segments take the donors in turn, so that one pass a segment already shows the model pixels of all of them.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    segments: SegmentRule = GRID
    donors_each: Length = 1  # how many donors each segment is replaced by, as far as there are so many
    max_batch: MaxBatch = "found"
    donors: tuple[Tensor, ...] = field(default=(), metadata={"from_study": True})  # [donor, channel, *space] an image

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target, with a channel for all unless segments are per channel."""
        if len(self.donors) != len(images) or not all(map(len, self.donors)):
            raise ValueError(
                "feature_permutation needs images of other patients for each image; run it in a study, or give `donors`"
            )
        for own in self.donors:
            if own.shape[1:] != images.shape[1:]:
                raise ValueError(
                    f"donors must lie on the images' grid {tuple(images.shape[1:])}, got {tuple(own.shape[1:])}"
                )
        cut = [segments_of(image, self.segments) for image in images]
        fills = [self._fills(own, donors) for own, donors in zip(cut, self.donors, strict=True)]
        with evaluating(classifier, self.max_batch) as evaluate:
            return _segment_drops(evaluate, images, targets, cut, fills)

    def _fills(self, segments: Segments, donors: Images) -> Images:
        """Pictures in which each segment shows another donor; each donor's turn comes in the next one."""
        return torch.stack(
            [
                donors.gather(0, ((segments.labels + turn) % len(donors)).expand(1, *donors.shape[1:]))[0]
                for turn in range(min(self.donors_each, len(donors)))
            ]
        )


def _segment_drops(
    evaluate: Evaluator, images: Images, targets: Targets, cut: Sequence[Segments], fills: Sequence[Images]
) -> MapBatch:
    """What hiding each segment costs each target, painted over the segment."""
    drops = score_drops(evaluate, images, targets, [each_alone(own) for own in cut], fills)
    painted = [own.painted(drop.T) for own, drop in zip(cut, drops, strict=True)]
    return without_error(torch.stack(painted), notes_of(cut))
