"""Coverage of `clustered_least_squares`: skewed features whose noise grows with them, and mild ones.

Run with `python -m benchmarks.simulations.slopes [--repetitions N] [--seed S]`.
"""

import numpy as np
from benchmarks.simulations.row import PATIENTS, Row, main, row, views

from heatcheck.stats.regression import FEWEST_PATIENTS, Observations, clustered_least_squares

SETTINGS = ("size", "number", "probability", "two kinds of patients")
FINDINGS = 3
SLOPE = 0.0  # intervals of least squares move with the slope, so that one value tells of all


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Slopes of a feature without effect, over three findings of different difficulty; fewer patients have none."""
    rows = []
    for setting in SETTINGS:
        for patients in (each for each in sorted({*PATIENTS, FEWEST_PATIENTS, 20}) if each >= FEWEST_PATIENTS):
            generator = np.random.default_rng([seed, patients])
            fits = [clustered_least_squares(_rows(setting, patients, generator)) for _ in range(repetitions)]
            rows.append(row(setting, patients, SLOPE, [(fit.value, fit.low, fit.high) for fit in fits]))
    return rows


def _rows(setting: str, patients: int, generator: np.random.Generator) -> Observations:
    """Cases with a finding each; a patient's cases share a part of the feature and of the noise."""
    patient = views(patients, generator)
    finding = generator.integers(0, FINDINGS, len(patient))
    shared, apart = generator.normal(size=patients)[patient], generator.normal(size=len(patient))
    if setting == "size":
        feature = np.exp(1.0 * shared + 0.5 * apart)
    elif setting == "number":
        feature = 1.0 + generator.poisson(0.5 * np.exp(0.8 * shared))
    elif setting == "probability":
        feature = 1 / (1 + np.exp(-shared - apart))
    else:
        feature = (shared > 1).astype(float)  # every sixth patient
    scale = 0.05 + 0.1 * feature / max(feature.max(), 1e-9)
    noise = 0.7 * generator.normal(size=patients)[patient] + 0.7 * generator.normal(size=len(patient))
    return Observations(feature, 0.1 * finding + scale * noise, finding, patient)


if __name__ == "__main__":
    main(simulate)
