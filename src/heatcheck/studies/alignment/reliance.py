"""What a model says of images of which a marked area, or others of the same shape, is replaced.

Shifted regions and noise depend on the case alone, so every network is asked about the same copies and differences
between networks are paired.
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

BLUR = 0.1  # standard deviation of the blur, as a share of each side: no detail is left
OneImage = Float[Tensor, "channel *space"]
Window = tuple[slice, ...]
__all__ = ["BLUR", "FILLS", "Drops", "RelianceSettings", "drops", "fills_of"]


@dataclass(frozen=True, slots=True)
class RelianceSettings:
    """How many regions are compared, and how many copies go through the model together."""

    shifts: int = 4
    at_once: int = 32


def drops(  # the six things it joins
    classifier: Classifier,
    column: int,
    images: Images,
    masks: Sequence[Mask],
    seeds: Sequence[int],
    settings: RelianceSettings,
) -> list[Drops]:
    """The logits of one output for each image, whole and with its mask or a shifted region replaced by each fill.

    Images and masks lie on the model's grid; `seeds` belong to the cases. The model is only asked, and left as it was.
    """
    regions = [_regions(*one, settings.shifts) for one in zip(images, masks, seeds, strict=True)]
    copies = (copy for one in zip(images, regions, seeds, strict=True) for copy in _copies(*one))
    said: list[float] = []
    with evaluating(classifier, settings.at_once) as evaluate:
        while batch := list(islice(copies, settings.at_once)):
            said += evaluate.scores(torch.stack(batch))[:, column].tolist()
    answers = iter(said)
    return [_drops(next(answers), list(islice(answers, len(own) * len(FILLS))), len(own)) for own in regions]


def _regions(image: OneImage, mask: Mask, seed: int, shifts: int) -> list[Mask]:
    """The mask, if it holds anything, and its shifted regions."""
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
    """The part of the grid without empty edges: a film that was padded, or one with a blank border."""
    first = image[(slice(None), *[slice(0, 1)] * (image.ndim - 1))]
    drawn = (image != first).any(0).cpu().numpy()
    if not drawn.any():
        return tuple(slice(None) for _ in drawn.shape)
    return tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(drawn))


def _shifted(mask: Mask, window: Window, count: int, generator: np.random.Generator) -> list[Mask]:
    """Shifted regions within a part of the grid, where replacing something can matter; none if the mask leaves it."""
    inner = mask[window]
    if inner.sum() < mask.sum():
        return []
    found = []
    for region in shifted_masks(inner, count, generator):
        whole = np.zeros_like(mask)
        whole[window] = region
        found.append(whole)
    return found


def _copies(image: OneImage, regions: Sequence[Mask], seed: int) -> Iterator[OneImage]:
    """The image itself, then for each region the image with that region replaced by each fill."""
    yield image
    if not regions:
        return
    fills = fills_of(image, seed)
    for region in regions:
        hidden = torch.tensor(np.ascontiguousarray(region), device=image.device)
        for fill in fills:
            yield torch.where(hidden, fill, image)


def _drops(whole: float, said: Sequence[float], regions: int) -> Drops:
    by_region = np.asarray(said, dtype=np.float64).reshape(regions, len(FILLS))
    return Drops(whole, by_region[0] if regions else np.zeros(0), by_region[1:])


def fills_of(image: OneImage, seed: int) -> tuple[OneImage, OneImage, OneImage]:
    """The image blurred, its mean, and Gaussian noise with its mean and spread, channel by channel."""
    space = tuple(range(1, image.ndim))
    mean, spread = image.mean(space, keepdim=True), image.std(space, correction=0, keepdim=True)
    drawn = torch.randn(image.shape, generator=torch.Generator().manual_seed(seed_for(seed, "noise")))
    return _blurred(image), mean.expand_as(image), mean + spread * drawn.to(image)


def _blurred(image: OneImage) -> OneImage:
    """The image after a Gaussian blur along every axis; what lies beyond its edges has no weight."""
    for axis, size in enumerate(image.shape[1:], 1):
        place = torch.arange(size, device=image.device, dtype=image.dtype)
        weights = torch.exp(-0.5 * ((place[:, None] - place) / (BLUR * size)) ** 2)
        weights = weights / weights.sum(1, keepdim=True)
        image = torch.tensordot(image, weights, dims=([axis], [1])).movedim(-1, axis)
    return image
