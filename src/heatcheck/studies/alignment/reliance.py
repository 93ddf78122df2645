"""A model's logits for images in which the outlined area, or another of the same shape, is replaced.

Shifted regions and noise depend on the case alone: every network sees the same copies, so that differences between
networks are paired.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.contracts import Classifier
from heatcheck.core.records import Mask
from heatcheck.core.seeds import generator_for, seed_for
from heatcheck.core.tensors import Images
from heatcheck.methods.covering.masking import evaluating
from heatcheck.metrics.reliance import Drops, shifted_masks
from heatcheck.studies.alignment.vocabulary import FILLS

BLUR = 0.1  # standard deviation of the blur as a share of each side, which leaves no detail
OneImage = Float[Tensor, "channel *space"]
Window = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class RelianceSettings:
    """How reliance is measured."""

    shifts: int = 4  # regions of the same shape elsewhere
    at_once: int = 32  # copies per forward pass


def drops(
    classifier: Classifier,
    column: int,
    images: Images,
    masks: Sequence[Mask],
    seeds: Sequence[int],
    settings: RelianceSettings,
) -> list[Drops]:
    """The logits of one output for each image: unchanged, and with its mask or a shifted region replaced by each fill.

    Images and masks are on the model's grid; there is one seed per case. The model is left unchanged.
    """
    regions = [_regions(*each, settings.shifts) for each in zip(images, masks, seeds, strict=True)]
    copies = (copy for each in zip(images, regions, seeds, strict=True) for copy in _copies(*each))
    scores: list[float] = []
    with evaluating(classifier, settings.at_once) as evaluate:
        while batch := list(islice(copies, settings.at_once)):
            scores += evaluate.scores(torch.stack(batch))[:, column].tolist()
    logits = iter(scores)
    return [_drops(next(logits), list(islice(logits, len(each) * len(FILLS))), len(each)) for each in regions]


def _regions(image: OneImage, mask: Mask, seed: int, shifts: int) -> list[Mask]:
    """The mask and its shifted regions; nothing where the mask is empty."""
    if mask.shape != tuple(image.shape[1:]):
        raise ValueError(
            f"image and mask must share the model's grid, got {tuple(image.shape[1:])} and {mask.shape}; "
            "call mask_to_grid first"
        )
    if not mask.any():
        return []
    generator = generator_for(seed, "shifts")
    return [mask, *(_shifted(mask, _picture(image), shifts, generator) or shifted_masks(mask, shifts, generator))]


def _picture(image: OneImage) -> Window:
    """The part of the grid within a uniform border, which padding or the film itself may have left."""
    first = image[(slice(None), *[slice(0, 1)] * (image.ndim - 1))]
    differs = (image != first).any(0).cpu().numpy()
    if not differs.any():
        return tuple(slice(None) for _ in differs.shape)
    return tuple(slice(int(index.min()), int(index.max()) + 1) for index in np.nonzero(differs))


def _shifted(mask: Mask, window: Window, count: int, generator: np.random.Generator) -> list[Mask]:
    """Shifted regions within the window, where replacing pixels can matter; none if the mask exceeds it."""
    inner = mask[window]
    if inner.sum() < mask.sum():
        return []
    regions = []
    for part in shifted_masks(inner, count, generator):
        region = np.zeros_like(mask)
        region[window] = part
        regions.append(region)
    return regions


def _copies(image: OneImage, regions: Sequence[Mask], seed: int) -> Iterator[OneImage]:
    """The image itself, then the image with each region replaced by each fill."""
    yield image
    if not regions:
        return
    fills = fills_of(image, seed)
    for region in regions:
        hidden = torch.tensor(np.ascontiguousarray(region), device=image.device)
        for fill in fills:
            yield torch.where(hidden, fill, image)


def _drops(unchanged: float, replaced: Sequence[float], regions: int) -> Drops:
    by_region = np.asarray(replaced, dtype=np.float64).reshape(regions, len(FILLS))
    return Drops(unchanged, by_region[0] if regions else np.zeros(0), by_region[1:])


def fills_of(image: OneImage, seed: int) -> tuple[OneImage, OneImage, OneImage]:
    """The blurred image, its mean, and Gaussian noise with its mean and standard deviation, channel by channel."""
    space = tuple(range(1, image.ndim))
    mean, spread = image.mean(space, keepdim=True), image.std(space, correction=0, keepdim=True)
    drawn = torch.randn(image.shape, generator=torch.Generator().manual_seed(seed_for(seed, "noise")))
    return _blurred(image), mean.expand_as(image), mean + spread * drawn.to(image)


def _blurred(image: OneImage) -> OneImage:
    """The image after a Gaussian blur along every axis, normalised at the edges."""
    for axis, size in enumerate(image.shape[1:], 1):
        position = torch.arange(size, device=image.device, dtype=image.dtype)
        weights = torch.exp(-0.5 * ((position[:, None] - position) / (BLUR * size)) ** 2)
        weights = weights / weights.sum(1, keepdim=True)
        image = torch.tensordot(image, weights, dims=([axis], [1])).movedim(-1, axis)
    return image
