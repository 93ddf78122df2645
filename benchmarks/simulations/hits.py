"""Coverage of `logistic_gee`: the slope of hits on a feature with few patients.

Run with `python -m benchmarks.simulations.hits [--repetitions N] [--seed S]`.
"""

import numpy as np
from benchmarks.simulations.row import PATIENTS, Row, main, row, views
from scipy.special import expit

from heatcheck.stats.gee import logistic_gee
from heatcheck.stats.regression import FEWEST_PATIENTS, Observations

SETTINGS = ("size", "probability")
FINDINGS = 2


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Slopes of a feature without effect, with hits that a patient's cases share; fewer patients have none."""
    rows = []
    for setting in SETTINGS:
        for patients in (each for each in sorted({*PATIENTS, FEWEST_PATIENTS}) if each >= FEWEST_PATIENTS):
            generator = np.random.default_rng([seed, patients])
            fits = [logistic_gee(_rows(setting, patients, generator)) for _ in range(repetitions)]
            rows.append(row(setting, patients, 0.0, [(fit.value, fit.low, fit.high) for fit in fits]))
    return rows


def _rows(setting: str, patients: int, generator: np.random.Generator) -> Observations:
    patient = views(patients, generator)
    finding = generator.integers(0, FINDINGS, len(patient))
    shared, apart = generator.normal(size=patients)[patient], generator.normal(size=len(patient))
    feature = np.exp(shared + 0.5 * apart) if setting == "size" else expit(shared + apart)
    luck = generator.normal(size=patients)[patient]
    hits = generator.random(len(patient)) < expit(0.8 * finding - 0.4 + 0.8 * luck)
    return Observations(feature, hits.astype(float), finding, patient)


if __name__ == "__main__":
    main(simulate)
