"""How much a model relies on an outlined area: the effect of replacing it, beyond that of other areas of its shape.

Metrics never see a model: a study passes the logits of the image, intact and with parts replaced, and those of films
without the finding on which the same areas were replaced. No heat map is involved, so reliance shows what the model
does, whatever a map shows.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.fft import irfftn, rfftn
from scipy.signal import fftconvolve

from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import NO_NEGATIVE, NO_POSITIVE, NO_TRUTH, undefined

NO_ROOM = "no room for a shifted region: the outlined area is too large"
NO_SPREAD = "the model gives every image the same logit"
NO_ANSWER = "the model's logit is not a finite number"

_OURS = "beyond Baniecki et al. 2023, arXiv:2311.04813"

study_metric(
    "reliance",
    study="alignment",
    label="Reliance",
    summary="How far the model's score falls when the outlined area is hidden, beyond what hiding areas of the same "
    "shape elsewhere does, and beyond what the same comparison gives on images without the finding, in units of how "
    "much the score differs between images.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "reliance_placebo",
    study="alignment",
    label="Reliance, placebo",
    summary="The same comparison for that area on images without the finding: what the place alone does to the score. "
    "It is subtracted from reliance.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "reliance_added",
    study="alignment",
    label="Area added",
    summary="How far the outlined area, put on images without the finding, raises their score, beyond what the same "
    "area of such an image does, in the same units: high where the area suffices, even if another one serves as well.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)


@dataclass(frozen=True, slots=True)
class Drops:
    """A model's logits of one finding for one image, intact and with parts replaced, each part by every fill."""

    whole: float
    replaced: Float[np.ndarray, " fills"]  # without the outlined area; empty where nothing is outlined
    elsewhere: Float[np.ndarray, "shifts fills"]  # without shifted regions of the same shape and size
    absent: tuple["Drops", ...] = ()  # of films without the finding, at the same places
    added: Float[np.ndarray, " films"] = field(default_factory=lambda: np.zeros(0))  # those films with the area put in
    swapped: Float[np.ndarray, " films"] = field(default_factory=lambda: np.zeros(0))  # with that of another of them

    @property
    def excess(self) -> float:
        """The drop of the logit at the area less the mean drop at the shifted regions, each the mean over the fills."""
        return float(self.elsewhere.mean() - self.replaced.mean())

    @property
    def finite(self) -> bool:
        """Whether every logit is a number."""
        own = np.concatenate([[self.whole], self.replaced, self.elsewhere.ravel(), self.added, self.swapped])
        return bool(np.isfinite(own).all()) and all(film.finite for film in self.absent)


def reliance(drops: Drops, spread: float) -> Measured:
    """The excess drop at the area less that on films without the finding, over the spread of the logit.

    The shifted regions show what any replacement of that shape does to this image, and the films without the finding
    what a replacement at that place does where there is nothing to find: 0 means that what the area shows matters no
    more than any other. `spread` is the standard deviation of the model's logit over many images, which makes models
    with logits of different scale comparable.
    """
    if reason := _undefined_reason(drops, spread):
        return undefined(reason)
    return Measured((drops.excess - _mean_excess(drops.absent)) / spread)


def reliance_placebo(drops: Drops, spread: float) -> Measured:
    """The excess drop at the same place on films without the finding: what the place alone does."""
    if reason := _undefined_reason(drops, spread):
        return undefined(reason)
    return Measured(_mean_excess(drops.absent) / spread)


def reliance_added(drops: Drops, spread: float) -> Measured:
    """The logit of films without the finding with the area put in, less that with each other's, over the spread.

    Putting in the same area of another such film shows what the seam does.
    """
    if reason := _undefined_reason(drops, spread):
        return undefined(reason)
    return Measured(float(drops.added.mean() - drops.swapped.mean()) / spread)


def _mean_excess(films: tuple[Drops, ...]) -> float:
    return float(np.mean([film.excess for film in films]))


def _undefined_reason(drops: Drops, spread: float) -> str:
    if not drops.replaced.size:
        return NO_TRUTH
    if not drops.elsewhere.size:
        return NO_ROOM
    if not drops.absent:
        return NO_NEGATIVE
    if not (np.isfinite(spread) and drops.finite):
        return NO_ANSWER
    return "" if spread > 0 else NO_SPREAD


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
