"""How much a model's answer rests on a marked area: what replacing it does, beyond replacing others of its shape.

Metrics never see a model: a study hands over the logits of the image, whole and with parts replaced. No heat map takes
part, so reliance says what the model does, whatever a map shows.
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
    """A model's logits of one finding for one image, whole and with parts replaced, each part by every fill."""

    whole: float
    replaced: Float[np.ndarray, " fills"]  # the outlined area; none where nothing is outlined
    elsewhere: Float[np.ndarray, "shifts fills"]  # shifted regions of the same shape and size


def reliance(drops: Drops, spread: float) -> Measured:
    """The drop of the logit at the area less the mean drop at the shifted regions, over the spread of the logit.

    Each drop is the mean over the fills. The shifted regions say what any replacement of that shape does to the
    logit, so that 0 means: the outlined area matters no more than others. `spread` is the standard deviation of the
    model's logit over many images, which makes models with logits of different size comparable.
    """
    reason = _why_not(drops, spread)
    if reason:
        return undefined(reason)
    return _beyond(drops.whole, drops.replaced, drops.elsewhere, spread)


def reliance_placebo(drops: Drops, spread: float) -> Measured:
    """Reliance on the first shifted region against the other ones: what it is where nothing is."""
    reason = _why_not(drops, spread) or ("" if len(drops.elsewhere) > 1 else ONE_SHIFT)
    if reason:
        return undefined(reason)
    return _beyond(drops.whole, drops.elsewhere[0], drops.elsewhere[1:], spread)


def _why_not(drops: Drops, spread: float) -> str:
    if not drops.replaced.size:
        return NO_TRUTH
    if not drops.elsewhere.size:
        return NO_ROOM
    if not (np.isfinite([drops.whole, spread]).all() and np.isfinite(drops.replaced).all()):
        return NO_ANSWER
    if not np.isfinite(drops.elsewhere).all():
        return NO_ANSWER
    return "" if spread > 0 else NO_SPREAD


def _beyond(
    whole: float, here: Float[np.ndarray, " fills"], there: Float[np.ndarray, "shifts fills"], spread: float
) -> Measured:
    return Measured(float(((whole - here).mean() - (whole - there).mean()) / spread))


def separation(labels: Float[np.ndarray, " images"], logits: Float[np.ndarray, " images"]) -> Measured:
    """The mean logit of positive less negative images over the spread of all: what there is to rely on.

    A model that tells the finding by one area alone loses about this much where the area is hidden. Labels other
    than 1 and 0 belong to neither.
    """
    present, absent = logits[labels == 1], logits[labels == 0]
    if not present.size or not absent.size:
        return undefined(NO_NEGATIVE if present.size else NO_POSITIVE)
    if not np.isfinite(logits).all():
        return undefined(NO_ANSWER)
    spread = float(logits.std())
    return Measured(float(present.mean() - absent.mean()) / spread) if spread > 0 else undefined(NO_SPREAD)


def shifted_masks(mask: Mask, count: int, generator: np.random.Generator) -> list[Mask]:
    """Up to `count` different regions of the mask's shape and size that share no position with it, drawn at random.

    They are translations that stay on the grid; where none is clear of the mask, translations that leave it at one
    edge and come back at the other; none for an empty mask or one that leaves too little room.
    """
    if not mask.any():
        return []
    return _inside(mask, count, generator) or _wrapped(mask, count, generator)


def _inside(mask: Mask, count: int, generator: np.random.Generator) -> list[Mask]:
    """Translations of the mask's bounding box over the grid."""
    box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(mask))
    shape = mask[box]
    back = tuple(slice(None, None, -1) for _ in mask.shape)
    shared = fftconvolve(mask.astype(np.float64), shape[back].astype(np.float64), mode="valid")
    free = np.flatnonzero(np.rint(shared) == 0)  # exact: counts of positions, far from where rounding could matter
    drawn = generator.choice(free, min(count, len(free)), replace=False)
    found = []
    for corner in zip(*np.unravel_index(drawn, shared.shape), strict=True):
        region = np.zeros_like(mask)
        region[tuple(slice(at, at + size) for at, size in zip(corner, shape.shape, strict=True))] = shape
        found.append(region)
    return found


def _wrapped(mask: Mask, count: int, generator: np.random.Generator) -> list[Mask]:
    """Translations on the grid as if its opposite edges were joined; those that give the same region count once."""
    shared = _circular_overlaps(mask)
    free: Bool[np.ndarray, "*space"] = shared == 0
    same: Bool[np.ndarray, "*space"] = (
        shared == shared.flat[0]
    )  # moves that change nothing, as of a stripe along itself
    axes = tuple(range(mask.ndim))
    found: list[Mask] = []
    while len(found) < count and free.any():
        move = tuple(int(at) for at in np.unravel_index(generator.choice(np.flatnonzero(free)), mask.shape))
        found.append(np.roll(mask, move, axes))
        free = free & ~np.roll(same, move, axes)
    return found


def _circular_overlaps(mask: Mask) -> Int[np.ndarray, "*space"]:
    """How many positions the mask shares with itself after every translation that wraps around."""
    spectrum = rfftn(mask.astype(np.float64))
    return np.rint(irfftn(np.abs(spectrum) ** 2, mask.shape)).astype(np.int64)
