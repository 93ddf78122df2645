"""Covers: places of an image that are hidden, and what hiding them changes."""

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
    """Places of an image that are to be covered; pixels are made a few covers at a time."""

    def __len__(self) -> int:
        """How many covers there are."""

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        """Some of them, True where the image is covered; one channel stands for all."""

    def region(self, place: int, since: int | None = None) -> Box | None:
        """A box around all that one of them covers, or covers other than another one; None where that is nothing."""

    def within(self, place: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """A part of one of them."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some of many covers."""

    covers: Covers
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        return torch.cat([self.covers[place : place + 1] for place in self.places[some]])

    def region(self, place: int, since: int | None = None) -> Box | None:
        """That of the cover itself."""
        return self.covers.region(self.places[place], None if since is None else self.places[since])

    def within(self, place: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """That of the cover itself."""
        return self.covers.within(self.places[place], box)


def change_by(covers: Covers, place: int, image: Pixels, fill: Pixels, since: int | None = None) -> Change | None:
    """What a cover changes of the image, or of the image under another cover; None where that is nothing."""
    box = covers.region(place, since)
    if box is None:
        return None
    seen, under = (values[(slice(None), *box.place)].unsqueeze(0) for values in (image, fill))
    before = seen if since is None else torch.where(covers.within(since, box), under, seen)
    now = torch.where(covers.within(place, box), under, seen)
    return None if torch.equal(before, now) else Change(box, now)
