"""A few small maps in CheXlocalize's formats, with a known answer."""

import json
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

SHAPE = (24, 30)  # rows, columns
FINDINGS = ("Edema", "Pneumothorax")


@dataclass(frozen=True)
class Files:
    """Where the pieces of a small scoring lie."""

    root: Path

    @property
    def maps(self) -> Path:
        return self.root / "maps"

    @property
    def truth(self) -> Path:
        return self.root / "truth.json"

    def flags(self, *more: object) -> tuple[object, ...]:
        return ("--maps", self.maps, "--truth", self.truth, *more, "--out", self.root / "out")

    def map(self, image: str, finding: str = "Edema") -> Path:
        return self.maps / f"{image}_{finding}_map.pkl"

    def rewrite(self, path: Path, **changes: object) -> None:
        with path.open("rb") as file:
            content = pickle.load(file)  # noqa: S301 - our own
        with path.open("wb") as file:
            pickle.dump({**content, **changes}, file)

    def change_truth(self, image: str, **changes: object) -> None:
        truth = json.loads(self.truth.read_text())
        truth[image].update(changes)
        self.truth.write_text(json.dumps(truth))


def square(top: int, left: int, side: int) -> list[list[int]]:
    """The outline of side × side pixels."""
    end = side - 1
    return [[left, top], [left + end, top], [left + end, top + end], [left, top + end]]


def small_scoring(root: Path, patients: int = 6) -> Files:
    """Two views of each patient: Edema on every image, pneumothorax on none; the map marks the truth, one pixel off."""
    files = Files(root)
    files.maps.mkdir(parents=True)
    truth = {}
    for number in range(patients):
        for view in (1, 2):
            image = f"p{number}_study1_view{view}"
            truth[image] = {"img_size": list(SHAPE), "Edema": [square(4 + number, 6, 8)]}
            for finding in FINDINGS:
                values = np.zeros(SHAPE, np.float32)
                values[5 + number : 13 + number, 6:14] = 1.0 if finding == "Edema" else 0.5
                values[6 + number, 7] = 2.0
                write_map(files.map(image, finding), values, probability=0.9 if finding == "Edema" else 0.2)
    files.truth.write_text(json.dumps(truth))
    return files


def write_map(path: Path, values: np.ndarray, probability: float | None) -> None:
    """A map on the image's own grid."""
    content = {
        "map": torch.from_numpy(values)[None, None],
        "task": path.name.split("_")[-2],
        "cxr_dims": values.shape[::-1],
    }
    with path.open("wb") as file:
        pickle.dump(content if probability is None else {**content, "prob": probability}, file)
