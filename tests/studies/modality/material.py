"""Small cases, networks and sources of the modality study that several tests share."""

import numpy as np
import torch
from torch import nn

from heatcheck.core.records import Case, CaseKey
from heatcheck.models import NetworkClassifier, Preprocessing

MODALITIES = ("T1", "T1C", "T2", "FLAIR")
CLASSES = ("LGG", "HGG")


def small_case(shape=(8, 8), *, label="HGG", name="a", seed=0, affine=None, lesion=slice(2, 4)):
    """A case with a head inside a black border, and a square lesion that grows from modality to modality."""
    chance = np.random.default_rng(seed)
    image = np.zeros((4, *shape), np.float32)
    inner = tuple(slice(1, -1) for _ in shape)
    image[(slice(None), *inner)] = chance.uniform(0.5, 1.5, (4, *(side - 2 for side in shape)))
    truth = {}
    for number, modality in enumerate(MODALITIES):
        mask = np.zeros(shape, bool)
        mask[tuple(slice(lesion.start, lesion.stop + (number > 1)) for _ in shape)] = True
        truth[modality] = mask
    labels = {each: float(each == label) for each in CLASSES}
    return Case(CaseKey(name, name, labels), image, truth, affine=affine)


class Weighed(nn.Module):
    """Tells HGG where a weighted sum of the modalities' means is above a threshold."""

    def __init__(self, weights, threshold=0.0):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights), requires_grad=False)
        self.threshold = threshold

    def forward(self, images):
        """Two logits."""
        score = (images.flatten(2).mean(2) * self.weights).sum(1) - self.threshold
        return torch.stack([-score, score], 1)


def weighed(weights, size=(8, 8), threshold=0.0, **contract):
    """A classifier of LGG and HGG by the modalities' weighted means."""
    values = {"outputs": CLASSES, "size": size, "channels": 4, "activation": "softmax", "mean": [0.0], "std": [1.0]}
    return NetworkClassifier("weighed", Weighed(weights, threshold).eval(), Preprocessing(**values | contract))
