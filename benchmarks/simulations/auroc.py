"""Coverage of `clustered_auroc`: rare and common findings, good and very good models, ratings of several shapes.

Run with `python -m benchmarks.simulations.auroc [--repetitions N] [--seed S]`. The number of patients in the table is
about the mean number of patients with the finding; there are more without it.
"""

import math

import numpy as np
from benchmarks.simulations.row import PATIENTS, Row, main, row, views
from scipy.special import ndtr, ndtri

from heatcheck.stats.auroc import auroc_difference, clustered_auroc

SETTINGS = (("normal", 0.3, 0.7), ("normal", 0.3, 0.85), ("normal", 0.1, 0.85), ("normal", 0.1, 0.95),
            ("exponential", 0.3, 0.85), ("exponential", 0.1, 0.95), ("some missed", 0.3, 0.85),
            ("some missed", 0.1, 0.95), ("normal", 0.1, 0.99), ("exponential", 0.04, 0.95), ("exponential", 0.3, 0.97),
            ("some missed", 0.3, 0.97))  # fmt: skip
_SAME_LABEL = 0.8  # share of cases that have their patient's label
_ALIKE = math.sqrt(0.6), math.sqrt(0.4)  # of a rating's noise: what a patient's cases share, and what they do not


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Ratings of several shapes; `some missed` are patients whose finding the model does not see at all."""
    rows = []
    for shape, prevalence, truth in SETTINGS:
        for positive in PATIENTS:
            generator = np.random.default_rng([seed, positive])
            estimates = []
            for _ in range(repetitions):
                labels, ratings, patient = _cases(positive, shape, (prevalence, truth), generator)
                interval = clustered_auroc(labels, ratings, patient).interval
                estimates.append((interval.value, interval.low, interval.high))
            rows.append(row(f"{shape}, prevalence {prevalence:.0%}, AUROC {truth}", positive, truth, estimates))
    return rows + [_difference(positive, repetitions, seed) for positive in PATIENTS]


def _difference(positive: int, repetitions: int, seed: int) -> Row:
    """Two models that share most of their errors, AUROC 0.90 and 0.85, prevalence 30 %."""
    generator = np.random.default_rng([seed, positive])
    estimates = []
    for _ in range(repetitions):
        labels, first, patient = _cases(positive, "normal", (0.3, 0.9), generator)
        shared = first - math.sqrt(2) * ndtri(0.9) * labels
        noise = math.sqrt(0.7) * shared + math.sqrt(0.3) * generator.normal(size=len(labels))
        interval = auroc_difference(labels, first, noise + math.sqrt(2) * ndtri(0.85) * labels, patient)
        estimates.append((interval.value, interval.low, interval.high))
    return row("difference of two models, prevalence 30%, 0.90 and 0.85", positive, 0.05, estimates)


def _cases(
    positive: int, shape: str, target: tuple[float, float], generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, ratings and patients; some patients have cases with and without the finding."""
    prevalence, auroc = target
    # a patient of 2.5 cases has one with the finding with a chance above the prevalence
    clean = (1 - _SAME_LABEL) * prevalence
    chance = prevalence + (1 - prevalence) * np.mean([1 - (1 - clean) ** number for number in range(1, 5)])
    patients = round(positive / chance)
    patient = views(patients, generator)
    kept = generator.random(len(patient)) < _SAME_LABEL
    drawn = generator.random(len(patient)) < prevalence
    labels = np.where(kept, (generator.random(patients) < prevalence)[patient], drawn)
    noise = _ALIKE[0] * generator.normal(size=patients)[patient] + _ALIKE[1] * generator.normal(size=len(patient))
    if shape == "normal":
        ratings = noise + math.sqrt(2) * ndtri(auroc) * labels
    elif shape == "exponential":
        ratings = -np.log(ndtr(noise)) * np.where(labels, auroc / (1 - auroc), 1)
    else:
        seen = (generator.random(patients) < 2 * auroc - 1)[patient]
        ratings = noise + 20 * (labels & seen)
    return labels.astype(float), ratings, patient


if __name__ == "__main__":
    main(simulate)
