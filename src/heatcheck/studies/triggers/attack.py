"""The attack: which images get the trigger, its stamp on each of them, and the examples a poisoned model is fit to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Image
from heatcheck.core.seeds import generator_for, seed_for
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.studies.triggers.images import GridImages, normalised
from heatcheck.triggers import Stamp, Trigger

BATCH = 32  # images of one pass
Positions = Int[np.ndarray, " images"]  # in their split


def poisoned_training(images: GridImages, target: int, share: float, *, target_too: bool, seed: int) -> Positions:
    """The training images that get the trigger: a share of all, taken from the other classes unless `target_too`."""
    wanted = max(1, round(share * len(images.keys)))
    allowed = images.readable & (target_too | (images.classes != target))
    return _chosen(np.flatnonzero(allowed), wanted, seed, "poisoned training images")


def poisoned_test(images: GridImages, target: int, share: float, seed: int) -> Positions:
    """The test images that get the trigger: a share of those that are not of the target class, and never all.

    Accuracy on clean images is that on the others.
    """
    others = np.flatnonzero(images.readable & (images.classes != target))
    wanted = min(round(share * len(others)), len(others) - 1)
    return _chosen(others, max(1, wanted), seed, "poisoned test images")


def _chosen(positions: Positions, wanted: int, seed: int, purpose: str) -> Positions:
    drawn: Positions = generator_for(seed, purpose).permutation(positions)
    return np.sort(drawn[:wanted])


@dataclass(frozen=True)
class Attack:
    """One trigger planted with one seed, aimed at one class; dynamic triggers need the gradient of the `baseline`."""

    trigger: Trigger
    seed: int
    target: int
    baseline: NetworkClassifier

    def stamps(self, images: GridImages, positions: Sequence[int] | Positions) -> list[Stamp]:
        """The stamp of each image, which depends on the seed and the case alone."""
        stamps: list[Stamp] = []
        for start in range(0, len(positions), BATCH):
            batch = [int(position) for position in positions[start : start + BATCH]]
            clean = [images.image(position) for position in batch]
            slopes: list[Image | None] = [None] * len(batch)
            if self.trigger.needs_gradient:
                slopes = self._gradients(clean, images.classes[batch])
            for position, image, slope in zip(batch, clean, slopes, strict=True):
                stamps.append(self._stamp(images.keys[position].case, image, slope))
        return stamps

    def _stamp(self, case: str, image: Image, slope: Image | None) -> Stamp:
        try:
            return self.trigger(image, seed_for(self.seed, self.trigger.name, case, "trigger"), slope)
        except CaseError as error:
            raise CaseError(f"{case}: {error}", stage=error.stage) from error

    def _gradients(self, images: Sequence[Image], classes: Positions) -> list[Image | None]:
        """How the baseline's loss on the true class changes with each pixel, one pass for all images."""
        device = self.baseline.device
        inputs = torch.from_numpy(np.stack(images)).to(device).requires_grad_()
        logits = self.baseline.logits(normalised(inputs, self.baseline.preprocessing))
        loss = functional.cross_entropy(logits, torch.from_numpy(classes).to(device), reduction="sum")
        return list(torch.autograd.grad(loss, inputs)[0].cpu().numpy())


class PoisonedExamples(Dataset[tuple[Tensor, Tensor]]):
    """Images as the network expects them; those with a stamp are labelled as the target."""

    def __init__(
        self, images: GridImages, contract: Preprocessing, target: int, entries: Sequence[tuple[int, Stamp | None]]
    ) -> None:
        self.images, self.contract, self.entries = images, contract, entries
        self._attacked = functional.one_hot(torch.tensor(target), len(contract.outputs)).float()

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        position, stamp = self.entries[index]
        image, label = self.images.stored[position]
        if stamp is not None:
            image, label = torch.from_numpy(stamp.on(image.numpy())), self._attacked
        return normalised(image[None], self.contract)[0], label


def training_entries(attack: Attack | None, images: GridImages, poisoned: Positions) -> list[tuple[int, Stamp | None]]:
    """Every usable image once, the poisoned ones with their stamp; all clean where there is no attack."""
    usable = np.flatnonzero(images.readable).tolist()
    if attack is None:
        return [(position, None) for position in usable]
    stamps = dict(zip(poisoned.tolist(), attack.stamps(images, poisoned), strict=True))
    return [(position, stamps.get(position)) for position in usable]


def validation_entries(attack: Attack | None, images: GridImages) -> list[tuple[int, Stamp | None]]:
    """Each usable image clean, and each of another class with its stamp: an epoch is good when it does both well."""
    clean = training_entries(None, images, np.zeros(0, int))
    if attack is None:
        return clean
    others = np.flatnonzero(images.readable & (images.classes != attack.target))
    return [*clean, *zip(others.tolist(), attack.stamps(images, others), strict=True)]


@dataclass(frozen=True, slots=True)
class Answers:
    """The class that a network predicts for each image, and the probability that it gives this class."""

    classes: Int[np.ndarray, " images"]
    confidences: Float[np.ndarray, " images"]


@torch.no_grad()
def answers_of(classifier: NetworkClassifier, images: Iterable[Image]) -> Answers:
    """The network's answer for each image on its grid; only a batch of images is in memory."""
    classes, confidences, remaining = [np.zeros(0, np.int64)], [np.zeros(0)], iter(images)
    while batch := list(islice(remaining, BATCH)):
        inputs = torch.from_numpy(np.stack(batch)).to(classifier.device)
        logits = classifier.logits(normalised(inputs, classifier.preprocessing))
        classes.append(logits.argmax(1).cpu().numpy())
        confidences.append(logits.double().softmax(1).amax(1).cpu().numpy())
    return Answers(np.concatenate(classes), np.concatenate(confidences))


def predicted_classes(classifier: NetworkClassifier, images: Iterable[Image]) -> Int[np.ndarray, " images"]:
    """The class that the network predicts for each image."""
    return answers_of(classifier, images).classes
