"""What scoring costs: one large map from its method's grid to its scores, and one bootstrap, against their budgets.

Run with `python benchmarks/scoring.py [--json FILE]`; ends with code 1 if a budget is missed. Everything runs on one
core, and each figure is the best of several rounds, because other work on the machine can only slow a round down.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL"):  # read once, when NumPy and torch are imported below
    os.environ[f"{_library}_NUM_THREADS"] = "1"

SIDE, CASES, COLUMNS, DRAWS = 2000, 668, 10, 1000
PLAIN = "one plain NumPy pass (map + 1)"
SCORE = f"score one {SIDE}x{SIDE} map: resize, Otsu, IoU, hit"
BOOTSTRAP = f"{DRAWS} draws over {CASES}x{COLUMNS}"
GAPS = f"{BOOTSTRAP}, other patients in each column"
BUDGETS = {SCORE: 80.0, BOOTSTRAP: 50.0, GAPS: 50.0}  # milliseconds


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    milliseconds: float
    passes: float  # in units of one plain NumPy pass over the map
    budget: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the budget, if there is one, was kept."""
        return self.budget is None or self.milliseconds <= self.budget


def best_milliseconds(work: Callable[[], object], rounds: int = 9) -> float:
    """The shortest of several runs, after one to warm up."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def scoring_times() -> dict[str, float]:
    """The time of each step of scoring one map, and of all of them, in milliseconds."""
    import cv2
    import numpy as np
    import torch

    from heatcheck.core.geometry import place
    from heatcheck.maps.prepare import prepare
    from heatcheck.maps.resize import to_image
    from heatcheck.metrics.overlap import iou
    from heatcheck.metrics.pointing import hit
    from heatcheck.metrics.relevance import rank
    from heatcheck.regions.points import peaks
    from heatcheck.regions.rule import RegionRule, region_of

    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    coarse = torch.from_numpy(np.random.default_rng(0).random((1, 10, 10), dtype=np.float32))
    placement, rule = place((SIDE, SIDE), (320, 320), "stretch"), RegionRule()
    truth = np.zeros((SIDE, SIDE), dtype=bool)
    truth[600:1300, 500:1200] = True
    raw = to_image(coarse, placement)[0]
    region = region_of(prepare(raw), rule)

    def score() -> object:
        seen = to_image(coarse, placement)[0]
        return iou(region_of(prepare(seen), rule), truth), hit(peaks(seen), truth)

    return {
        PLAIN: best_milliseconds(lambda: raw + 1),
        SCORE: best_milliseconds(score),
        "  resize from 10x10": best_milliseconds(lambda: to_image(coarse, placement)),
        "  normalise and Otsu": best_milliseconds(lambda: region_of(prepare(raw), rule)),
        "  IoU": best_milliseconds(lambda: iou(region, truth)),
        "  peaks and hit": best_milliseconds(lambda: hit(peaks(raw), truth)),
        "rank accuracy (not in the budget)": best_milliseconds(lambda: rank(raw, truth)),
    }


def bootstrap_times() -> dict[str, float]:
    """The time of one bootstrap over all findings, complete and with each finding's own patients."""
    import numpy as np

    from heatcheck.stats.resampling.bootstrap import mean_estimates

    generator = np.random.default_rng(0)
    values, patients = generator.random((CASES, COLUMNS)), generator.integers(0, 500, CASES)
    gaps = np.where(generator.random(values.shape) < 0.3, np.nan, values)
    return {
        BOOTSTRAP: best_milliseconds(lambda: mean_estimates(values, patients, DRAWS, np.random.default_rng(1))),
        GAPS: best_milliseconds(lambda: mean_estimates(gaps, patients, DRAWS, np.random.default_rng(1))),
    }


def figures() -> tuple[Figure, ...]:
    """All lines of the table, in order."""
    times = scoring_times() | bootstrap_times()
    return tuple(Figure(what, ms, ms / times[PLAIN], BUDGETS.get(what)) for what, ms in times.items())


def main() -> int:
    """The exit code: 1 if a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    table = figures()
    print(f"{'what':<58}{'ms':>8}{'passes':>9}{'budget':>9}")
    for figure in table:
        budget = "" if figure.budget is None else f"{figure.budget:.0f} ms{'' if figure.is_met else ' MISSED'}"
        print(f"{figure.what:<58}{figure.milliseconds:>8.2f}{figure.passes:>9.1f}{budget:>9}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in table], indent=2, ensure_ascii=False))
    return 0 if all(figure.is_met for figure in table) else 1


if __name__ == "__main__":
    sys.exit(main())
