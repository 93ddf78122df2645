"""What the network is shown: each subset of the modalities, the others ablated whole or only in their lesion.

Modalities are prepared apart from one another and with the intact image's statistics, so that one intact and one
ablated image are all that is needed: every subset takes each channel from the one or the other. Nothing is stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Image
from heatcheck.core.seeds import generator_for
from heatcheck.core.tensors import Images
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.classifier import prepared, statistics_of
from heatcheck.studies.modality_cases import ModalCase, tissue_samples

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
