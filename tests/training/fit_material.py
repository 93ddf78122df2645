"""A tiny network with dropout, points to learn from, and a keeper of checkpoints."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

from heatcheck.training.fit import FitSettings, Job
from heatcheck.training.objective import LabelObjective
from heatcheck.training.selection import best_checks


def examples(seed, count, noise=0.0):
    """Points whose first label says whether they lie to the right, and whose second is sometimes unknown."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(count, 3, generator=generator)
    labels = (points[:, :2] + noise * torch.randn(count, 2, generator=generator) > 0).float()
    labels[::5, 1] = math.nan
    return TensorDataset(points, labels)


DATA = examples(1, 18), examples(2, 10)


def network(seed=3, outputs=2):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, outputs))


@dataclass
class Folder:
    """Keeps the best weights as files; reports the share of right answers as the AUROC."""

    path: Path
    by: tuple[str, ...] = ()
    most: int = 1

    def judged(self, answers, labels) -> Mapping[str, float]:
        right = ((answers[:, :2] > 0) == (labels == 1))[:, 0]
        return {"right": float(right.float().mean())}

    def keep(self, history, module):
        self.path.mkdir(exist_ok=True)
        wanted = {f"{check.step}.pt" for check in best_checks(history, self.by, self.most)}
        if (newest := f"{history[-1].step}.pt") in wanted:
            torch.save(module.state_dict(), self.path / newest)
        for file in self.path.iterdir():
            if file.name not in wanted:
                file.unlink()

    def states(self):
        return {file.name: torch.load(file, weights_only=True) for file in sorted(self.path.iterdir())}


def job(path, data=DATA, by=(), most=1, strategy="ignore", objective=None, *, classes=None, **changes):
    settings = {"epochs": 3, "batch_size": 4, "learning_rate": 0.05, "weight_decay": 0.1, "seed": 5, **changes}
    module = network(outputs=6 if strategy == "three_class" else 2)
    keeper = Folder(path / "kept", by, most)
    return Job(
        module, objective or LabelObjective(strategy), *data, FitSettings(**settings), path / "state.ckpt", keeper,
        classes=classes,
    )  # fmt: skip
