"""The cases of a source as examples: read each time, or read once and kept on disk."""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from heatcheck.core.atomic_files import replaced
from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError, InputError, RunFolderError
from heatcheck.core.records import CaseKey
from heatcheck.core.seeds import generator_for
from heatcheck.models import Preprocessing
from heatcheck.models.classifier import prepared
from heatcheck.running.cases import digest_of, results_in_order
from heatcheck.running.progress import Watcher
from heatcheck.training.labels import Labels

Missing = Literal["unknown", "zero"]  # what a missing label means
_AT_ONCE = 16


class CaseExamples(Dataset[tuple[Tensor, Tensor]]):
    """The cases of a source on the model's grid, with their labels; read again each time.

    An image that cannot be read is NaN: it is skipped in training and counted. A grey image fills every channel,
    unless the source's channels are modalities. `missing` says what a missing label means.
    """

    def __init__(self, source: Source, contract: Preprocessing, missing: Missing = "unknown") -> None:
        self.source, self.contract = source, contract
        self.modalities: tuple[str, ...] = getattr(source, "modalities", ())
        self.keys = list(source.index())
        self.labels = labels_of(self.keys, contract.outputs, missing)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        image = self._read(index)
        return image if isinstance(image, Tensor) else torch.full(self.shape, math.nan), self.labels[index]

    def problem(self, index: int) -> Exception | None:
        """Why a case cannot be read; None if it can."""
        image = self._read(index)
        return None if isinstance(image, Tensor) else image

    def _read(self, index: int) -> Tensor | Exception:
        try:
            image = self.source.load(self.keys[index]).image
            self._require_channels(len(image))
            return prepared(image, self.contract)
        except InputError:
            raise  # what the user must fix concerns every image
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one file must not stop the others
            return error

    def _require_channels(self, channels: int) -> None:
        if len(self.modalities) > 1 and channels != self.contract.channels:
            names = ", ".join(self.modalities)
            raise CaseError(f"image has {channels} channels, the model expects {self.contract.channels} ({names})")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each image."""
        return (self.contract.channels, *self.contract.size)


def labels_of(keys: Sequence[CaseKey], findings: Sequence[str], missing: Missing = "unknown") -> Labels:
    """The labels of each case; a missing one is unknown (NaN), or counts as 0."""
    every = (key.labels.get(finding, math.nan) for key in keys for finding in findings)
    labels = torch.from_numpy(np.fromiter(every, np.float32).reshape(len(keys), len(findings)))
    return labels.nan_to_num(0.0) if missing == "zero" else labels


def classes_of(keys: Sequence[CaseKey], classes: Sequence[str]) -> Int[np.ndarray, " cases"]:
    """The index of each case's class; every case must have one of the classes."""
    return np.array([[key.labels.get(name) for name in classes].index(1.0) for key in keys])


