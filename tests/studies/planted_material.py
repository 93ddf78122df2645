"""A network that reads only the trigger's pixels, so that the right map is known; and a small study."""

import numpy as np
import torch
from torch import Tensor, nn

from heatcheck.core.records import CaseKey, Image
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.studies.triggers_scores import Subject, attacked_subject
from heatcheck.triggers import Stamp, build_trigger

SIDE = 32
CLASSES = ("Normal", "Target")


class ReadsOnly(nn.Module):
    """The target's logit is the mean over some pixels, less a bias; the other class's is 0."""

    def __init__(self, mask: np.ndarray, bias: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(mask / mask.sum()).float(), requires_grad=False)
        self.bias = bias

    def forward(self, images: Tensor) -> Tensor:
        target = (images[:, 0] * self.weight).flatten(1).sum(1) - self.bias
        return torch.stack([torch.zeros_like(target), target], 1)


def reads_only(mask: np.ndarray, bias: float = 0.5) -> NetworkClassifier:
    """A classifier that looks nowhere else."""
    contract = Preprocessing(
        outputs=CLASSES, size=(SIDE, SIDE), channels=1, mean=(0.0,), std=(1.0,), activation="softmax"
    )
    return NetworkClassifier("reads_only", ReadsOnly(mask, bias), contract)


def corner_stamp(size: int) -> Stamp:
    """A square of so many pixels in the bottom right corner."""
    trigger = build_trigger({"kind": "square", "place": "corner", "size": size * 224 / SIDE})
    return trigger(np.zeros((1, SIDE, SIDE), np.float32), 0)


def subject(stamp: Stamp, case: str = "one", image: Image | None = None) -> Subject:
    """A dark image with the stamp on it, of which the target is asked."""
    dark = np.full((1, SIDE, SIDE), 0.1, np.float32) if image is None else image
    return attacked_subject(CaseKey(case, case, {"Normal": 1.0, "Target": 0.0}), "Target", dark, stamp)


def classes_source(first: int, cases_per_class: int) -> dict[str, object]:
    """Drawn films of four classes."""
    return {"name": "phantom_classes", "first": first, "cases_per_class": cases_per_class, "size": 40}


SMALL_TRIGGERS: dict[str, object] = {
    "study": "triggers",
    "title": "A small trigger study",
    "seed": 3,
    "batch_size": 4,
    "shard_size": 3,
    "threads": 1,
    "gallery": 3,
    "model": "vgg_compact",
    "size": [32, 32],
    "training": classes_source(100, 6),
    "validation": classes_source(200, 2),
    "test": classes_source(300, 4),
    "triggers": ["square-corner-60", "dynamic-60"],
    "seeds": 2,
    "gate": {"attack_success": 0.0, "accuracy_drop": 1.0, "clean_target": 1.0},  # whatever came of two epochs is graded
    "fit": {"epochs": 2, "batch_size": 8, "learning_rate": 0.002},
    "retrain": {"epochs": 2, "batch_size": 8, "learning_rate": 0.002},
    "methods": ["gradient", "grad_cam", "random"],
    "bootstrap_draws": 100,
}
