"""What comparing maps costs: one pair of 128×128 maps, when all pairs of ten methods are taken in one call.

Run with `python benchmarks/similarity.py [--json FILE]`; ends with code 1 if mutual information misses its budget.
Everything runs on one core, and each figure is the best of several rounds. Beside it: scikit-learn on maps that are
binned already, without and with what chance gives, and the printed formula as a double loop over all pixels, timed on
some and scaled up. The paper took about 250 seconds for one pair.
"""

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL"):  # read once, when NumPy is imported below
    os.environ[f"{_library}_NUM_THREADS"] = "1"

SIDE, METHODS, BUDGET, PAPER = 128, 10, 1.0, 250_000.0  # the last two in milliseconds
OURS = "mutual information, chance taken out"
LOOKED_AT = 40  # pixels of the first map, in the double loop


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    milliseconds: float  # of one pair
    ratio: float  # to ours


def best_milliseconds(work: Callable[[], object], rounds: int = 9) -> float:
    """The shortest of several runs, after one to warm up."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def double_loop(one: Sequence[float], other: Sequence[float], looked_at: int) -> float:
    """The printed formula over the first pixels of one map and all of the other, every value being a level."""
    n = len(one)
    of_one, of_other, together = Counter(one), Counter(other), Counter(zip(one, other, strict=True))
    total = 0.0
    for u in one[:looked_at]:
        for v in other:
            p = together[u, v] / n
            if p:
                total += p * math.log(p / ((of_one[u] / n) * (of_other[v] / n)))
    return total


def figures() -> tuple[Figure, ...]:
    """All lines of the table, in order."""
    import cv2
    import numpy as np
    from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score

    from heatcheck.metrics.information import levels_of
    from heatcheck.metrics.similarity import BINS, RECOMMENDED, similarities

    cv2.setNumThreads(1)
    maps = np.random.default_rng(0).random((METHODS, SIDE, SIDE), dtype=np.float32)
    one, other = levels_of(maps[:2].reshape(2, -1), BINS)
    pairs = METHODS * (METHODS - 1) / 2

    def of_all(*names: str) -> float:
        return best_milliseconds(lambda: similarities(maps, names)) / pairs

    loop = best_milliseconds(lambda: double_loop(maps[0].ravel().tolist(), maps[1].ravel().tolist(), LOOKED_AT), 3)
    times = {
        OURS: of_all("mutual_information"),
        "  and normalised": of_all("mutual_information", "normalised_mutual_information"),
        "  as published, 256 levels": of_all("mutual_information_paper"),
        "cross-correlation": of_all("cross_correlation"),
        "SSIM": of_all("ssim"),
        "SSIM, one window": of_all("ssim_global"),
        "all five recommended measures": of_all(*RECOMMENDED),
        "scikit-learn, not corrected": best_milliseconds(lambda: mutual_info_score(one, other)),
        "scikit-learn, adjusted": best_milliseconds(lambda: adjusted_mutual_info_score(one, other)),
        "double loop, not corrected": loop * one.size / LOOKED_AT,
        "the paper's": PAPER,
    }
    return tuple(Figure(what, ms, ms / times[OURS]) for what, ms in times.items())


def main() -> int:
    """The exit code: 1 if the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    table = figures()
    met = table[0].milliseconds <= BUDGET
    print(f"{f'one pair of {SIDE}x{SIDE} maps':<42}{'ms':>12}{'ratio':>12}")
    for figure in table:
        print(f"{figure.what:<42}{figure.milliseconds:>12.3f}{figure.ratio:>12.3g}")
    print(f"budget of mutual information: {BUDGET:.0f} ms{'' if met else ' MISSED'}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in table], indent=2, ensure_ascii=False))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
