"""What one step of fine-tuning through a map needs in memory, on the largest network of the alignment study.

    python benchmarks/alignment.py [--json FILE] [METHOD …]

ViT-base/16 at 224 px, a batch of 4 images that all have a mask: labels and maps forth and back, and the optimizer's
step. Each method has a process of its own, whose highest memory is told. Ends with code 1 when a budget is missed.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BUDGET = 16.0  # GB
BATCH, SIDE = 4, 224
SETTINGS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "integrated_gradients": {"steps": 20, "rule": "right"},
}


@dataclass(frozen=True)
class Figure:
    """One method's memory beside its budget."""

    method: str
    peak: float  # GB
    seconds: float
    budget: float = BUDGET

    @property
    def within(self) -> bool:
        """Whether the budget is kept."""
        return self.peak <= self.budget


def step(name: str) -> None:
    """One step in this process, with the optimizer's own memory; prints the highest memory and the time."""
    import torch

    from heatcheck.methods import build_method
    from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
    from heatcheck.studies.alignment.objective import AlignmentObjective
    from heatcheck.training.machine import Machine
    from heatcheck.training.objective import Means

    torch.manual_seed(0)
    module = MODELS["vit_base_16"].build(3, 1, (SIDE, SIDE))
    contract = Preprocessing(outputs=("finding",), size=(SIDE, SIDE), channels=3, mean=(0.5,), std=(0.5,))
    method = build_method(name, SETTINGS.get(name, {}))
    objective = AlignmentObjective(NetworkClassifier("vit", module, contract), (0,), method, at_once=BATCH)
    objective.check(Machine())
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    means = Means(module, 0, lambda loss: loss.backward(), lambda: torch.autocast("cpu", enabled=False))
    masks = torch.zeros(BATCH, 1, SIDE, SIDE)
    masks[..., 40:120, 60:150] = 1
    labels, marked = torch.ones(BATCH, 1), torch.ones(BATCH, 1, dtype=torch.bool)
    batch = (torch.rand(BATCH, 3, SIDE, SIDE) * 2 - 1, labels, masks, marked, torch.arange(BATCH))
    for weight in module.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()  # it keeps two numbers a weight from its first step on
    optimizer.zero_grad(set_to_none=True)
    started = time.perf_counter()
    objective.learn(means, batch)
    optimizer.step()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps({"method": name, "peak": peak, "seconds": seconds}))


def measured(name: str) -> Figure:
    """The figure of one method, from a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--here", name], check=True, capture_output=True, text=True)
    return Figure(**json.loads(done.stdout))


def main() -> int:
    """Print the table; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=list(SETTINGS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        step(arguments.methods[0])
        return 0
    print(f"One step of ViT-base/16 at {SIDE} px, {BATCH} images with masks.")
    figures = []
    for name in arguments.methods:
        figures.append(measured(name))
        one = figures[-1]
        mark = "" if one.within else "  OVER BUDGET"
        print(f"{one.method:<24}{one.peak:7.2f} GB of {one.budget:.0f}, {one.seconds:.0f} s{mark}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")
    return 0 if all(figure.within for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
