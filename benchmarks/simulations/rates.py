"""Coverage of `rate_interval` and `rate_difference_interval`: hits whose chance differs from patient to patient.

Run with `python -m benchmarks.simulations.rates [--repetitions N] [--seed S]`.
"""

from collections.abc import Callable

import numpy as np
from benchmarks.simulations.row import PATIENTS, Row, main, row, views

from heatcheck.stats.rates import rate_difference_interval, rate_interval
from heatcheck.stats.resampling.bca import Interval

RATES = ((0.5, 0.5), (0.8, 0.5), (0.96, 0.1), (0.96, 0.9))  # mean, correlation of a patient's cases
DIFFERENCES = ((0.5, 0.0, 0.05), (0.5, 0.1, 0.1), (0.5, 0.2, 0.5), (0.9, 0.05, 0.05))  # rate, difference, who differ


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Rates in the middle and near 1, and differences of methods that nearly always or rarely agree."""
    rows = []
    for mean, correlation in RATES:
        setting = f"rate {mean}, correlation {correlation}"
        rows += _rows(setting, mean, lambda n, g, m=mean, c=correlation: _rate(n, m, c, g), repetitions, seed)
    for mean, difference, share in DIFFERENCES:
        setting = f"difference {difference}, {share:.0%} of patients differ, rate {mean}"
        of = lambda n, g, m=mean, d=difference, s=share: _difference(n, m, d, s, g)  # noqa: E731
        rows += _rows(setting, difference, of, repetitions, seed)
    return rows


def _rows(
    setting: str,
    truth: float,
    interval: Callable[[int, np.random.Generator], Interval],
    repetitions: int,
    seed: int,
) -> list[Row]:
    rows = []
    for patients in PATIENTS:
        generator = np.random.default_rng([seed, patients])
        intervals = [interval(patients, generator) for _ in range(repetitions)]
        rows.append(row(setting, patients, truth, [(each.value, each.low, each.high) for each in intervals]))
    return rows


def _hits(patients: int, mean: float, correlation: float, generator: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The patient of each case and whether it is hit; every patient has a chance of its own."""
    patient = views(patients, generator)
    prior = (1 - correlation) / correlation
    chance = generator.beta(mean * prior, (1 - mean) * prior, patients)[patient]
    return patient, (generator.random(len(patient)) < chance).astype(float)


def _rate(patients: int, mean: float, correlation: float, generator: np.random.Generator) -> Interval:
    patient, hits = _hits(patients, mean, correlation, generator)
    return rate_interval(np.bincount(patient, hits), np.bincount(patient).astype(float))


def _difference(
    patients: int, mean: float, difference: float, share: float, generator: np.random.Generator
) -> Interval:
    """Some patients are hit by one method only; on all others both do the same."""
    patient, hits = _hits(patients, mean, 0.5, generator)
    lot = generator.random(patients)[patient]
    gains = (share + difference) / 2
    first = np.where(lot < gains, 1.0, np.where(lot < share, 0.0, hits))
    second = np.where(lot < gains, 0.0, np.where(lot < share, 1.0, hits))
    counts = np.bincount(patient).astype(float)
    return rate_difference_interval(np.bincount(patient, first), np.bincount(patient, second), counts)


if __name__ == "__main__":
    main(simulate)
