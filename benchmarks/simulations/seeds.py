"""Coverage of the AUROC of several trained networks: seeds and patients vary.

Run with `python -m benchmarks.simulations.seeds [--repetitions N] [--seed S]`. The patients are those with the finding;
prevalence is 30 %. The first figure of each setting draws patients alone.
"""

import math
from itertools import product

import numpy as np
from benchmarks.simulations.row import PATIENTS, Row, main, row, views
from scipy.special import ndtr

from heatcheck.stats.auroc import clustered_auroc
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.over_seeds import SeedFigure, figure_interval
from heatcheck.stats.resampling.studentised import Linearised

KINDS = 5  # networks of a base that are fine-tuned alike, each with its seeds
SETTINGS = tuple(product((2, 3, 5), (0.1, 0.3)))  # seeds, SD of the distance between the classes over seeds
DISTANCE = 1.47  # between the classes, in SD: an AUROC of 0.85


def simulate(repetitions: int, seed: int) -> list[Row]:
    """The mean AUROC over seeds of one kind of network; the truth is the mean over all trainings."""
    rows = []
    for (seeds, spread), positives in product(SETTINGS, PATIENTS):
        generator = np.random.default_rng([seed, seeds, positives])
        # the mean AUROC over trainings with distance ~ N(DISTANCE, spread²)
        truth = float(ndtr(DISTANCE / math.sqrt(2 + spread**2)))
        found: dict[str, list[tuple[float, float, float]]] = {"patients alone": [], "patients and seeds": []}
        for _ in range(repetitions):
            figures = _figures(seeds, spread, positives, generator)
            alone, both = figures[0].interval, figure_interval(figures[0], figures, (0.0, 1.0))
            found["patients alone"].append((alone.value, alone.low, alone.high))
            found["patients and seeds"].append((both.value, both.low, both.high))
        rows += [row(f"{name}; {seeds} seeds, SD {spread:g}", positives, truth, each) for name, each in found.items()]
    return rows


def _figures(seeds: int, spread: float, positives: int, generator: np.random.Generator) -> list[SeedFigure]:
    patient = views(math.ceil(positives / 0.3), generator)
    has = (generator.random(patient.max() + 1) < 0.3)[patient].astype(float)
    has[:2], has[-2:] = (1.0, 0.0)
    hard = generator.normal(0, 0.7, patient.max() + 1)[patient]
    figures = []
    for _ in range(KINDS):
        each = []
        for distance in DISTANCE + spread * generator.normal(size=seeds):
            rated = hard + math.sqrt(1 - 0.7**2) * generator.normal(size=len(patient)) + distance * has
            each.append(clustered_auroc(has, rated, patient))
        values = np.array([one.interval.value for one in each])
        influences = np.mean([one.influences for one in each], axis=0)[:, None]
        mean = Linearised(
            values.mean(keepdims=True), influences, each[0].takes_part[:, None],
            np.sqrt(np.sum(influences**2, axis=0)), np.array([each[0].freedom]),
        )  # fmt: skip
        low, high = np.mean([[one.interval.low, one.interval.high] for one in each], axis=0).tolist()
        figures.append(SeedFigure(values, mean, Interval(float(values.mean()), low, high)))
    return figures


if __name__ == "__main__":
    main(simulate)
