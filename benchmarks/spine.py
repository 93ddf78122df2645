"""What a user waits for: start-up, Grad-CAM in forward passes, and the whole demonstration.

    python benchmarks/spine.py [--json FILE] [--without-demo]

Ends with code 1 when a budget is missed.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from heatcheck.methods.cam import GradCam
from heatcheck.models import NetworkClassifier, Preprocessing

FINDINGS = tuple(f"finding {n}" for n in range(10))


@dataclass(frozen=True)
class Figure:
    """One measurement beside its budget."""

    what: str
    value: float
    unit: str
    budget: float

    @property
    def within(self) -> bool:
        """Whether the budget is kept."""
        return self.value <= self.budget


def round_seconds(call: Callable[[], object], rounds: int) -> list[float]:
    """The time of each round."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def grad_cam_in_forward_passes() -> Figure:
    """Grad-CAM for ten findings on DenseNet-121 at 320 px, in forward passes measured in the same rounds."""
    from monai.networks.nets.densenet import DenseNet121

    module = DenseNet121(spatial_dims=2, in_channels=1, out_channels=10).eval()
    contract = Preprocessing(outputs=FINDINGS, size=(320, 320), mean=(0.0,), std=(1.0,))
    classifier = NetworkClassifier("densenet121", module, contract)
    image, targets = torch.randn(1, 1, 320, 320), torch.arange(10)[None]

    def forward() -> None:
        with torch.no_grad():
            module(image)

    def cam() -> None:
        GradCam()(classifier, image, targets, [0])

    forward()
    cam()
    ratios = []
    for _ in range(15):  # one after the other, so that both see the same machine
        (alone,), (with_maps,) = round_seconds(forward, 1), round_seconds(cam, 1)
        ratios.append(with_maps / alone)
    return Figure("Grad-CAM, 10 findings, DenseNet-121 at 320 px", statistics.median(ratios), "forward passes", 1.15)


def command_seconds(what: str, words: list[str], budget: float) -> Figure:
    """The best of three calls of a command."""
    call = [sys.executable, *words]
    seconds = round_seconds(lambda: subprocess.run(call, check=True, capture_output=True), 3)
    return Figure(what, min(seconds), "s", budget)


def demo() -> list[Figure]:
    """Time and memory of the whole demonstration in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "heatcheck", "demo", "--out", str(Path(folder) / "run"), "-q"]
        start = time.perf_counter()
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        report = (Path(folder) / "run" / "report.html").stat().st_size / 1e6
    return [
        Figure("the demonstration, four studies", seconds, "s", 180),
        Figure("its memory at most", peak, "GB", 3),
        Figure("its report", report, "MB", 15),
    ]


def main() -> int:
    """Print the table; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--without-demo", action="store_true")
    arguments = parser.parse_args()
    empty = min(round_seconds(lambda: subprocess.run([sys.executable, "-c", ""], check=True), 3))
    figures = [
        command_seconds("import heatcheck (interpreter included)", ["-c", "import heatcheck"], 0.3 + empty),
        command_seconds("heatcheck --help", ["-m", "heatcheck", "--help"], 1.0),
        command_seconds("heatcheck list methods", ["-m", "heatcheck", "list", "methods"], 3.0),
        command_seconds("heatcheck list studies", ["-m", "heatcheck", "list", "studies"], 3.0),
        grad_cam_in_forward_passes(),
        *([] if arguments.without_demo else demo()),
    ]
    for figure in figures:
        mark = "" if figure.within else "  OVER BUDGET"
        print(f"{figure.what:<48} {figure.value:8.2f} {figure.unit:<15} budget {figure.budget:.2f}{mark}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")
    return 0 if all(figure.within for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