class StoredExamples(Dataset[tuple[Tensor, Tensor]]):
    """Examples prepared once, kept on disk in half precision, and read through a memory map.

    A small file next to the images records their origin; images of another origin are prepared again.
    """

    def __init__(
        self,
        examples: CaseExamples,
        path: Path,
        watcher: Watcher,
        workers: int,
        *,
        remedy: str = "set `cache: false` to read them again each time",
    ) -> None:
        self.labels, self.path = examples.labels, path
        origin, record = _origin_of(examples), path.with_name(f"{path.name}.json")
        if not path.exists() or not record.exists() or record.read_text() != origin:
            record.unlink(missing_ok=True)  # before the images change, so that it never describes others
            _announce(2 * len(examples) * math.prod(examples.shape), path, watcher, remedy)
            _prepare_all(examples, path, watcher, workers)
            with replaced(record) as temporary:
                temporary.write_text(origin)
        self._images: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the memory map: sent to another process, it would contain all images."""
        return self.__dict__ | {"_images": None}

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if self._images is None:
            self._images = np.load(self.path, mmap_mode="r")
        return torch.from_numpy(self._images[index].astype(np.float32)), self.labels[index]


def _origin_of(examples: CaseExamples) -> str:
    """What the prepared images depend on: the data, the cases in order, and the contract."""
    facts = {
        "data": examples.source.stamp(),
        "cases": digest_of(examples.keys),
        "contract": examples.contract.model_dump(mode="json"),
    }
    return json.dumps(facts, indent=1, sort_keys=True) + "\n"


def _prepare_all(examples: CaseExamples, path: Path, watcher: Watcher, workers: int) -> None:
    shape = (len(examples), *examples.shape)
    watcher.start(f"preparing {path.stem}", len(examples))
    batches = DataLoader(examples, _AT_ONCE, num_workers=workers)
    with replaced(path) as temporary:
        images = np.lib.format.open_memmap(temporary, "w+", np.float16, shape)
        for start, (batch, _) in zip(range(0, len(examples), _AT_ONCE), batches, strict=True):
            images[start : start + len(batch)] = batch.numpy()
            watcher.advance(len(batch))
        images.flush()


def _announce(size: int, path: Path, watcher: Watcher, remedy: str) -> None:
    """Say how much disk space the prepared images need, or refuse if there is less."""
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise RunFolderError(
            f"the prepared {path.stem} images need {size / 1e9:.1f} GB; {path.parent} has {free / 1e9:.1f} GB free: "
            f"{remedy + ', or ' if remedy else ''}choose another --out"
        )
    if size > 1e9:
        watcher.say(
            f"The prepared {path.stem} images need {size / 1e9:.1f} GB of disk space{'; ' if remedy else ''}{remedy}."
        )


def sampled(keys: Sequence[CaseKey], most: int | None, seed: int) -> list[CaseKey]:
    """All cases, or a random sample of at most `most` of them."""
    return [keys[index] for index in sorted(generator_for(seed, "intensity").permutation(len(keys))[:most])]


def intensity(
    source: Source, keys: Sequence[CaseKey], watcher: Watcher, workers: int = 1
) -> tuple[list[float], list[float]]:
    """The mean and the standard deviation of each channel over all pixels of the images, to six digits.

    One image at a time is read; images that cannot be read are left out, and counted during the training.
    """
    watcher.start("intensities", len(keys))
    every = Pixels(0, np.zeros(0), np.zeros(0))
    for pixels in results_in_order(lambda key: _pixels_of(source, key), keys, workers):
        watcher.advance()
        every = every.joined(pixels) if pixels else every
    if not every.count:
        raise InputError(f"none of {len(keys)} training images can be read; check the training source")
    deviation = np.sqrt(every.squares / every.count)
    if not deviation.all():
        raise InputError("all pixels of the training images are equal; check the training source")
    return [float(f"{value:.6g}") for value in every.mean], [float(f"{value:.6g}") for value in deviation]


@dataclass(frozen=True, slots=True)
class Pixels:
    """How many pixels there are, and for each channel their mean and their squared distances from it, summed."""

    count: int
    mean: Float[np.ndarray, " channels"]
    squares: Float[np.ndarray, " channels"]

    def joined(self, other: "Pixels") -> "Pixels":
        """Of both together; distances are from the mean, so that nothing cancels out (Chan et al. 1983)."""
        if not self.count:
            return other
        if len(self.mean) != len(other.mean):
            raise InputError(
                f"training images have {len(self.mean)} and {len(other.mean)} channels; all must have the same number"
            )
        count, apart = self.count + other.count, other.mean - self.mean
        return Pixels(
            count,
            self.mean + apart * (other.count / count),
            self.squares + other.squares + apart**2 * (self.count / count * other.count),
        )


def _pixels_of(source: Source, key: CaseKey) -> Pixels | None:
    """The pixels of one image; None if it cannot be read."""
    try:
        image = source.load(key).image
    except InputError:
        raise
    except Exception:  # noqa: BLE001 - counted during the training
        return None
    pixels = image.reshape(len(image), -1).astype(np.float64)
    mean = pixels.mean(1)
    return Pixels(pixels.shape[1], mean, ((pixels - mean[:, None]) ** 2).sum(1))
