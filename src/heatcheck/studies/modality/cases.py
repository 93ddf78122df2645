"""The cases of the modality study: folds, masks by modality, and the ablated images shown to the network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from heatcheck.running.cases import limited
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.studies.modality.vocabulary import PHI, Fill, MaskSource

Masks = Bool[np.ndarray, "modality *space"]
Subsets = Bool[np.ndarray, "subset modality"]  # which modalities are shown


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Which mask is used in which modality."""

    masks: MaskSource = "own"
    boxes: bool = False
    dilate: int = 0  # pixels, within each slice


@dataclass(frozen=True)
class ModalCase:
    """One case with its masks."""

    case: Case
    label: str  # its class
    lesion: Masks  # what is ablated
    masks: Masks  # what maps are scored with: dilated where the rule says so

    @cached_property
    def head(self) -> Mask:
        """The voxels where any modality is not 0."""
        return np.asarray((self.case.image != 0).any(0))


def require_channels(case: Case, modalities: Sequence[str]) -> None:
    """Refuse a case without one channel per modality: a single one must not stand for all."""
    if len(case.image) != len(modalities):
        raise CaseError(
            f"{case.key.case} must have {len(modalities)} channels ({', '.join(modalities)}), got {len(case.image)}; "
            "export all modalities",
            stage="read",
        )


def with_modality(error: Exception, key: CaseKey, modalities: Sequence[str]) -> Exception:
    """The error, with case and modality instead of the number of a channel."""
    if not isinstance(error, ConstantChannelError):
        return error
    renamed = ConstantChannelError(error.channel, f"{modalities[error.channel]} of {key.case}")
    return renamed.with_traceback(error.__traceback__)


def modal_case(case: Case, modalities: Sequence[str], rule: MaskRule) -> ModalCase:
    """The case with its masks; raises CaseError where it has none, or not one channel per modality."""
    require_channels(case, modalities)
    if not np.isfinite(case.image).all():
        raise CaseError(f"{case.key.case} has voxels that are not finite; export it again", stage="read")
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
    by_modality = masks_by_modality(by_modality, modalities, rule)
    empty = next((name for name in modalities if name not in by_modality or not by_modality[name].any()), "")
    if empty:
        raise CaseError(f"the mask of {empty} of {case.key.case} is empty; leave the case out", stage="truth")
    chosen = np.stack([by_modality[name] for name in modalities])
    return np.stack([boxed(mask) for mask in chosen]) if rule.boxes else chosen


def masks_by_modality(truth: Mapping[str, Mask], modalities: Sequence[str], rule: MaskRule) -> dict[str, Mask]:
    """The mask of each modality, or where the rule says so the union of all; none where there is no mask."""
    masks = _by_modality(truth, modalities)
    return dict.fromkeys(modalities, _union(masks)) if rule.masks == "shared" and masks else masks


def _by_modality(truth: Mapping[str, Mask], modalities: Sequence[str]) -> dict[str, Mask]:
    """The masks by modality; masks by finding are joined and hold for all."""
    named = {name: truth[name] for name in modalities if name in truth}
    if named or not truth:
        return named
    return dict.fromkeys(modalities, _union(truth))


def _union(masks: Mapping[str, Mask]) -> Mask:
    return np.asarray(np.stack(list(masks.values())).any(0))


def boxed(mask: Mask) -> Mask:
    """The tightest box around the mask."""
    box = np.zeros_like(mask)
    box[tuple(slice(indices.min(), indices.max() + 1) for indices in np.nonzero(mask))] = True
    return box


def _grown(masks: Masks, pixels: int, case: Case) -> Masks:
    """The masks dilated by this many pixels in each slice."""
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * pixels + 1, 2 * pixels + 1))
    axis = slice_axis(case)
    grown = np.empty_like(masks)
    for mask, target in zip(masks, grown, strict=True):
        if axis is None:
            target[...] = cv2.dilate(mask.astype(np.uint8), disc).astype(bool)
            continue
        for before, after in zip(np.moveaxis(mask, axis, 0), np.moveaxis(target, axis, 0), strict=True):
            after[...] = (
                cv2.dilate(np.ascontiguousarray(before, np.uint8), disc).astype(bool) if before.any() else False
            )
    return grown


def slice_axis(case: Case) -> int | None:
    """The axis of a volume along which its axial slices lie; None for a 2D image."""
    if case.image.ndim == 3:
        return None
    return radiological(case.affine, case.image.shape[1:]).axes[0]


