"""The cases of the modality study: folds, masks by modality, and what the network is shown of a case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path

import cv2
import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError, ConstantChannelError
from heatcheck.core.orientation import radiological
from heatcheck.core.records import Case, CaseKey, Image, Mask
from heatcheck.core.seeds import generator_for
from heatcheck.core.tensors import Images
from heatcheck.fitting.folds import Fold
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.classifier import prepared, statistics_of
from heatcheck.running.pseudonyms import pseudonymous

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


@dataclass(frozen=True)
class ModalData:
    """The sources of a study, with the folds as places in the source's index."""

    source: Source
    known: Mapping[str, Source]  # by modality: cases on which it alone tells the class
    folds: tuple[Fold, ...]
    names: Mapping[str, str]  # what each case of the source is called in the run, by its own name


def data_of(source: Source, known: Mapping[str, Source], folds: Sequence[Fold], limit: int | None) -> ModalData:
    """The sources with at most `limit` cases to test in each fold, and as many on which a modality is known."""
    keys = source.index()

    def shortened(fold: Fold) -> Fold:
        kept = {key.case for key in limited([keys[place] for place in fold.test], source.findings, limit)}
        return replace(fold, test=tuple(place for place in fold.test if keys[place].case in kept))

    return ModalData(source, known, tuple(map(shortened, folds)), {key.case: key.case for key in keys})


def under_pseudonyms(data: ModalData, out: Path, limit: int | None) -> ModalData:
    """The same cases in the same folds under other names, and so in another order."""
    keys = data.source.index()
    hidden = pseudonymous(data.source, keys, out)
    names = {original.case: name for name, original in hidden.originals.items()}
    now_at = {key.case: place for place, key in enumerate(hidden.index())}
    folds = tuple(fold.moved([now_at[names[key.case]] for key in keys]) for fold in data.folds)
    known = {
        modality: pseudonymous(source, limited(source.index(), source.findings, limit), out)
        for modality, source in data.known.items()
    }
    return ModalData(hidden, known, folds, names)


def limited(keys: Sequence[CaseKey], classes: Sequence[str], limit: int | None) -> Sequence[CaseKey]:
    """At most so many of the cases, in their order: the first of each class in turn, so that none is lost."""
    if limit is None:
        return keys
    by_class = [[place for place, key in enumerate(keys) if key.labels.get(name) == 1] for name in classes]
    in_turn = [place for place in chain.from_iterable(zip_longest(*by_class)) if place is not None]
    return [keys[place] for place in sorted(in_turn[:limit])]


KINDS = ("modality", "lesion")
Shown = Bool[np.ndarray, "coalition modality"]


@dataclass(frozen=True, slots=True)
class Ablation:
    """What is taken away, and what takes its place."""

    kind: str  # modality, or lesion
    fill: str  # zero, or tissue


@dataclass(frozen=True)
class Views:
    """A batch of cases on the model's grid, intact and under each ablation of all modalities."""

    intact: Images
    ablated: Mapping[Ablation, Images]


def views_of(
    cases: Sequence[ModalCase], contract: Preprocessing, fills: Sequence[str], seed: int, device: torch.device
) -> Views:
    """The cases, ready for every subset."""
    intact, ablated = list[Tensor](), {Ablation(kind, fill): list[Tensor]() for kind in KINDS for fill in fills}
    for case in cases:
        image = case.case.image
        statistics = statistics_of(image, contract)
        intact.append(prepared(image, contract, statistics))
        for fill in fills:
            other = _other(case, fill, seed)
            for kind in KINDS:
                replaced = other if kind == "modality" else np.where(case.lesion, other, image)
                ablated[Ablation(kind, fill)].append(prepared(replaced, contract, statistics))
    return Views(torch.stack(intact).to(device), {which: torch.stack(own).to(device) for which, own in ablated.items()})


def _other(case: ModalCase, fill: str, seed: int) -> Image:
    """What takes the voxels' place."""
    if fill == "zero":
        return np.zeros_like(case.case.image)
    return tissue_samples(case.case.image, case.lesion, generator_for(seed, case.case.key.case, "tissue"))


@torch.no_grad()
def told(classifier: NetworkClassifier, images: Images) -> Int[np.ndarray, " batch"]:
    """The place of the class that the network tells for each image."""
    return logits_of(classifier, images).argmax(1).cpu().numpy()


@torch.no_grad()
def logits_of(classifier: NetworkClassifier, images: Images) -> Float[Tensor, "batch class"]:
    """The network's logits, which must be numbers."""
    logits = classifier.logits(images)
    if not logits.isfinite().all():
        raise CaseError("the model's output is not finite", stage="model")
    return logits


def told_by_coalition(
    classifier: NetworkClassifier, views: Views, ablation: Ablation, shown: Shown
) -> Int[np.ndarray, "coalition batch"]:
    """The class told for each case with each subset of its modalities: one pass of the batch a subset."""
    return np.stack([told(classifier, _mixed(views, ablation, row)) for row in shown])


def _mixed(views: Views, ablation: Ablation, shown: Bool[np.ndarray, " modality"]) -> Images:
    """The batch with the modalities that are shown, and the others ablated."""
    chosen = torch.from_numpy(shown).to(views.intact.device).reshape(1, -1, *[1] * (views.intact.ndim - 2))
    return torch.where(chosen, views.intact, views.ablated[ablation])
