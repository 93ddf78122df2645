"""False claims that a map warns of a wrong answer: features that have nothing to do with the answers.

Run with `python -m benchmarks.simulations.wrong_answers [--repetitions N] [--seed S]`. A model with an AUROC of 0.76
looks for three findings of 40 % of the images; agreement and concentration of three methods are noise that a patient's
images share. Counted are runs in which any feature of a map is judged to warn, either way, or to warn better than the
probability; and how often the probability, which truly warns, is said to.
"""

import tempfile
from pathlib import Path

import numpy as np
from benchmarks.simulations.row import is_claim, main_of_claims, views
from scipy.special import expit

from heatcheck.core.records import Prediction, Score
from heatcheck.judging.judgement import judgement_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import BEYOND_PROBABILITY, MAP_FEATURES, PROBABILITY, WARNING
from heatcheck.studies.localization.wrong_answers.estimates import wrong_answer_estimates

FINDINGS, METHODS = ("a", "b", "c"), ("1", "2", "3")
SETTINGS = LocalizationSettings(FINDINGS, METHODS, (), ("iou",), "model", draws=1000, seed=0)
STUDIES = (25, 60, 150)


def claims(patients: int, repetitions: int, seed: int) -> dict[str, float]:
    """The share of runs with each claim."""
    generator = np.random.default_rng([seed, patients])
    with tempfile.TemporaryDirectory() as folder:
        runs = [_claims(Path(folder), patients, generator) for _ in range(repetitions)]
    return {name: sum(run[name] for run in runs) / repetitions for name in runs[0]}


def _claims(folder: Path, patients: int, generator: np.random.Generator) -> dict[str, bool]:
    patient = views(patients, generator)
    shared = generator.normal(size=(patients, len(METHODS) * len(MAP_FEATURES) + 1))
    scores, predictions = [], []
    for number, who in enumerate(patient.tolist()):
        for finding in FINDINGS:
            present = bool(generator.random() < 0.4)
            logit = 1.0 * present - 0.5 + 0.5 * shared[who, -1] + 0.85 * generator.normal()
            key = (f"c{number:04d}", f"p{who:04d}", finding)
            predictions.append(Prediction(*key, "model", float(present), logit, float(expit(logit))))
            names = [(method, name) for method in METHODS for name in MAP_FEATURES]
            noise = expit(0.7 * shared[who, :-1] + 0.7 * generator.normal(size=len(names)))
            scores += [
                Score(*key, method, "model", name, value)
                for (method, name), value in zip(names, noise.tolist(), strict=True)
            ]
    write_table(folder / "scores.parquet", Score, scores)
    write_table(folder / "predictions.parquet", Prediction, predictions)
    rows = wrong_answer_estimates(folder, SETTINGS)
    warns = [row for row in rows if row.statistic == WARNING]
    return {
        "a map's feature warns": any(is_claim(row) for row in warns if row.metric != PROBABILITY),
        "a map's feature beats the probability": any(
            judgement_of(row).is_yes for row in rows if row.statistic == BEYOND_PROBABILITY
        ),
        "the probability warns (true)": any(judgement_of(row).is_yes for row in warns if row.metric == PROBABILITY),
    }


if __name__ == "__main__":
    main_of_claims(claims, STUDIES, 20)
