"""Drawn films, networks of which it is known what they use, and their maps, for the simulation of the blame table.

A film with the finding has a bright area near its usual place and a marker in a corner; other films have neither. The
body is brighter in the middle, so that hiding an area there does more to a network that reads brightness. Every network
also reads a fine texture that films hardly have and hidden areas do, which makes reliance as noisy as on radiographs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn
from torch.nn import functional

from heatcheck.core.records import CaseKey, Mask
from heatcheck.models import NetworkClassifier, Preprocessing

SIDE, MARKER, WINDOW = 24, 4, 3
FINDING = "Lesion"
USUAL = (9, 12)  # where the area usually begins
SHARES = (0.0, 0.02, 0.1, 0.5, 1.0)  # of the answer that the networks read in the area
NETWORKS = (*(f"uses {share:.0%}" for share in SHARES), "either place", "against", "brightness")
UNTRAINED = 3
FILMS = 1  # of a patient: with more of them, the same number of patients decides more
TEXTURE = 2.1  # weight of the fine texture, beside a finding's 1
BODY = slice(6, 18)  # the middle, whose brightness the last network reads


@dataclass(frozen=True, slots=True)
class Film:
    """A film with its mask, of a patient with or without the finding."""

    pixels: np.ndarray
    mask: Mask

    @property
    def present(self) -> bool:
        """Whether it has the finding."""
        return bool(self.mask.any())


def film(generator: np.random.Generator, body: np.ndarray, *, present: bool) -> Film:
    """A film of a patient whose body is given, which is moved a little."""
    pixels = np.roll(body, tuple(generator.integers(-1, 2, 2)), (0, 1)) + generator.normal(0, 0.003, body.shape)
    mask = np.zeros((SIDE, SIDE), bool)
    if present:
        side = generator.integers(5, 8)
        row, column = np.clip(np.rint(generator.normal(USUAL, 4)).astype(int), MARKER + 1, SIDE - side - 1)
        mask[row : row + side, column : column + side] = True
        marker = np.zeros((SIDE, SIDE))
        marker[:MARKER, :MARKER] = 1.0
        for shape, bright in ((mask * 36 / side**2, 0.4), (marker, 0.5)):
            pixels = pixels + bright * np.exp(generator.normal(0, 0.25)) * gaussian_filter(shape.astype(float), 1.2)
    return Film(pixels.astype(np.float32), mask)


def patients(count: int, generator: np.random.Generator, *, present: bool) -> list[list[Film]]:
    """The films of each patient, which share a body."""
    axis = (np.arange(SIDE) - SIDE / 2 + 0.5) / SIDE
    shape = 0.4 * np.exp(-4 * (axis[:, None] ** 2 + axis**2))
    found = []
    for _ in range(count):
        texture = gaussian_filter(generator.normal(0, 1, (SIDE, SIDE)), 2.0)
        body = shape * np.exp(generator.normal(0, 0.1)) + 0.02 * texture / texture.std()
        found.append([film(generator, body, present=present) for _ in range(FILMS)])
    return found


class Readers(nn.Module):
    """Networks that read the bright area, the marker or the body, one output each.

    `shares` are what the graded networks read in the area. With `others`, further outputs read either place, count the
    area against the finding, or read the brightness of the body beside the marker; then come untrained networks.
    """

    def __init__(self, shares: Sequence[float], seed: int, *, others: bool = True) -> None:
        super().__init__()
        self.shares, self.others = torch.tensor(shares, dtype=torch.float32), others
        self.area_unit, self.marker_unit = 1.0, 1.0
        self.window = (torch.ones(SIDE, SIDE).tril(1).triu(-1)) / 3  # a mean over three pixels
        sharp = torch.eye(SIDE) - self.window
        noise = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
        self.texture = TEXTURE * sharp.T @ noise @ sharp  # weights of what is left after smoothing, along both axes
        self.elsewhere = torch.ones(SIDE, SIDE)
        self.elsewhere[: MARKER + 1, : MARKER + 1] = 0
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.untrained = nn.Sequential(nn.Conv2d(1, 4, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(400, UNTRAINED))

    def scaled(self, films: Tensor) -> "Readers":
        """The same, so that films with the finding have an area and a marker of 1 on average."""
        self.area_unit = float(self._seen(films).sum((1, 2)).mean())
        self.marker_unit = float(self._corner(films).mean())
        return self

    def forward(self, images: Tensor) -> Tensor:
        """The logits of every network."""
        area = self._seen(images).sum((1, 2))[:, None] / self.area_unit
        marker = self._corner(images) / self.marker_unit
        fine = (images[:, 0] * self.texture).sum((1, 2))[:, None]
        graded = self.shares * area + (1 - self.shares) * marker + fine
        if not self.others:
            return graded
        either = 1 - (1 - _enough(area)) * (1 - _enough(marker)) + fine
        against = 2 * marker - area + fine
        body = images[:, 0, BODY, BODY].clamp(max=0.33).mean((1, 2))[:, None]
        return torch.cat([graded, either, against, marker + 20 * body + fine, self.untrained(images)], 1)

    def _seen(self, images: Tensor) -> Tensor:
        """How much of a bright area there is at every place but the corner's."""
        return functional.relu(self.window @ images[:, 0] @ self.window - 0.5) * self.elsewhere

    def _corner(self, images: Tensor) -> Tensor:
        return functional.relu(images[:, 0, :MARKER, :MARKER].mean((1, 2))[:, None] - 0.15)

    def heat(self, films: Tensor, share: float) -> np.ndarray:
        """Where a network that reads so much in the area reads it: truthful maps."""
        area = self._seen(films) / self.area_unit
        corner = torch.zeros_like(area)
        corner[:, :MARKER, :MARKER] = self._corner(films)[:, :, None] / self.marker_unit / MARKER**2
        return (share * area + (1 - share) * corner).numpy()


def _enough(amount: Tensor) -> Tensor:
    return (amount / 0.5).clamp(0, 1)


def classifier_of(readers: Readers, outputs: int) -> NetworkClassifier:
    """The networks as one classifier with an output each."""
    names = tuple(f"n{number}" for number in range(outputs))
    contract = Preprocessing(outputs=names, size=(SIDE, SIDE), channels=1, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("readers", readers.eval(), contract)


def stacked(films: Sequence[Film]) -> Tensor:
    """The films as a batch."""
    return torch.from_numpy(np.stack([each.pixels for each in films]))[:, None]


def keys_of(films: Sequence[Film], patient: Sequence[int], kind: str) -> list[CaseKey]:
    """Names of films and their patients."""
    return [
        CaseKey(f"{kind}{number}", f"{kind}{who}", {FINDING: float(each.present)})
        for number, (each, who) in enumerate(zip(films, patient, strict=True))
    ]
