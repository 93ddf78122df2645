"""Small multi-modal pictures whose class is a bright lesion in T1C, a network that reads it, and a study of them."""

from pathlib import Path

import numpy as np
import yaml

SIDE = 16
CASES = 12
METHODS = [
    "gradient",
    "input_x_gradient",
    "grad_cam",
    {"name": "occlusion", "window": 4, "per_channel": True},
    "random",
]
CODE = '''
import torch
from torch import nn


class Reader(nn.Module):
    """Names HGG where one channel has bright pixels; the other channels are not looked at."""

    def __init__(self, channel):
        super().__init__()
        self.features = nn.Conv2d(4, 2, 1)
        self.relu = nn.ReLU()
        with torch.no_grad():
            self.features.weight.zero_()
            self.features.bias.zero_()
            self.features.weight[0, channel] = 1.0
            self.features.bias[0] = -2.0

    def forward(self, images):
        score = self.relu(self.features(images))[:, 0].mean((1, 2)) * 100
        return torch.stack([0.5 - score, score - 0.5], 1)


def t1c():
    return Reader(1)


def flair():
    return Reader(3)
'''
CONTRACT = {
    "outputs": ["LGG", "HGG"],
    "size": [SIDE, SIDE],
    "channels": 4,
    "mean": [0.0],
    "std": [1.0],
    "activation": "softmax",
}


def write_pictures(folder: Path, name: str = "cases", count: int = CASES) -> dict[str, object]:
    """A source: heads of grey tissue with a lesion, which is bright in T1C and FLAIR of every second case."""
    chance = np.random.default_rng(sum(map(ord, name)))
    images, masks = folder / name, folder / f"{name}-masks" / "tumour"
    images.mkdir(parents=True)
    masks.mkdir(parents=True)
    lines = ["image,patient,LGG,HGG"]
    for number in range(count):
        picture = np.zeros((4, SIDE, SIDE), np.float32)
        picture[:, 1:-1, 1:-1] = chance.uniform(0.8, 1.2, (4, SIDE - 2, SIDE - 2))
        lesion = np.zeros((SIDE, SIDE), bool)
        row, column = chance.integers(2, SIDE - 6, 2)
        lesion[row : row + 4, column : column + 4] = True
        high = number % 2
        if high:
            picture[1][lesion] = picture[3][lesion] = 3.0
        np.save(images / f"{number:02d}.npy", picture)
        np.save(masks / f"{number:02d}.npy", lesion.astype(np.uint8))
        lines.append(f"{number:02d},p{number:02d},{1 - high},{high}")
    (folder / f"{name}.csv").write_text("\n".join(lines))
    paths = {"images": name, "labels": f"{name}.csv", "masks": f"{name}-masks"}
    return {"name": "folder", **paths, "modalities": ["T1", "T1C", "T2", "FLAIR"]}


def write_modality(folder: Path, reader: str = "t1c", **body: object) -> Path:
    """The spec of a study of such pictures with a network that reads one channel."""
    folder.mkdir(exist_ok=True)
    (folder / "readers.py").write_text(CODE)
    values = {
        "study": "modality",
        "seed": 3,
        "threads": 1,
        "batch_size": 4,
        "shard_size": 5,
        "gallery": 2,
        "source": write_pictures(folder),
        "model": {"name": f"python:readers:{reader}", "label": reader, "contract": CONTRACT},
        "methods": METHODS,
        "fills": ["zero", "tissue"],
        "bootstrap_draws": 200,
        **body,
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(values))
    return path
