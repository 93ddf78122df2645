"""A model's logits for images in which the outlined area, or another of the same shape, is replaced.

The same areas are replaced on films without the finding, and the outlined one is put on them. Shifted regions, films
and noise depend on the case alone: every network sees the same copies, so that differences between networks are paired.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.contracts import Classifier
from heatcheck.core.records import CaseKey, Mask
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
    films: int = 2  # without the finding, on which the same regions are replaced
    at_once: int = 32  # copies per forward pass


@dataclass(frozen=True, slots=True)
class Probe:
    """An image with its mask, both on the model's grid, films without the finding, and the seed of the case."""

    image: OneImage
    mask: Mask
    absent: Sequence[OneImage]
    seed: int


def drops(
    classifier: Classifier, columns: Sequence[int], probes: Sequence[Probe], settings: RelianceSettings
) -> list[list[Drops]]:
    """The logits of each output for each probe: unchanged, with its mask or a shifted region replaced by each fill.

    Then the same for the films without the finding, and those with the mask's area of the image, or of the next film,
    put in. The model is left unchanged.
    """
    regions = [_regions(probe.image, probe.mask, probe.seed, settings.shifts) for probe in probes]
    stacks = (stack for each in zip(probes, regions, strict=True) for stack in _copies(*each))
    copies = _batches(stacks, settings.at_once)
    with evaluating(classifier, settings.at_once) as evaluate:
        scores = [evaluate.scores(batch)[:, list(columns)].double().cpu().numpy() for batch in copies]
    logits = np.concatenate(scores) if scores else np.zeros((0, len(columns)))
    return [_by_probe(logits[:, place], regions, probes) for place in range(len(columns))]


def _batches(copies: Iterator[Tensor], size: int) -> Iterator[Tensor]:
    """The copies, which come in stacks, in stacks of at most `size`."""
    waiting: list[Tensor] = []
    count = 0
    for stack in copies:
        for part in (stack[start : start + size] for start in range(0, len(stack), size)):
            if count + len(part) > size:
                yield torch.cat(waiting)
                waiting, count = [], 0
            waiting.append(part)
            count += len(part)
    if waiting:
        yield torch.cat(waiting)


def _by_probe(
    logits: Float[np.ndarray, " copies"], regions: Sequence[Sequence[Mask]], probes: Sequence[Probe]
) -> list[Drops]:
    left = iter(logits.tolist())
    found = []
    for hidden, probe in zip(regions, probes, strict=True):
        own = _drops(left, len(hidden))
        films = len(probe.absent) if hidden else 0
        absent = tuple(_drops(left, len(hidden)) for _ in range(films))
        added, swapped = (np.array(list(islice(left, films))) for _ in range(2))
        found.append(replace(own, absent=absent, added=added, swapped=swapped))
    return found


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


def _copies(probe: Probe, regions: Sequence[Mask]) -> Iterator[Images]:
    """The copies of the image, then those of each film without the finding, then these with the area put in."""
    yield from _replaced(probe.image, regions, probe.seed)
    if not (regions and probe.absent):
        return
    for number, film in enumerate(probe.absent, 1):
        yield from _replaced(film, regions, seed_for(probe.seed, number))
    films = torch.stack(list(probe.absent))
    area = torch.tensor(np.ascontiguousarray(probe.mask), device=films.device)
    yield torch.where(area, probe.image, films)
    yield torch.where(area, films.roll(1, 0), films)


def _replaced(image: OneImage, regions: Sequence[Mask], seed: int) -> Iterator[Images]:
    """The image itself, then the image with each region replaced by each fill."""
    yield image[None]
    if regions:
        fills = torch.stack(fills_of(image, seed))
        hidden = torch.from_numpy(np.stack(regions)).to(image.device)
        yield torch.where(hidden[:, None, None], fills, image).flatten(0, 1)


def _drops(logits: Iterator[float], regions: int) -> Drops:
    """The drops of one film, from the logits of its copies in their order."""
    whole = next(logits)
    if not regions:
        return Drops(whole, np.zeros(0), np.zeros((0, len(FILLS))))
    by_region = np.array(list(islice(logits, regions * len(FILLS)))).reshape(-1, len(FILLS))
    return Drops(whole, by_region[0], by_region[1:])


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


def partners(positives: Sequence[CaseKey], negatives: Sequence[CaseKey], count: int, seed: int) -> list[list[int]]:
    """For each positive case the places of `count` negative ones, of other patients, each of them used about as often.

    One after the other is dealt out of a shuffled list, so that few films do not serve for all.
    """
    order = generator_for(seed, "films without the finding").permutation(len(negatives)).tolist()
    dealt, found = 0, []
    for key in positives:
        turned = order[dealt % len(order) :] + order[: dealt % len(order)] if order else []
        others = [place for place in turned if negatives[place].patient != key.patient]
        found.append(others[:count])
        dealt += count
    return found
