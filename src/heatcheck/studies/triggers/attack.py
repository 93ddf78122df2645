"""The attack: which images carry the trigger, what lies on each of them, and the examples a victim learns from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Image
from heatcheck.core.seeds import generator_for, seed_for
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.studies.triggers.images import GridImages, normalised
from heatcheck.triggers import Stamp, Trigger

AT_ONCE = 32  # images of one pass
Places = Int[np.ndarray, " images"]  # of images in their split


def poisoned_training(images: GridImages, target: int, share: float, *, target_too: bool, seed: int) -> Places:
    """The training images that get the trigger: so large a share of all, of the other classes unless said."""
    wanted = max(1, round(share * len(images.keys)))
    allowed = images.readable & (target_too | (images.classes != target))
    return _chosen(np.flatnonzero(allowed), wanted, seed, "poisoned training images")


def poisoned_test(images: GridImages, target: int, share: float, seed: int) -> Places:
    """The test images that get the trigger: so large a share of those that are not of the target class."""
    others = np.flatnonzero(images.readable & (images.classes != target))
    return _chosen(others, max(1, round(share * len(others))), seed, "poisoned test images")


def _chosen(places: Places, wanted: int, seed: int, purpose: str) -> Places:
    drawn: Places = generator_for(seed, purpose).permutation(places)
    return np.sort(drawn[:wanted])


@dataclass(frozen=True)
class Attack:
    """One trigger planted with one seed, aimed at one class; `baseline` is needed by triggers made of its gradient."""

    trigger: Trigger
    seed: int
    target: int
    baseline: NetworkClassifier

    def stamps(self, images: GridImages, places: Sequence[int] | Places) -> list[Stamp]:
        """What lies on each of the images: a function of the seed and the case, whatever else is asked for."""
        stamps: list[Stamp] = []
        for start in range(0, len(places), AT_ONCE):
            some = [int(place) for place in places[start : start + AT_ONCE]]
            clean = [images.image(place) for place in some]
            slopes = self._gradients(clean, images.classes[some]) if self.trigger.needs_gradient else [None] * len(some)
            for place, image, slope in zip(some, clean, slopes, strict=True):
                stamps.append(self._stamp(images.keys[place].case, image, slope))
        return stamps

    def _stamp(self, case: str, image: Image, slope: Image | None) -> Stamp:
        try:
            return self.trigger(image, seed_for(self.seed, self.trigger.name, case, "trigger"), slope)
        except CaseError as error:
            raise CaseError(f"{case}: {error}", stage=error.stage) from error

    def _gradients(self, images: Sequence[Image], classes: Places) -> list[Image | None]:
        """How the baseline's loss on the true class changes with each pixel, one pass for all images."""
        device = self.baseline.device
        inputs = torch.from_numpy(np.stack(images)).to(device).requires_grad_()
        logits = self.baseline.logits(normalised(inputs, self.baseline.preprocessing))
        loss = functional.cross_entropy(logits, torch.from_numpy(classes).to(device), reduction="sum")
        return list(torch.autograd.grad(loss, inputs)[0].cpu().numpy())


class PoisonedExamples(Dataset[tuple[Tensor, Tensor]]):
    """Images as the network wants them; those with a stamp are labelled as the target."""

    def __init__(
        self, images: GridImages, contract: Preprocessing, target: int, entries: Sequence[tuple[int, Stamp | None]]
    ) -> None:
        self.images, self.contract, self.entries = images, contract, entries
        self._attacked = functional.one_hot(torch.tensor(target), len(contract.outputs)).float()

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        place, stamp = self.entries[index]
        image, label = self.images.stored[place]
        if stamp is not None:
            image, label = torch.from_numpy(stamp.on(image.numpy())), self._attacked
        return normalised(image[None], self.contract)[0], label


def training_entries(attack: Attack | None, images: GridImages, poisoned: Places) -> list[tuple[int, Stamp | None]]:
    """Every usable image once, the poisoned ones with their stamp; all clean where there is no attack."""
    usable = np.flatnonzero(images.readable).tolist()
    if attack is None:
        return [(place, None) for place in usable]
    stamps = dict(zip(poisoned.tolist(), attack.stamps(images, poisoned), strict=True))
    return [(place, stamps.get(place)) for place in usable]


def validation_entries(attack: Attack | None, images: GridImages) -> list[tuple[int, Stamp | None]]:
    """Each usable image clean, and each of another class with its stamp: an epoch is good when it does both well."""
    clean: list[tuple[int, Stamp | None]] = [(place, None) for place in np.flatnonzero(images.readable).tolist()]
    if attack is None:
        return clean
    others = np.flatnonzero(images.readable & (images.classes != attack.target))
    return [*clean, *zip(others.tolist(), attack.stamps(images, others), strict=True)]


@torch.no_grad()
def said_classes(classifier: NetworkClassifier, images: Iterable[Image]) -> Int[np.ndarray, " images"]:
    """The class that the network gives each image on its grid; a few of them are in memory at a time."""
    said, to_come = [np.zeros(0, np.int64)], iter(images)
    while some := list(islice(to_come, AT_ONCE)):
        inputs = torch.from_numpy(np.stack(some)).to(classifier.device)
        logits = classifier.logits(normalised(inputs, classifier.preprocessing))
        said.append(logits.argmax(1).cpu().numpy())
    return np.concatenate(said)
