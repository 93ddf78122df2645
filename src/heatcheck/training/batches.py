"""Which examples a step sees, in an order that a name gives; and what to do with an image that cannot be read."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.data import Dataset

from heatcheck.core.errors import InputError
from heatcheck.core.seeds import generator_for

# an image on the model's grid, NaN where it cannot be read, its labels, and whatever else the objective wants of it
Examples = Dataset[tuple[Tensor, ...]]
Batch = Sequence[Tensor]  # the same of several examples
Images = Float[Tensor, "batch channel *space"]
Classes = Int[np.ndarray, " examples"]


class Batches:
    """The batches of one epoch from `first` on, as places of examples; of each the share of one process.

    Every epoch has an order of its own. However many processes share the work, a step sees the same examples.
    With the class of each example, examples are drawn with replacement, and each class as often as any other.
    """

    def __init__(
        self, length: int, size: int, seed: int, *, rank: int = 0, processes: int = 1, classes: Classes | None = None
    ) -> None:
        if length < size:
            raise InputError(f"{length} examples do not fill a batch of {size}; lower the batch size")
        if size % processes:
            raise InputError(f"a batch of {size} cannot be shared by {processes} devices; choose a multiple of it")
        if classes is not None and len(classes) != length:
            raise ValueError(f"each of {length} examples needs a class, got {len(classes)}")
        self.length, self.size, self.seed = length, size, seed
        self.members = None if classes is None else [np.flatnonzero(classes == kind) for kind in np.unique(classes)]
        self.share = slice(rank * size // processes, (rank + 1) * size // processes)
        self.epoch = self.first = 0

    def __len__(self) -> int:
        return self.length // self.size

    def __iter__(self) -> Iterator[list[int]]:
        order = self._order(generator_for(self.seed, self.epoch, "order"))
        for number in range(self.first, len(self)):
            yield order[number * self.size : (number + 1) * self.size][self.share].tolist()

    def _order(self, chance: np.random.Generator) -> Int[np.ndarray, " examples"]:
        """The examples of one epoch: each once, or as many by lot, first the class and then one of its examples."""
        if self.members is None:
            return chance.permutation(self.length)
        kinds = chance.integers(len(self.members), size=self.length)
        places = chance.random(self.length)
        return np.array(
            [self.members[kind][int(at * len(self.members[kind]))] for kind, at in zip(kinds, places, strict=True)]
        )


def readable(images: Images, labels: Float[Tensor, "batch finding"]) -> tuple[Images, Float[Tensor, "batch finding"]]:
    """The batch with a blank in the place of each image that could not be read; nothing is known of it."""
    lost = unreadable(images)
    if not lost.any():
        return images, labels
    return images.nan_to_num(), labels.masked_fill(lost[:, None], float("nan"))


def unreadable(images: Images) -> Tensor:
    """Which images of a batch could not be read."""
    return images.flatten(1)[:, 0].isnan()
