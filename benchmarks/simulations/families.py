"""False claims of simultaneous intervals: methods and floors that are all alike, compared with each other.

Run with `python -m benchmarks.simulations.families [--repetitions N] [--seed S]`. A family "holds" when none of its
intervals excludes 0; that should be so in 95 % of the repetitions.
"""

from itertools import combinations, product

import numpy as np
from benchmarks.simulations.row import Row, main, views

from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.studentised import linearised_macro, linearised_ratios, simultaneous_intervals

DRAWS = 1000
METHODS, FLOORS = 19, 4
STUDIES = ((48, 5), (150, 5), (300, 10))  # images, findings


def simulate(repetitions: int, seed: int) -> list[Row]:
    """All pairs of 19 equal methods, and each of them against four equal floors, by overlap and by hits."""
    rows = []
    pairs = list(combinations(range(METHODS), 2))
    floors = list(product(range(METHODS), range(METHODS, METHODS + FLOORS)))
    for (images, findings), hits in product(STUDIES, (False, True)):
        generator = np.random.default_rng([seed, images, hits])
        held = np.zeros((2, 3))
        for _ in range(max(100, repetitions // 10)):
            patient, scores = _scores(images, findings, generator, hits=hits)
            for family, compared in enumerate((pairs, floors)):
                held[family] += _outcome(patient, scores, compared, generator)
        for name, (kept, beats, _) in zip(("all pairs of methods", "methods against floors"), held, strict=True):
            count = max(100, repetitions // 10)
            share = kept / count
            setting = f"{name}, {'hits' if hits else 'overlap'}, {images} images, {findings} findings"
            error = float(np.sqrt(share * (1 - share) / count))
            rows.append(Row(setting, images // 2, 1.0, float(share), float(beats / count), np.nan, error))
    return rows


def _scores(images: int, findings: int, generator: np.random.Generator, *, hits: bool) -> tuple[np.ndarray, np.ndarray]:
    """The patient of each image, and scores by image, method and finding; methods agree about what is hard."""
    patient = views(images, generator)[:images]
    has = (generator.random((images, findings)) < np.linspace(0.1, 0.5, findings))[patient]
    hard = generator.normal(0, 0.8, has.shape) + generator.normal(0, 0.5, images)[patient][:, None]
    shape = (images, METHODS + FLOORS, findings)
    luck = generator.normal(0, 0.4, shape)[patient]
    scores = 1 / (1 + np.exp(-(hard[:, None] - 1.6 + luck + generator.normal(0, 0.8, shape))))
    if hits:
        scores = (generator.random(shape) < scores).astype(float)
    else:
        scores = np.where(generator.random(shape) < 0.25, 0.0, scores)
    return patient, np.where(has[:, None], scores, np.nan)


def _outcome(
    patient: np.ndarray, scores: np.ndarray, compared: list[tuple[int, int]], generator: np.random.Generator
) -> np.ndarray:
    """Whether no interval excludes 0, whether one lies above it, and whether one lies below."""
    scores = scores[:, :, ~np.isnan(scores).all((0, 1))]
    differences = np.stack([scores[:, one] - scores[:, other] for one, other in compared], axis=1)
    totals = cluster_totals(differences.reshape(len(patient), -1), patient)
    family = linearised_macro(linearised_ratios(totals.sums, totals.counts), scores.shape[2])
    intervals = simultaneous_intervals(family, DRAWS, generator).intervals
    above, below = any(each.low > 0 for each in intervals), any(each.high < 0 for each in intervals)
    return np.array([not (above or below), above, below])


if __name__ == "__main__":
    main(simulate)
