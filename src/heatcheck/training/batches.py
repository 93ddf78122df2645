"""Which examples each step sees, and how images that cannot be read are replaced."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.data import Dataset

from heatcheck.core.errors import InputError
from heatcheck.core.seeds import generator_for

# an image on the model's grid (NaN if it cannot be read), its labels, and what else the objective needs
Examples = Dataset[tuple[Tensor, ...]]
Batch = Sequence[Tensor]  # the same of several examples
Images = Float[Tensor, "batch channel *space"]
Classes = Int[np.ndarray, " examples"]


class Batches:
    """The batches of one epoch from `first` on, as indices of examples; of each the share of one process.

    Every epoch has its own order. A step sees the same examples for any number of processes. If the class of each
    example is given, examples are drawn with replacement and all classes equally often.
    """

    def __init__(
        self, length: int, size: int, seed: int, *, rank: int = 0, processes: int = 1, classes: Classes | None = None
    ) -> None:
        if length < size:
            raise InputError(f"{length} examples do not fill a batch of {size}; lower the batch size")
        if size % processes:
            raise InputError(
                f"a batch of {size} cannot be shared by {processes} devices; choose a multiple of {processes}"
            )
        if classes is not None and len(classes) != length:
            raise ValueError(f"each of {length} examples needs a class, got {len(classes)}")
        self.length, self.size, self.seed = length, size, seed
        self.members = None if classes is None else [np.flatnonzero(classes == each) for each in np.unique(classes)]
        self.share = slice(rank * size // processes, (rank + 1) * size // processes)
        self.epoch = self.first = 0

    def __len__(self) -> int:
        return self.length // self.size

    def __iter__(self) -> Iterator[list[int]]:
        order = self._order(generator_for(self.seed, self.epoch, "order"))
        for step in range(self.first, len(self)):
            yield order[step * self.size : (step + 1) * self.size][self.share].tolist()

    def _order(self, generator: np.random.Generator) -> Int[np.ndarray, " examples"]:
        """The examples of one epoch: each once, or as many draws of first a class and then one of its examples."""
        if self.members is None:
            return generator.permutation(self.length)
        classes = generator.integers(len(self.members), size=self.length)
        draws = zip((self.members[each] for each in classes), generator.random(self.length), strict=True)
        return np.array([members[int(draw * len(members))] for members, draw in draws])


def readable(images: Images, labels: Float[Tensor, "batch finding"]) -> tuple[Images, Float[Tensor, "batch finding"]]:
    """The batch with an empty image and unknown labels in place of each image that could not be read."""
    missing = unreadable(images)
    if not missing.any():
        return images, labels
    return images.nan_to_num(), labels.masked_fill(missing[:, None], float("nan"))


def unreadable(images: Images) -> Tensor:
    """Which images of a batch could not be read."""
    return images.flatten(1)[:, 0].isnan()
