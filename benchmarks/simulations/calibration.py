"""How well `calibration_error_by_chance` predicts the calibration error of perfectly calibrated models.

Run with `python -m benchmarks.simulations.calibration [--repetitions N] [--seed S]`. There is no interval of the error
itself: debiased estimates with intervals covered 75 to 90 % for overconfident models and rare findings. So the
coverage is the share of perfect models whose error is at most `high`, and the relative width is the mean of `high`
over the error that 95 % of perfect models do not exceed. `means` compares the mean errors.
"""

import math

import numpy as np
from benchmarks.simulations.row import PATIENTS, Row, main, row, views
from scipy.special import expit, logit, ndtr

from heatcheck.metrics.classification import calibration_error_by_chance, expected_calibration_error

SETTINGS = ((0.3, 0.7), (0.3, 0.0), (0.05, 0.7))  # prevalence, correlation of a patient's cases


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Errors of perfect models against the limit; `truth below` is the share that exceeds it."""
    rows = []
    for prevalence, correlation in SETTINGS:
        for patients in PATIENTS:
            errors, _, highs = _errors((prevalence, correlation), patients, repetitions, seed)
            line = row("", patients, 0.0, np.stack([errors, errors - highs, errors], 1).tolist())
            setting = f"perfect, prevalence {prevalence:.0%}, correlation {correlation}"
            width = float(highs.mean() / np.quantile(errors, 0.95))
            rows.append(Row(setting, patients, 1.0, line.coverage, line.truth_below, width, line.monte_carlo_error))
    return rows


def means(repetitions: int, seed: int) -> list[tuple[float, float, int, float, float]]:
    """Prevalence, correlation, patients, and the mean error of perfect models as it is and as it is predicted."""
    lines = []
    for setting in SETTINGS:
        for patients in PATIENTS:
            errors, predicted, _ = _errors(setting, patients, repetitions, seed)
            lines.append((*setting, patients, float(errors.mean()), float(predicted.mean())))
    return lines


def _errors(setting: tuple[float, float], patients: int, repetitions: int, seed: int) -> np.ndarray:
    """The error, its predicted mean and its predicted limit, for each repetition."""
    generator = np.random.default_rng([seed, patients])
    lines = []
    for _ in range(repetitions):
        labels, probabilities, patient = _cases(*setting, patients, generator)
        chance = calibration_error_by_chance(labels, probabilities, patient)
        lines.append((expected_calibration_error(labels, probabilities).value, chance.mean, chance.high))
    return np.array(lines).T


def _cases(
    prevalence: float, correlation: float, patients: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, their chances and patients; cases of a patient are alike in both."""
    patient = views(patients, generator)

    def alike() -> np.ndarray:
        shared, apart = generator.normal(size=patients)[patient], generator.normal(size=len(patient))
        return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * apart

    chances = expit(logit(prevalence) + 1.6 * alike())
    return (ndtr(alike()) < chances).astype(float), chances, patient


if __name__ == "__main__":
    main(simulate)
    print("\n| prevalence | correlation | patients | mean error of perfect models | predicted |\n|---|---|---|---|---|")
    for line in means(1000, 0):
        print("| {:.0%} | {} | {} | {:.3f} | {:.3f} |".format(*line))
