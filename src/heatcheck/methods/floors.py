"""Floors: maps made without the model, which a useful method must beat."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import torch
from pydantic import ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.seeds import seed_for
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.registry import Access, method


@method(
    "random",
    label="Random",
    family="floor",
    needs=Access.NOTHING,
    cost="0",
    summary="Coarse noise: what pure chance would score",
    paper="",
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class RandomFloor:
    """Uniform noise, different for every image and target, about as coarse as a class activation map."""

    cells: Annotated[int, Field(ge=2)] = 16  # along each axis

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One noise map per image and target."""
        grid = (1, *(self.cells,) * (images.ndim - 2))
        rows = [
            torch.stack(
                [torch.rand(grid, generator=torch.Generator().manual_seed(seed_for(seed, target))) for target in row]
            )
            for seed, row in zip(seeds, targets.tolist(), strict=True)
        ]
        return without_error(torch.stack(rows).to(images.device))


@method(
    "center_prior",
    label="Centre",
    family="floor",
    needs=Access.NOTHING,
    cost="0",
    summary="A blob in the middle of the image, whatever the image shows",
    paper="",
    same_for_all_targets=True,
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class CenterPrior:
    """A Gaussian in the middle of the image."""

    width: Annotated[float, Field(gt=0)] = 0.2  # standard deviation as a share of each side

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """The same blob for every image and target."""
        return self.of(images, targets)

    def of(self, images: Images, targets: Targets) -> MapBatch:
        """The maps, for which no classifier is needed."""
        blob = torch.ones(())
        for axis, size in enumerate(images.shape[2:]):
            offset = (torch.arange(size) + 0.5) / size - 0.5  # from the centre, as a share of the side
            shape = [1] * (images.ndim - 2)
            shape[axis] = size
            blob = blob * torch.exp(-0.5 * (offset / self.width) ** 2).reshape(shape)
        return without_error(blob.to(images.device).expand(*targets.shape, 1, *images.shape[2:]))


@method(
    "edge",
    label="Edges",
    family="floor",
    needs=Access.NOTHING,
    cost="0",
    summary="Where the image has strong edges, whatever the model computes",
    paper="Sobel filter",
    same_for_all_targets=True,
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class EdgeFloor:
    """The magnitude of the image's Sobel gradient."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """The same edges for every target of an image."""
        return self.of(images, targets)

    def of(self, images: Images, targets: Targets) -> MapBatch:
        """The maps, for which no classifier is needed."""
        grey = images.mean(1, keepdim=True)
        axes = range(images.ndim - 2)
        squares = [_sobel(grey, axis) ** 2 for axis in axes]
        edges = torch.stack(squares).sum(0).sqrt()
        return without_error(edges.unsqueeze(1).expand(-1, targets.shape[1], -1, *images.shape[2:]))


def _sobel(grey: Tensor, axis: int) -> Tensor:
    """The derivative along one spatial axis, smoothed along the others."""
    spatial = grey.ndim - 2
    convolve = functional.conv2d if spatial == 2 else functional.conv3d
    padded = functional.pad(grey, (1, 1) * spatial, mode="replicate")
    for other in range(spatial):
        taps = torch.tensor([-1.0, 0.0, 1.0] if other == axis else [0.25, 0.5, 0.25], device=grey.device)
        shape = [1] * (spatial + 2)
        shape[other + 2] = 3
        padded = convolve(padded, taps.reshape(shape))
    return padded


@method(
    "location_prior",
    label="Usual place",
    family="floor",
    needs=Access.NOTHING,
    cost="0",
    summary="Where this finding usually lies in other patients, without looking at the image",
    paper="",
    wants_priors=True,
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class LocationPrior:
    """The mean truth mask of the finding over other patients, which the study supplies for each batch."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    priors: Tensor | None = field(default=None, metadata={"from_study": True})  # [batch, output, *grid]

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """The prior of each image's targets."""
        if self.priors is None:
            raise ValueError("location_prior needs the truth masks of other cases; run it in a study that has masks")
        rows = torch.arange(len(images)).unsqueeze(1)
        return without_error(self.priors[rows, targets.cpu()].unsqueeze(2).to(images.device))
