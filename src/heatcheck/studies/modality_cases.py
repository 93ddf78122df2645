"""A case of the modality study: its image, its head, and the mask of its lesion in each modality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.errors import CaseError, ConstantChannelError
from heatcheck.core.orientation import radiological
from heatcheck.core.records import Case, CaseKey, Image, Mask

Masks = Bool[np.ndarray, "modality *space"]


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Which mask counts in which modality."""

    masks: str = "own"  # or shared: the union, for all
    boxes: bool = False
    dilate: int = 0  # pixels, within each slice


@dataclass(frozen=True)
class ModalCase:
    """One case as the study sees it."""

    case: Case
    label: str  # its class
    lesion: Masks  # what is ablated
    masks: Masks  # what maps are scored with: grown, where the rule says so

    @cached_property
    def head(self) -> Mask:
        """Where any modality is not 0."""
        return np.asarray((self.case.image != 0).any(0))


def require_channels(case: Case, modalities: Sequence[str]) -> None:
    """Refuse a case that has not one channel a modality: a single one must not stand for all."""
    if len(case.image) != len(modalities):
        raise CaseError(
            f"{case.key.case} has {len(case.image)} channels and there are {len(modalities)} modalities "
            f"({', '.join(modalities)}); export them all",
            stage="read",
        )


def named(error: Exception, key: CaseKey, modalities: Sequence[str]) -> Exception:
    """The error, which names case and modality where it spoke of a channel."""
    if not isinstance(error, ConstantChannelError):
        return error
    told = ConstantChannelError(error.channel, f"{modalities[error.channel]} of {key.case}")
    return told.with_traceback(error.__traceback__)


def modal_case(case: Case, modalities: Sequence[str], rule: MaskRule) -> ModalCase:
    """The case with its masks; raises CaseError where it has none, or not as many channels as modalities."""
    require_channels(case, modalities)
    if not np.isfinite(case.image).all():
        raise CaseError(f"{case.key.case} has voxels that are no numbers; export it again", stage="read")
    lesion = _lesion(case, modalities, rule)
    label = next(name for name, value in case.key.labels.items() if value == 1)
    grown = _grown(lesion, rule.dilate, case) if rule.dilate else lesion
    return ModalCase(case, label, lesion, grown)


def _lesion(case: Case, modalities: Sequence[str], rule: MaskRule) -> Masks:
    by_modality = _by_modality(case.truth, modalities)
    if not by_modality:
        raise CaseError(f"{case.key.case} has no mask of its lesion; leave the case out", stage="truth")
    shape = case.image.shape[1:]
    for name, mask in by_modality.items():
        if mask.shape != shape:
            raise CaseError(f"the mask of {name} of {case.key.case} has shape {mask.shape}, the image {shape}")
    if rule.masks == "shared":
        by_modality = dict.fromkeys(modalities, _union(by_modality))
    empty = next((name for name in modalities if name not in by_modality or not by_modality[name].any()), "")
    if empty:
        raise CaseError(f"the mask of {empty} of {case.key.case} is empty; leave the case out", stage="truth")
    chosen = np.stack([by_modality[name] for name in modalities])
    return np.stack([boxed(mask) for mask in chosen]) if rule.boxes else chosen


def _by_modality(truth: Mapping[str, Mask], modalities: Sequence[str]) -> dict[str, Mask]:
    """The masks by modality; masks by finding are joined and hold for all."""
    own = {name: truth[name] for name in modalities if name in truth}
    if own or not truth:
        return own
    return dict.fromkeys(modalities, _union(truth))


def _union(masks: Mapping[str, Mask]) -> Mask:
    return np.asarray(np.stack(list(masks.values())).any(0))


def boxed(mask: Mask) -> Mask:
    """The tightest box around the mask."""
    box = np.zeros_like(mask)
    box[tuple(slice(places.min(), places.max() + 1) for places in np.nonzero(mask))] = True
    return box


def _grown(masks: Masks, pixels: int, case: Case) -> Masks:
    """The masks with a margin of so many pixels around them in each slice."""
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * pixels + 1, 2 * pixels + 1))
    axis = slice_axis(case)
    grown = np.empty_like(masks)
    for mask, target in zip(masks, grown, strict=True):
        if axis is None:
            target[...] = cv2.dilate(mask.astype(np.uint8), disc).astype(bool)
            continue
        for one, place in zip(np.moveaxis(mask, axis, 0), np.moveaxis(target, axis, 0), strict=True):
            place[...] = cv2.dilate(np.ascontiguousarray(one, np.uint8), disc).astype(bool) if one.any() else False
    return grown


def slice_axis(case: Case) -> int | None:
    """The axis along which a volume's axial slices lie; None for a picture."""
    if case.image.ndim == 3:
        return None
    return radiological(case.affine, case.image.shape[1:]).axes[0]


def tissue_samples(image: Image, lesion: Masks, chance: np.random.Generator) -> Float[np.ndarray, "modality *space"]:
    """An image of each modality's tissue outside its lesion: every voxel of the head drawn from there at random."""
    filled = np.zeros_like(image)
    for channel, mask, target in zip(image, lesion, filled, strict=True):
        outside = channel[~mask & (channel != 0)]
        if not outside.size:
            raise CaseError("there is no tissue outside the lesion to draw from; set `fills: [zero]`", stage="ablation")
        inside = channel != 0
        target[inside] = chance.choice(outside, int(inside.sum()))
        target[mask & ~inside] = chance.choice(outside, int((mask & ~inside).sum()))
    return filled
