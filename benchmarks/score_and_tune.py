"""What grading maps costs: `heatcheck score` and `heatcheck tune` against the CheXlocalize scripts' own timings.

Run with `python benchmarks/score_and_tune.py [--json FILE]`; ends with code 1 if a budget is missed. The work has the
shape of the published one: films of 1500 to 2500 pixels, ten findings each, maps of 10 × 10 in pickles that also carry
the film as the model saw it. Each command is a process of its own, so starting up counts; its peak memory is what the
system reports. Half the films are scored as well: the other half must not cost more than they do.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

FILMS = 40
FINDINGS = (
    "Airspace Opacity", "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum",
    "Lung Lesion", "Pleural Effusion", "Pneumothorax", "Support Devices",
)  # fmt: skip
# seconds the published scripts took for this shape of work on a machine with two cores
PUBLISHED = {
    "maps to regions": 18, "threshold tuning": 184, "cutoff tuning": 325, "IoU with bootstrap": 9, "hits": 9,
    "features": 4, "regressions": 7,
}  # fmt: skip
TUNING = ("threshold tuning", "cutoff tuning")
SECONDS, MEGABYTES = 20.0, 2000.0  # budgets: of both commands together, and of each


@dataclass(frozen=True, slots=True)
class Figure:
    """One command."""

    what: str
    films: int
    seconds: float
    megabytes: float
    published: float | None = None  # seconds of the scripts that do the same

    @property
    def line(self) -> str:
        """One line of the table."""
        ratio = f"{self.published / self.seconds:6.1f} times faster" if self.published else ""
        return f"{self.what:<28} {self.films:>3} films {self.seconds:7.1f} s {self.megabytes:7.0f} MB  {ratio}"


def make_films(folder: Path, films: int) -> None:
    """Maps, truth, readers and points in the published formats."""
    (folder / "maps").mkdir(parents=True)
    generator = np.random.default_rng(1)
    truth: dict[str, dict[str, object]] = {}
    readers: dict[str, dict[str, object]] = {}
    points: dict[str, dict[str, object]] = {}
    for number in range(films):
        name = f"patient{64000 + number // 2:05d}_study1_view{number % 2 + 1}_frontal"
        height, width = generator.integers(1500, 2501, 2).tolist()
        truth[name] = {"img_size": [height, width]}
        readers[name] = {"img_size": [height, width]}
        points[name] = {}
        for finding in FINDINGS:
            centre = generator.uniform(0.3, 0.7, 2) * (width, height)
            present = bool(generator.random() < 0.4)
            if present:
                radii = generator.uniform(0.05, 0.2, 2) * (width, height)
                truth[name][finding] = [_outline(centre, radii)]
                readers[name][finding] = [_outline(centre * (1.02, 0.98), radii * (1.1, 1))]
                points[name][finding] = [centre.tolist()]
            _write_map(folder, name, finding, (centre / (width, height), present, (width, height)), generator)
    for file, content in (("truth", truth), ("readers", readers), ("points", points)):
        (folder / f"{file}.json").write_text(json.dumps(content))


def _outline(centre: np.ndarray, radii: np.ndarray) -> list[list[float]]:
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    wave = 1 + 0.15 * np.sin(3 * angles)
    return (centre + radii * np.c_[wave * np.cos(angles), wave * np.sin(angles)]).round(2).tolist()


def _write_map(
    folder: Path,
    name: str,
    finding: str,
    known: tuple[np.ndarray, bool, tuple[int, int]],
    generator: np.random.Generator,
) -> None:
    import torch

    centre, present, size = known
    rows, columns = np.mgrid[:10, :10] / 10
    blob = np.exp(-((columns - centre[0]) ** 2 + (rows - centre[1]) ** 2) / 0.02)
    values = generator.random((10, 10)) * (0.4 if present else 1) + (blob if present else 0)
    content = {
        "map": torch.from_numpy(values.astype(np.float32))[None, None],
        "prob": float(np.clip(generator.normal(0.65 if present else 0.3, 0.2), 0, 1)),
        "task": finding,
        "gt": int(present),
        "cxr_img": torch.from_numpy(generator.random((3, 320, 320), np.float32)),
        "cxr_dims": size,
    }
    with (folder / "maps" / f"{name}_{finding}_map.pkl").open("wb") as file:
        pickle.dump(content, file)


def run(words: list[str]) -> tuple[float, float]:
    """The seconds and the peak memory, in megabytes, of one command."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "heatcheck", *words, "-q"])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"heatcheck {words[0]} failed with status {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def measure(folder: Path, films: int) -> list[Figure]:
    """Both commands on so many films."""
    make_films(folder, films)
    given = ["--maps", str(folder / "maps"), "--truth", str(folder / "truth.json")]
    readers = ["--human", str(folder / "readers.json"), "--human-points", str(folder / "points.json")]
    scored = run(["score", *given, *readers, "--out", str(folder / "scores")])
    tuned = run(["tune", *given, "--out", str(folder / "tuning")])
    full = films == FILMS
    scripts = sum(seconds for name, seconds in PUBLISHED.items() if name not in TUNING)
    return [
        Figure("heatcheck score", films, *scored, scripts if full else None),
        Figure("heatcheck tune", films, *tuned, sum(PUBLISHED[name] for name in TUNING) if full else None),
    ]


def main() -> None:
    """Measure, print, and say whether the budgets were kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        half = measure(Path(folder) / "half", FILMS // 2)
        whole = measure(Path(folder) / "whole", FILMS)
    for figure in [*half, *whole]:
        print(figure.line)
    together = sum(figure.seconds for figure in whole)
    peak = max(figure.megabytes for figure in whole)
    growth = [(two.seconds - one.seconds) / one.seconds for one, two in zip(half, whole, strict=True)]
    scripts = sum(PUBLISHED.values())
    print(
        f"together {together:.1f} s (budget {SECONDS:.0f} s); the scripts {scripts} s: {scripts / together:.0f} times"
    )
    print(f"peak {peak:.0f} MB (budget {MEGABYTES:.0f} MB)")
    print("twice the films: " + ", ".join(f"{two.what} +{share:.0%}" for two, share in zip(whole, growth, strict=True)))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in [*half, *whole]], indent=1) + "\n")
    sys.exit(together > SECONDS or peak > MEGABYTES or max(growth) > 1.1)


if __name__ == "__main__":
    main()
