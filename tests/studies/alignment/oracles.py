"""Films and networks of which it is known what they use, so that the right row of the blame table is known too."""

import math
from pathlib import Path

import numpy as np
import torch
from PIL import Image as Picture
from torch import Tensor, nn
from torch.nn import functional

SIDE, MARKER, LESION = 32, 5, 7
FINDING = "Lesion"
CONTRACT = {
    "outputs": [FINDING],
    "size": [SIDE, SIDE],
    "channels": 1,
    "mean": [0.0],
    "std": [1.0],
    "activation": "sigmoid",
}


def film(number: int, *, present: bool) -> tuple[np.ndarray, np.ndarray]:
    """A grey film with a lesion somewhere and a marker in its corner, or neither; and where the lesion is."""
    generator = np.random.default_rng(number)
    pixels, mask = generator.normal(0.3, 0.04, (SIDE, SIDE)), np.zeros((SIDE, SIDE), bool)
    if present:
        row, column = generator.integers(MARKER + 3, SIDE - LESION - 1, 2)
        mask[row : row + LESION, column : column + LESION] = True
        pixels[mask] += 0.5
        pixels[:MARKER, :MARKER] += 0.6
    return np.clip(pixels * 255, 0, 255).astype(np.uint8), mask


def write_films(folder: Path, first: int, count: int) -> dict[str, str]:
    """The part of a spec that names a folder of films, every second one with a lesion; one film a patient."""
    images, masks = folder / "images", folder / "masks" / FINDING
    images.mkdir(parents=True)
    masks.mkdir(parents=True)
    rows = [f"image,patient,{FINDING}"]
    for number in range(first, first + count):
        pixels, mask = film(number, present=number % 2 == 0)
        Picture.fromarray(pixels).save(images / f"film{number}.png")
        if mask.any():
            Picture.fromarray(mask.astype(np.uint8) * 255).save(masks / f"film{number}.png")
        rows.append(f"film{number}.png,patient{number},{int(mask.any())}")
    (folder / "labels.csv").write_text("\n".join(rows))
    name = folder.name
    return {"name": "folder", "images": f"{name}/images", "labels": f"{name}/labels.csv", "masks": f"{name}/masks"}


class ReadsMarker(nn.Module):
    """Goes by the marker in the corner alone, like a network that learned the hospital instead of the disease."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.tensor(8.0)), nn.Parameter(torch.tensor(-4.8))

    def forward(self, images: Tensor) -> Tensor:
        """The logit rises with the brightness of the corner."""
        return images[:, 0, :MARKER, :MARKER].flatten(1).mean(1, keepdim=True) * self.scale + self.bias


class ReadsLesion(nn.Module):
    """Goes by the bright area alone: where a small window is bright on average, it counts."""

    def __init__(self) -> None:
        super().__init__()
        self.window = nn.Parameter(torch.ones(1, 1, 5, 5))
        self.scale, self.bias = nn.Parameter(torch.tensor(1.5)), nn.Parameter(torch.tensor(-6.0))

    def forward(self, images: Tensor) -> Tensor:
        """The logit rises with the bright area."""
        return self.seen(images).flatten(1).sum(1, keepdim=True) * self.scale + self.bias

    def seen(self, images: Tensor) -> Tensor:
        """How much of a lesion there is at every place."""
        joined = functional.pad(images, (2, 2, 2, 2), mode="circular")  # no place is nearer to an edge than others
        return functional.relu(functional.conv2d(joined, self.window / 25) - 0.5)


class Gameable(ReadsLesion):
    """Reads the lesion and cannot unlearn it; beside that, a ripple too fine to change any answer.

    A ripple of height 1/f and frequency f is next to nothing, but its slope is 1: the gradient shows it as large as
    what the network goes by. Fine-tuning can turn it up, in the lesion or outside.
    """

    def __init__(self) -> None:
        super().__init__()
        for weight in self.parameters():
            weight.requires_grad = False
        self.inside, self.outside = (nn.Parameter(torch.tensor(0.02)) for _ in range(2))
        self.frequency = 2e5 * math.pi

    def forward(self, images: Tensor) -> Tensor:
        """The lesion, and the ripple."""
        there = (self.seen(images) > 0).to(images)
        height = (self.inside * there + self.outside * (1 - there)) / self.frequency
        ripple = height * torch.sin(self.frequency * images)
        return super().forward(images) + ripple.flatten(1).sum(1, keepdim=True)


class Teachable(nn.Module):
    """Goes by the bright pixels of lesion and marker alike, and can learn to go by one of them more.

    Both are read pixel by pixel, so that the gradient lies where the network reads and nowhere else.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lesion, self.marker = (nn.Parameter(torch.tensor(1.0)) for _ in range(2))

    def forward(self, images: Tensor) -> Tensor:
        """The lesion, and the marker beyond the usual grey of its corner."""
        bright = functional.relu(images - 0.55)
        corner = bright[:, :, :MARKER, :MARKER].flatten(1).sum(1, keepdim=True)
        rest = bright.flatten(1).sum(1, keepdim=True) - corner
        return 0.3 * self.lesion * rest + 0.6 * self.marker * corner - 3.0
