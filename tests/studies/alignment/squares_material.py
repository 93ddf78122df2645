"""Films with a bright square, a network that finds it, and an alignment study of them that takes seconds."""

from pathlib import Path

import numpy as np
import yaml
from PIL import Image

SIDE = 24
SQUARE = 8
FINDINGS = ("Lung Lesion", "Pneumothorax")
CODE = '''
import torch
from torch import nn


class Bright(nn.Module):
    """A bright area is a lesion, a dark one a pneumothorax."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(1, 4, 5, padding=2)
        self.relu = nn.ReLU()
        self.pool = nn.AvgPool2d(3)
        self.head = nn.Linear(4, 2)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(0.02 * torch.randn(weight.shape, generator=generator))
            self.features.weight[0] += 0.04
            self.features.weight[1] -= 0.04
            self.features.bias[0] -= 0.55
            self.features.bias[1] += 0.35
            self.head.weight[0, 0] += 40.0
            self.head.weight[1, 1] += 40.0
            self.head.bias -= 1.0

    def forward(self, images):
        return self.head(self.pool(self.relu(self.features(images))).amax((2, 3)))


def bright():
    return Bright()
'''
CONTRACT = {
    "outputs": list(FINDINGS),
    "size": [SIDE, SIDE],
    "channels": 1,
    "mean": [0.0],
    "std": [1.0],
    "activation": "sigmoid",
}


def write_films(folder: Path, name: str, count: int, readers: bool = False) -> dict[str, object]:
    """A source of grey films, one in two with a bright square, one in two with a dark one; the squares are outlined."""
    generator = np.random.default_rng(sum(map(ord, name)))
    images, masks = folder / name, folder / f"{name}-masks"
    images.mkdir(parents=True)
    lines = ["image,patient," + ",".join(FINDINGS)]
    for number in range(count):
        film = generator.normal(0.5, 0.05, (SIDE, SIDE))
        present = [number % 2, (number // 2) % 2]
        for finding, there, grey in zip(FINDINGS, present, (0.9, 0.1), strict=True):
            if not there:
                continue
            row, column = generator.integers(0, SIDE - SQUARE, 2)
            column = column // 2 if finding == FINDINGS[0] else SIDE // 2 + column // 4  # the two do not overlap
            place = (slice(row, row + SQUARE), slice(column, column + SQUARE))
            film[place] = grey
            mask = np.zeros((SIDE, SIDE), np.uint8)
            mask[place] = 255
            (masks / finding).mkdir(parents=True, exist_ok=True)
            Image.fromarray(mask).save(masks / finding / f"{name}{number:03d}.png")
        Image.fromarray((np.clip(film, 0, 1) * 255).astype(np.uint8)).save(images / f"{name}{number:03d}.png")
        lines.append(f"{name}{number:03d},{name}-p{number:03d},{present[0]},{present[1]}")
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return {"name": "folder", "images": name, "masks": f"{name}-masks", "labels": f"{name}.csv"}


SMALL: dict[str, object] = {
    "study": "alignment",
    "title": "A small alignment study",
    "seed": 3,
    "batch_size": 4,
    "threads": 1,
    "gallery": 3,
    "models": [{"name": "python:bright_model:bright", "label": "bright", "contract": CONTRACT}],
    "findings": list(FINDINGS),
    "methods": ["gradient", "grad_cam"],
    "judged": ["random"],
    "seeds": 2,
    "fit": {"epochs": 2, "batch_size": 8, "learning_rate": 0.002},
    "reliance": {"shifts": 2},
    "bootstrap_draws": 100,
}


def write_alignment(folder: Path, films: tuple[int, int] = (24, 16), **changes: object) -> Path:
    """The small study with its films and its model; None takes a key out."""
    (folder / "bright_model.py").write_text(CODE)
    sources = {
        name: write_films(folder, name, count)
        for name, count in zip(("finetune", "evaluation"), films, strict=True)
        if not (folder / name).exists()
    }
    values = {**SMALL, **sources, **changes}
    path = folder / "alignment.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in values.items() if value is not None}))
    return path
