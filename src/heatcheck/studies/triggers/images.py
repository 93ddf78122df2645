"""The images of a trigger study: on the model's grid, in grey values, read once and kept on disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError
from heatcheck.core.records import CaseKey, CaseRecord, Image
from heatcheck.core.tensors import Images
from heatcheck.fitting.examples import CaseExamples, StoredExamples
from heatcheck.models import Preprocessing
from heatcheck.models.classifier import prepared
from heatcheck.running.failed_cases import failure
from heatcheck.running.progress import Watcher

FOLDER = "images"  # of a run, while it is under way
SLACK = 0.01  # by which grey values may leave the range from 0 to 1


@dataclass(frozen=True)
class GridImages:
    """One split's images before a trigger is planted, with their classes."""

    source: Source
    contract: Preprocessing  # without normalisation
    stored: StoredExamples
    keys: Sequence[CaseKey]

    @cached_property
    def classes(self) -> Int[np.ndarray, " cases"]:
        """The index of each image's class."""
        return np.asarray(self.stored.labels.argmax(1).numpy())

    @cached_property
    def readable(self) -> Bool[np.ndarray, " cases"]:
        """Which images could be read and have grey values between 0 and 1, as a trigger does."""
        return np.array([self._usable(position) for position in range(len(self.stored))], bool)

    def _usable(self, position: int) -> bool:
        image = self.image(position)
        return bool(image.min() >= -SLACK and image.max() <= 1 + SLACK)  # false for NaN

    def image(self, position: int) -> Image:
        """An image, in the source's own grey values."""
        return np.asarray(self.stored[position][0].numpy())

    def records(self) -> list[CaseRecord]:
        """A record of every case; one that could not be read is read once more for the reason."""
        shape = "×".join(map(str, self.contract.size))
        return [
            CaseRecord(key.case, key.patient, "ok", shape=shape) if readable else self._failed(key)
            for key, readable in zip(self.keys, self.readable, strict=True)
        ]

    def _failed(self, key: CaseKey) -> CaseRecord:
        try:
            image = prepared(self.source.load(key).image, self.contract)
        except Exception as error:  # noqa: BLE001 - the reason is what is wanted
            return failure(key, error)
        low, high = float(image.min()), float(image.max())
        if low < -SLACK or high > 1 + SLACK:
            problem = f"must have grey values between 0 and 1 as a trigger does, got {low:.3g} to {high:.3g}"
            return failure(key, CaseError(f"{key.case} {problem}; correct `value_range` of the source"))
        return failure(
            key, CaseError(f"{key.case} could not be read when images were prepared, but can now; use a new --out")
        )


def grid_images(source: Source, contract: Preprocessing, file: Path, watcher: Watcher, workers: int) -> GridImages:
    """The images of a source, prepared unless an earlier call did so."""
    plain = plain_contract(contract, channels_of(source))
    examples = CaseExamples(source, plain)
    file.parent.mkdir(parents=True, exist_ok=True)
    return GridImages(source, plain, StoredExamples(examples, file, watcher, workers, remedy=""), examples.keys)


def plain_contract(contract: Preprocessing, channels: int) -> Preprocessing:
    """The contract of images that keep their grey values and their channels."""
    return contract.model_copy(update={"mean": (0.0,), "std": (1.0,), "scaling": "fixed", "channels": channels})


def channels_of(source: Source) -> int:
    """The channels of the source's images, whatever the network expects: a trigger is as grey as its image."""
    for key in source.index():
        try:
            return len(source.load(key).image)
        except Exception:  # noqa: BLE001, S112 - recorded when the images are prepared
            continue
    return 1


def normalised(images: Images, contract: Preprocessing) -> Images:
    """Images on the model's grid as its network expects them."""
    axes = (-1,) + (1,) * (images.ndim - 2)
    mean, std = (torch.tensor(part, device=images.device).reshape(axes) for part in (contract.mean, contract.std))
    result: Tensor = (images.expand(-1, contract.channels, *images.shape[2:]) - mean) / std
    return result
