"""What the model's scores lose when parts of the image are covered; only predictions are needed."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.gradient import Baseline, baseline_of
from heatcheck.methods.masking import score_drops
from heatcheck.methods.passes import evaluation_mode
from heatcheck.methods.registry import Needs, method

Length = Annotated[int, Field(ge=1)]


@method(
    "occlusion",
    label="Occlusion",
    family="masks",
    needs=Needs.PREDICTIONS,
    cost="1 a window",
    summary="How much the finding's score falls when a window slides over the image and covers it",
    paper="Zeiler and Fergus 2014",
    trial={"window": 128, "stride": 128},
)
@dataclass(frozen=True)
class Occlusion:
    """Each pixel gets the mean drop of the windows that cover it.

    Windows start at the top left and may reach over the far edges, where they are cut.
    """

    window: Length = 40  # pixels along each axis of the model's grid
    stride: Length = 40
    baseline: Baseline = "zero"
    max_batch: Length = 4  # copies that go through the model together; a few are fastest on a CPU

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target, the same for every channel."""
        covers = self.windows(tuple(images.shape[2:])).to(images.device)
        weights = covers.flatten(1).float()
        drops = _drops(self, classifier, images, targets, covers)
        spread = torch.stack([drop.T @ weights for drop in drops]) / weights.sum(0)
        return without_error(spread.reshape(*targets.shape, 1, *images.shape[2:]))

    def windows(self, shape: tuple[int, ...]) -> Bool[Tensor, "windows *space"]:
        """Every position of the window on a grid; together they cover all of it."""
        if self.stride > self.window:
            raise ValueError(f"stride {self.stride} leaves gaps between windows of {self.window}; make it smaller")
        starts = [
            range(0, max(1, -(-(size - self.window) // self.stride) * self.stride + 1), self.stride) for size in shape
        ]
        places = list(itertools.product(*starts))
        covers = torch.zeros(len(places), *shape, dtype=torch.bool)
        for cover, place in zip(covers, places, strict=True):
            cover[tuple(slice(at, at + self.window) for at in place)] = True
        return covers


@method(
    "feature_ablation",
    label="Feature ablation",
    family="masks",
    needs=Needs.PREDICTIONS,
    cost="1 a segment",
    summary="How much the finding's score falls when one segment of the image is covered",
    paper="",
    trial={"cells": 2},
)
@dataclass(frozen=True)
class FeatureAblation:
    """Each pixel gets the drop of its segment; segments are the cells of a grid."""

    cells: Length = 8  # along each axis
    baseline: Baseline = "zero"
    max_batch: Length = 4

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target, the same for every channel."""
        segments = grid_segments(tuple(images.shape[2:]), self.cells).to(images.device)
        covers = _covers(segments)
        drops = _drops(self, classifier, images, targets, covers)
        return without_error(torch.stack([_painted(drop, segments) for drop in drops]))


def _drops(
    settings: Occlusion | FeatureAblation,
    classifier: Classifier,
    images: Images,
    targets: Targets,
    covers: Bool[Tensor, "masks *space"],
) -> list[Float[Tensor, "masks target"]]:
    """What each cover costs each target, image by image; the same covers serve all images."""
    fill = baseline_of(images, settings.baseline)
    every = itertools.repeat(covers, len(images))
    with evaluation_mode(classifier.module):
        return list(score_drops(classifier.logits, images, targets, every, fill, settings.max_batch))


def grid_segments(shape: tuple[int, ...], cells: int) -> Int[Tensor, "*space"]:
    """The number of each pixel's cell in a grid of `cells` along each axis, from 0."""
    if cells > min(shape):
        raise ValueError(f"{cells} cells along an axis of {min(shape)} pixels are more than it has; use fewer")
    numbers = torch.zeros(shape, dtype=torch.long)
    for axis, size in enumerate(shape):
        along = torch.arange(size) * cells // size
        numbers = numbers * cells + along.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return numbers


def _covers(segments: Int[Tensor, "*space"]) -> Bool[Tensor, "segments *space"]:
    count = int(segments.max()) + 1
    return segments == torch.arange(count, device=segments.device).reshape(-1, *[1] * segments.ndim)


def _painted(
    drop: Float[Tensor, "segments target"], segments: Int[Tensor, "*space"]
) -> Float[Tensor, "target 1 *space"]:
    return drop.T[:, segments].unsqueeze(1)
