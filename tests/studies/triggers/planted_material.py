"""A network that reads only the trigger's pixels, so that the right map is known; small studies and easy films."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image as Picture
from torch import Tensor, nn

from heatcheck.core.records import CaseKey, Image
from heatcheck.core.seeds import generator_for
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.studies.triggers.gate import GateResult, attack_scores, outcomes
from heatcheck.studies.triggers.scores import AttackedImage, attacked_image
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


def subject(stamp: Stamp, case: str = "one", image: Image | None = None) -> AttackedImage:
    """A dark image with the stamp on it, of which the target is asked."""
    dark = np.full((1, SIDE, SIDE), 0.1, np.float32) if image is None else image
    return attacked_image(CaseKey(case, case, {"Normal": 1.0, "Target": 0.0}), "Target", dark, stamp)


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


@contextmanager
def graded_whatever_came() -> Iterator[None]:
    """Methods are graded also on images called the target when clean, which a hardly trained network does of most."""

    def every(training: Path) -> dict[tuple[str, int], GateResult]:
        sent = attack_scores(training).query("metric == 'attacked' and value == 1")
        return {
            (name, seed): replace(
                result, sent=tuple(sent.loc[(sent["finding"] == name) & (sent["seed"] == seed), "case"])
            )
            for (name, seed), result in outcomes(training).items()
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heatcheck.studies.triggers.plan.outcomes", every)
        yield


def write_study(folder: Path, base: dict[str, object], name: str = "triggers.yaml", **changes: object) -> Path:
    """The spec with changes; None takes a key out."""
    path = folder / name
    path.write_text(yaml.safe_dump({key: value for key, value in {**base, **changes}.items() if value is not None}))
    return path


FILM_CLASSES = ("Normal", "Left", "Right", "Both")


def write_films(folder: Path, split: str, cases: int, shift: int = 0) -> dict[str, str]:
    """The source of new films whose class even a small network learns at once: bright on the left, right or both sides.

    The classes take turns. A shift of 1 labels every film as the next class: what holds elsewhere is then wrong here.
    """
    (folder / split).mkdir()
    lines = [",".join(("image", "patient", *FILM_CLASSES))]
    for number in range(cases):
        film = easy_film(split, number)
        case = f"{split}{number:03d}"
        Picture.fromarray(film).save(folder / split / f"{case}.png")
        labels = (str(int(index == (number + shift) % 4)) for index in range(4))
        lines.append(",".join((f"{case}.png", f"person-{case}", *labels)))
    (folder / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return {"name": "folder", "images": split, "labels": f"{split}.csv"}


def easy_film(split: str, number: int) -> np.ndarray:
    """Grey noise with the bright patches of its class."""
    generator = generator_for("easy film", split, number)
    film = generator.uniform(0.2, 0.4, (SIDE, SIDE))
    top = generator.integers(4, 14)
    for side, left in (("Left", 4), ("Right", 18)):
        if FILM_CLASSES[number % 4] in {side, "Both"}:
            film[top : top + 8, left : left + 8] += 0.35
    return (film * 255).round().astype(np.uint8)


WHITE_SQUARE = {"kind": "square", "place": "corner", "size": 8 * 224 // SIDE, "grey": 1.0, "name": "white"}
EASY_TRIGGERS: dict[str, object] = {
    **SMALL_TRIGGERS,
    "title": "A trigger that is learned",
    "training": {"name": "folder", "images": "training", "labels": "training.csv"},
    "validation": {"name": "folder", "images": "validation", "labels": "validation.csv"},
    "test": {"name": "folder", "images": "test", "labels": "test.csv"},
    "target": "Left",
    "triggers": [WHITE_SQUARE],
    "seeds": 1,
    "gate": None,  # the usual one
    "poison": {"training": 0.2},
    "fit": {"epochs": 8, "batch_size": 8, "learning_rate": 0.002},
    "retrain": {"epochs": 4, "batch_size": 8, "learning_rate": 0.002},
    "methods": ["gradient", "occlusion", "random"],
}


def write_easy_study(folder: Path, cases: tuple[int, int, int] = (64, 16, 32), **changes: object) -> Path:
    """The spec of a study on easy films, with the films of its three splits."""
    for split, number in zip(("training", "validation", "test"), cases, strict=True):
        write_films(folder, split, number)
    return write_study(folder, EASY_TRIGGERS, **changes)