def tissue_samples(image: Image, lesion: Masks, chance: np.random.Generator) -> Float[np.ndarray, "modality *space"]:
    """An image whose head voxels are drawn at random from each modality's tissue outside its lesion."""
    filled = np.zeros_like(image)
    for channel, mask, target in zip(image, lesion, filled, strict=True):
        outside = channel[~mask & (channel != 0)]
        if not outside.size:
            raise CaseError(
                "there is no tissue outside the lesion to fill it with; set `fills: [zero]`", stage="ablation"
            )
        inside = channel != 0
        target[inside] = chance.choice(outside, int(inside.sum()))
        target[mask & ~inside] = chance.choice(outside, int((mask & ~inside).sum()))
    return filled


@dataclass(frozen=True)
class ModalData:
    """The sources of a study, with the folds as positions in the source's index."""

    source: Source
    known: Mapping[str, Source]  # by modality: cases in which only it is informative
    folds: tuple[Fold, ...]
    names: Mapping[str, str]  # of the cases in the run, by their name in the source


def data_of(source: Source, known: Mapping[str, Source], folds: Sequence[Fold], limit: int | None) -> ModalData:
    """The sources with the test cases of at most `limit` patients in each fold."""
    keys = source.index()

    def shortened(fold: Fold) -> Fold:
        kept = {key.case for key in limited([keys[index] for index in fold.test], source.findings, limit)}
        return replace(fold, test=tuple(index for index in fold.test if keys[index].case in kept))

    return ModalData(source, known, tuple(map(shortened, folds)), {key.case: key.case for key in keys})


def under_pseudonyms(data: ModalData, out: Path, limit: int | None) -> ModalData:
    """The same cases in the same folds under pseudonyms, and therefore in another order."""
    keys = data.source.index()
    hidden = pseudonymous(data.source, keys, out)
    names = {original.case: name for name, original in hidden.originals.items()}
    positions = {key.case: index for index, key in enumerate(hidden.index())}
    folds = tuple(fold.moved([positions[names[key.case]] for key in keys]) for fold in data.folds)
    known = {
        modality: pseudonymous(source, limited(source.index(), source.findings, limit), out)
        for modality, source in data.known.items()
    }
    return ModalData(hidden, known, folds, names)


@dataclass(frozen=True, slots=True)
class Ablation:
    """What is removed, and what replaces it."""

    kind: str  # modality, or lesion
    fill: Fill


@dataclass(frozen=True)
class Views:
    """A batch of cases on the model's grid, intact and under each ablation of all modalities."""

    intact: Images
    ablated: Mapping[Ablation, Images]


def views_of(
    cases: Sequence[ModalCase], contract: Preprocessing, fills: Sequence[Fill], seed: int, device: torch.device
) -> Views:
    """The cases, intact and under each ablation."""
    intact, ablated = list[Tensor](), {Ablation(kind, fill): list[Tensor]() for kind in PHI for fill in fills}
    for case in cases:
        image = case.case.image
        statistics = statistics_of(image, contract)
        intact.append(prepared(image, contract, statistics))
        for fill in fills:
            replacement = _replacement(case, fill, seed)
            for kind in PHI:
                replaced = replacement if kind == "modality" else np.where(case.lesion, replacement, image)
                ablated[Ablation(kind, fill)].append(prepared(replaced, contract, statistics))
    return Views(torch.stack(intact).to(device), {key: torch.stack(each).to(device) for key, each in ablated.items()})


def _replacement(case: ModalCase, fill: Fill, seed: int) -> Image:
    """The image that ablated voxels are taken from."""
    if fill == "zero":
        return np.zeros_like(case.case.image)
    return tissue_samples(case.case.image, case.lesion, generator_for(seed, case.case.key.case, "tissue"))


@torch.no_grad()
def predicted_classes(classifier: NetworkClassifier, images: Images) -> Int[np.ndarray, " batch"]:
    """The index of the predicted class of each image."""
    return logits_of(classifier, images).argmax(1).cpu().numpy()


@torch.no_grad()
def logits_of(classifier: NetworkClassifier, images: Images) -> Float[Tensor, "batch class"]:
    """The network's logits, which must be finite."""
    logits = classifier.logits(images)
    if not logits.isfinite().all():
        raise CaseError("the model's output is not finite; check its weights and this image", stage="model")
    return logits


def predicted_by_subset(
    classifier: NetworkClassifier, views: Views, ablation: Ablation, subsets: Subsets
) -> Int[np.ndarray, "subset batch"]:
    """The predicted class of each case with each subset of its modalities, one forward pass per subset."""
    return np.stack([predicted_classes(classifier, _mixed(views, ablation, shown)) for shown in subsets])


def _mixed(views: Views, ablation: Ablation, shown: Bool[np.ndarray, " modality"]) -> Images:
    """The batch with the modalities that are shown, and the others ablated."""
    chosen = torch.from_numpy(shown).to(views.intact.device).reshape(1, -1, *[1] * (views.intact.ndim - 2))
    return torch.where(chosen, views.intact, views.ablated[ablation])
