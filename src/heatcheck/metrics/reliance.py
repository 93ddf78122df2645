"""How much a model relies on an outlined area: the effect of replacing it, beyond that of other areas of its shape.

Metrics never see a model: a study passes the logits of the image, intact and with parts replaced. No heat map is
involved, so reliance shows what the model does, whatever a map shows.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.fft import irfftn, rfftn
from scipy.signal import fftconvolve

from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import NO_NEGATIVE, NO_POSITIVE, NO_TRUTH, undefined

NO_ROOM = "no room for a shifted region: the outlined area is too large"
ONE_SHIFT = "fewer than two shifted regions"
NO_SPREAD = "the model gives every image the same logit"
NO_ANSWER = "the model's logit is not a finite number"

_OURS = "beyond Baniecki et al. 2023, arXiv:2311.04813"

study_metric(
    "reliance",
    label="Reliance",
    summary="How far the model's score falls when the outlined area is hidden, beyond what hiding areas of the same "
    "shape elsewhere does, in units of how much the score differs between images.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "reliance_placebo",
    label="Reliance, placebo",
    summary="The same for an area of that shape elsewhere, where nothing is outlined: near 0 unless chance alone "
    "makes the score fall.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)


@dataclass(frozen=True, slots=True)
class Drops:
    """A model's logits of one finding for one image, intact and with parts replaced, each part by every fill."""

    whole: float
    replaced: Float[np.ndarray, " fills"]  # without the outlined area; empty where nothing is outlined
    elsewhere: Float[np.ndarray, "shifts fills"]  # without shifted regions of the same shape and size


def reliance(drops: Drops, spread: float) -> Measured:
    """The drop of the logit at the area less the mean drop at the shifted regions, over the spread of the logit.

    Each drop is the mean over the fills. The shifted regions show what any replacement of that shape does to the
    logit, so that 0 means that the outlined area matters no more than others. `spread` is the standard deviation of
    the model's logit over many images, which makes models with logits of different scale comparable.
    """
    if reason := _undefined_reason(drops, spread):
        return undefined(reason)
    return _excess_drop(drops.replaced, drops.elsewhere, drops.whole, spread)


def reliance_placebo(drops: Drops, spread: float) -> Measured:
    """Reliance on the first shifted region relative to the others: its size where nothing is outlined."""
    if reason := _undefined_reason(drops, spread) or ("" if len(drops.elsewhere) > 1 else ONE_SHIFT):
        return undefined(reason)
    return _excess_drop(drops.elsewhere[0], drops.elsewhere[1:], drops.whole, spread)


def _undefined_reason(drops: Drops, spread: float) -> str:
    if not drops.replaced.size:
        return NO_TRUTH
    if not drops.elsewhere.size:
        return NO_ROOM
    if not all(np.isfinite(values).all() for values in (drops.whole, spread, drops.replaced, drops.elsewhere)):
        return NO_ANSWER
    return "" if spread > 0 else NO_SPREAD


def _excess_drop(
    here: Float[np.ndarray, " fills"], elsewhere: Float[np.ndarray, "shifts fills"], intact: float, spread: float
) -> Measured:
    return Measured(float(((intact - here).mean() - (intact - elsewhere).mean()) / spread))


def separation(labels: Float[np.ndarray, " images"], logits: Float[np.ndarray, " images"]) -> Measured:
    """The mean logit of positive less negative images over the spread of all: the scale of reliance.

    A model that recognises the finding by one area alone loses about this much when the area is hidden. Images with
    labels other than 1 and 0 count only for the spread.
    """
    present, absent = logits[labels == 1], logits[labels == 0]
    if not present.size or not absent.size:
        return undefined(NO_NEGATIVE if present.size else NO_POSITIVE)
    if not np.isfinite(logits).all():
        return undefined(NO_ANSWER)
    spread = float(logits.std())
    return Measured(float(present.mean() - absent.mean()) / spread) if spread > 0 else undefined(NO_SPREAD)


def shifted_masks(mask: Mask, count: int, generator: np.random.Generator) -> list[Mask]:
    """Up to `count` different translations of the mask that do not overlap it, drawn at random.

    They stay on the grid; if every such translation overlaps the mask, they wrap around its edges. None for an empty
    mask or one that leaves too little room.
    """
    if not mask.any():
        return []
    return _on_grid(mask, count, generator) or _wrapped(mask, count, generator)


def _on_grid(mask: Mask, count: int, generator: np.random.Generator) -> list[Mask]:
    """Translations of the mask's bounding box over the grid."""
    box = tuple(slice(int(indices.min()), int(indices.max()) + 1) for indices in np.nonzero(mask))
    shape = mask[box]
    # the correlation of the mask with its shape is their overlap at every position: a convolution with it reversed
    reversed_shape = shape[tuple(slice(None, None, -1) for _ in mask.shape)]
    shared = fftconvolve(mask.astype(np.float64), reversed_shape.astype(np.float64), mode="valid")
    free = np.flatnonzero(np.rint(shared) == 0)  # exact, because overlaps are integers
    drawn = generator.choice(free, min(count, len(free)), replace=False)
    regions = []
    for corner in zip(*np.unravel_index(drawn, shared.shape), strict=True):
        region = np.zeros_like(mask)
        region[tuple(slice(start, start + size) for start, size in zip(corner, shape.shape, strict=True))] = shape
        regions.append(region)
    return regions


def _wrapped(mask: Mask, count: int, generator: np.random.Generator) -> list[Mask]:
    """Translations that wrap around the edges of the grid; those that give the same region count once."""
    shared = _circular_overlaps(mask)
    free: Bool[np.ndarray, "*space"] = shared == 0
    # translations that map the mask onto itself, such as that of a stripe along its length
    same: Bool[np.ndarray, "*space"] = shared == shared.flat[0]
    axes = tuple(range(mask.ndim))
    regions: list[Mask] = []
    while len(regions) < count and free.any():
        shift = tuple(int(step) for step in np.unravel_index(generator.choice(np.flatnonzero(free)), mask.shape))
        regions.append(np.roll(mask, shift, axes))
        free = free & ~np.roll(same, shift, axes)
    return regions


def _circular_overlaps(mask: Mask) -> Int[np.ndarray, "*space"]:
    """The overlap of the mask with itself after every translation that wraps around: its autocorrelation."""
    spectrum = rfftn(mask.astype(np.float64))
    return np.rint(irfftn(np.abs(spectrum) ** 2, mask.shape)).astype(np.int64)
