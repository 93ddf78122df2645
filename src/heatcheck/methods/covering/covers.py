"""Covers: parts of an image that are hidden, and what hiding them changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heatcheck.methods.covering.boxes import Box
from heatcheck.methods.speed.local import Change

Pixels = Float[Tensor, "channel *space"]


class Covers(Protocol):
    """A list of masks to cover an image with; they are drawn as pixels only a few at a time."""

    def __len__(self) -> int:
        """The number of covers."""

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        """Some covers as pixels, True where the image is covered; a single channel stands for all."""

    def region(self, index: int, previous: int | None = None) -> Box | None:
        """A box around what a cover hides, or hides differently from a previous one; None where that is nothing."""

    def within(self, index: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """The part of a cover inside a box."""


@dataclass(frozen=True, slots=True)
class ChosenCovers:
    """Some of many covers, in the order of `indices`."""

    covers: Covers
    indices: Sequence[int]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        return torch.cat([self.covers[index : index + 1] for index in self.indices[some]])

    def region(self, index: int, previous: int | None = None) -> Box | None:
        """As among all covers."""
        return self.covers.region(self.indices[index], None if previous is None else self.indices[previous])

    def within(self, index: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """As among all covers."""
        return self.covers.within(self.indices[index], box)


def change_by(covers: Covers, index: int, image: Pixels, fill: Pixels, previous: int | None = None) -> Change | None:
    """What a cover changes in the image, or in the image under a previous cover; None where that is nothing."""
    box = covers.region(index, previous)
    if box is None:
        return None
    shown, hidden = (values[(slice(None), *box.index)].unsqueeze(0) for values in (image, fill))
    before = shown if previous is None else torch.where(covers.within(previous, box), hidden, shown)
    after = torch.where(covers.within(index, box), hidden, shown)
    return None if torch.equal(before, after) else Change(box, after)
