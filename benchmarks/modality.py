"""What the sixteen methods of the modality study cost on one volume of four modalities, and what an MSFI costs.

    python benchmarks/modality.py [METHOD …] [--json FILE] [--sizes 32 64] [--published]

The 3D VGG of the study on a drawn head; published sample counts divided by five and occlusion without overlap, or as
published. Each size is measured in a process of its own, so that its peak memory is its own. Seconds are wall and
processor time; the latter, over the number of threads, is what a quiet machine would take. A method's cost is also
given in forward passes of four volumes at a time, per volume. Ends with code 1 when a budget is missed.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heatcheck.maps.joint import joint
from heatcheck.methods.covering.masking import best_batch, with_batch
from heatcheck.methods.published import MODALITY_STUDY, Published
from heatcheck.metrics.modality.msfi import msfi, sums_of, weights_of
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing

BUDGETS = {32: 30.0, 64: 240.0}  # seconds for all sixteen
GIGABYTES = 4.0
MSFI_SECONDS = 0.5
DIVIDED = ("samples", "steps", "permutations")


@dataclass(frozen=True)
class Row:
    """What one method cost."""

    method: str
    seconds: float
    processor: float  # seconds of all threads together
    passes: float  # in forward passes of one volume, by processor time


def quicker(published: Published) -> Published:
    """The method with a fifth of its samples, and windows that do not overlap."""
    settings = {key: value // 5 if key in DIVIDED else value for key, value in published.settings.items()}
    if "stride" in settings:
        settings["stride"] = settings["window"]
    return replace(published, settings=settings)


def head(size: int, seed: int = 0) -> torch.Tensor:
    """Four volumes of a noisy ball in empty space, scaled by their own non-zero voxels."""
    rng = np.random.default_rng(seed)
    place = np.stack(np.meshgrid(*[np.linspace(-1, 1, size)] * 3, indexing="ij"))
    inside = (place**2).sum(0) < 0.75  # about a third of the volume, as in BraTS
    values = np.stack([np.sin((3 + m) * place[m % 3]) + rng.normal(0, 0.5, inside.shape) for m in range(4)])
    scaled = (values - values[:, inside].mean(1)[:, None, None, None]) / values[:, inside].std()
    return torch.from_numpy(np.where(inside, scaled, 0).astype(np.float32))[None]


def measured(names: list[str], size: int, *, as_published: bool) -> dict[str, Any]:
    """One row a method, printed as soon as it is known, and the peak memory of the process."""
    torch.manual_seed(0)
    contract = Preprocessing(
        outputs=("LGG", "HGG"), size=(size,) * 3, channels=4, mean=(0.0,), std=(1.0,), activation="softmax"
    )
    module = MODELS["vgg3d"].build(4, 2, (size,) * 3).eval()
    classifier = NetworkClassifier("vgg3d", module, contract)
    image, donors = head(size), torch.cat([head(size, seed) for seed in (1, 2)])
    batch = best_batch(classifier, image)
    one = forward(module, image)
    note(f"{size}³: a forward pass {1e3 * one:.0f} ms of processor time, {batch} copies at a time")
    rows = []
    for published in MODALITY_STUDY:
        if names and published.method not in names:
            continue
        method: Any = with_batch((published if as_published else quicker(published)).build(), batch)
        if published.method == "feature_permutation":
            method = replace(method, donors=(donors,))
        wall, processor = time.perf_counter(), time.process_time()
        method(classifier, image, torch.tensor([[1]]), [0])
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        rows.append(Row(published.method, wall, processor, processor / one))
        note(f"  {published.method:<24}{wall:8.2f} s {processor:8.2f} s of processor {processor / one:8.1f} passes")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"size": size, "batch": batch, "forward": one, "peak_gigabytes": peak, "rows": [asdict(row) for row in rows]}


def forward(module: torch.nn.Module, image: torch.Tensor) -> float:
    """The processor seconds of a forward pass of one volume among four: the least of five."""
    taken = []
    with torch.no_grad():
        for _ in range(5):
            start = time.process_time()
            module(image.expand(4, -1, -1, -1, -1).contiguous())
            taken.append((time.process_time() - start) / 4)
    return min(taken)


def of_a_brats_map() -> tuple[float, float]:
    """The seconds of bringing a map of 4×240×240×155 to [0, 1], and of its MSFI."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 240, 240, 155), np.float32)
    inside = np.zeros((240, 240, 155), bool)
    inside[50:190, 40:200, 20:140] = True
    lesions = np.zeros((4, 240, 240, 155), bool)
    lesions[:, 90:130, 80:140, 60:100] = True
    importance = np.array([0.03, 0.55, -0.04, 0.16])
    start = time.perf_counter()
    ready = joint(values, inside)
    between = time.perf_counter()
    found = sums_of(ready, lesions)
    msfi(found.sums, found.inside, weights_of(importance, "positive"))
    return between - start, time.perf_counter() - between


def note(text: str) -> None:
    """Something on the way; the table itself goes to standard output."""
    print(text, file=sys.stderr, flush=True)


def mark(kept: bool) -> str:
    """What stands behind a figure that misses its budget."""
    return "" if kept else "  OVER BUDGET"


def in_a_process(size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a process of its own measures for one size."""
    published = ["--published"] if arguments.published else []
    command = [sys.executable, __file__, "--one", str(size), *published, *arguments.methods]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Print the tables; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=sorted(BUDGETS))
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.methods, arguments.one, as_published=arguments.published)))
        return 0
    threads, within, found = torch.get_num_threads(), True, []
    for size in arguments.sizes:
        one = in_a_process(size, arguments)
        wall, processor = (sum(row[what] for row in one["rows"]) for what in ("seconds", "processor"))
        budget = float("inf") if arguments.published else BUDGETS.get(size, float("inf"))
        kept = wall <= budget and one["peak_gigabytes"] <= GIGABYTES
        print(
            f"{len(one['rows'])} methods on 4×{size}³: {wall:.1f} s of {budget:.0f} ({processor / threads:.1f} s on "
            f"{threads} quiet cores), {one['peak_gigabytes']:.2f} GB of {GIGABYTES:.0f}{mark(kept)}"
        )
        within &= kept
        found.append(one)
    scaling, scoring = (min(times) for times in zip(*(of_a_brats_map() for _ in range(3)), strict=True))
    kept = scoring <= MSFI_SECONDS
    print(f"4×240×240×155: scaled in {scaling:.2f} s, MSFI in {scoring:.2f} s of {MSFI_SECONDS}{mark(kept)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if within and kept else 1


if __name__ == "__main__":
    sys.exit(main())
