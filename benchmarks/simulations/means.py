"""Coverage of studentised intervals: means, differences and decreases of skewed scores, and means over findings.

Run with `python -m benchmarks.simulations.means [--repetitions N] [--seed S]`.
"""

from collections.abc import Callable

import numpy as np
from benchmarks.simulations.row import DRAWS, PATIENTS, Row, main, row, views

from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.studentised import (
    Linearised,
    contrast,
    linearised_macro,
    linearised_ratios,
    studentised_intervals,
    t_intervals,
)

PREVALENCE = np.linspace(0.02, 0.30, 10)  # of ten findings
IMAGES = (100, 300, 700)  # of a study with these findings
TRUTH = 2_000_000  # cases from which the true means are computed


def simulate(repetitions: int, seed: int) -> list[Row]:
    """One finding with 6 to 150 patients, then ten findings of which some are rare."""
    rows = []
    first, second = (float(part.mean()) for part in _pair(TRUTH // 2, np.random.default_rng([seed, 1]))[1:])
    for setting, truth, of in (
        ("mean of skewed scores", first, lambda parts: parts[0]),
        ("difference of two correlated methods", second - first, lambda parts: contrast(*parts)),
        ("decrease in percent", 100 * (1 - second / first), None),
    ):
        for patients in PATIENTS:
            generator = np.random.default_rng([seed, patients])
            intervals = [_interval(patients, generator, of) for _ in range(repetitions)]
            rows.append(row(setting, patients, truth, [(each.value, each.low, each.high) for each in intervals]))
    truths = _finding_means(np.random.default_rng([seed, 2]))
    for images in IMAGES:
        generator = np.random.default_rng([seed, images])
        macros = [_macro(images, generator, truths) for _ in range(repetitions)]
        rows.append(row(f"mean over ten findings, {images} images", images // 2, 0.0, macros))
    return rows


def _pair(patients: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The patient of each case and two methods' scores: many at 0, few high, alike within a patient."""
    patient = views(patients, generator)
    level = generator.normal(0, 0.8, patients)[patient] + generator.normal(0, 0.6, len(patient))
    scores = []
    for shift in (-1.4, -1.8):
        score = 1 / (1 + np.exp(-(shift + level + generator.normal(0, 0.7, len(patient)))))
        scores.append(np.where(generator.random(len(patient)) < 0.25, 0.0, score))
    return patient, scores[0], scores[1]


def _interval(
    patients: int, generator: np.random.Generator, of: Callable[[list[Linearised]], Linearised] | None
) -> Interval:
    patient, *scores = _pair(patients, generator)
    totals = [cluster_totals(score[:, None], patient) for score in scores]
    parts = [linearised_ratios(total.sums, total.counts) for total in totals]
    if of is not None:
        return studentised_intervals(of(parts), DRAWS, generator)[0]
    first, second = (float(part.values[0]) for part in parts)
    decrease = contrast(parts[0], parts[1], (100 * second / first**2, -100 / first))
    shifted = Linearised(np.array([100 * (1 - second / first)]), decrease.influences, decrease.takes_part,
                         decrease.errors, decrease.freedom)  # fmt: skip
    return studentised_intervals(shifted, DRAWS, generator)[0]


def _films(images: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The patient of each image, and its score for each of ten findings, NaN where the patient has not got it."""
    patient = views(images, generator)[:images]
    has = (generator.random((images, len(PREVALENCE))) < PREVALENCE)[patient]
    level = generator.normal(0, 0.8, images)[patient][:, None] + np.linspace(-2, -0.6, len(PREVALENCE))
    scores = 1 / (1 + np.exp(-(level + generator.normal(0, 0.9, has.shape))))
    return patient, np.where(has, np.where(generator.random(has.shape) < 0.25, 0.0, scores), np.nan)


def _finding_means(generator: np.random.Generator) -> np.ndarray:
    return np.nanmean(_films(TRUTH, generator)[1], axis=0)


def _macro(images: int, generator: np.random.Generator, truths: np.ndarray) -> tuple[float, float, float]:
    """The error of the mean over the findings that occur, and its interval."""
    patient, scores = _films(images, generator)
    occurs = ~np.isnan(scores).all(0)
    totals = cluster_totals(scores[:, occurs], patient)
    macro = linearised_macro(linearised_ratios(totals.sums, totals.counts), int(occurs.sum()))
    (interval,) = t_intervals(macro)
    truth = float(truths[occurs].mean())
    return interval.value - truth, interval.low - truth, interval.high - truth


if __name__ == "__main__":
    main(simulate)
