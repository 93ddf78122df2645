"""False claims that a group of patients differs: groups that have nothing to do with the scores.

Run with `python -m benchmarks.simulations.subgroups [--repetitions N] [--seed S]`. Five methods are scored on three
findings; images are divided by sex (a patient has one) and by view (a patient may have both), unevenly. A run makes a
false claim if any method, or the model's AUROC, is judged to differ in any group.
"""

import numpy as np
import pandas as pd
from benchmarks.simulations.row import is_claim, main_of_claims, views
from scipy.special import expit

from heatcheck.estimating.score_values import Values
from heatcheck.studies.localization.answers.predictions import LabelledProbabilities
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.subgroups.estimates import auroc_differences, differences, pairs_of
from heatcheck.studies.localization.subgroups.groups import Groups

FINDINGS, METHODS = ("a", "b", "c"), ("1", "2", "3", "4", "5")
SETTINGS = LocalizationSettings(FINDINGS, METHODS, (), ("iou", "hit"), "model", draws=1000, seed=0)
STUDIES = (25, 60, 150)


def false_claims(patients: int, repetitions: int, seed: int) -> dict[str, float]:
    """The share of runs with a false claim, by measure."""
    generator = np.random.default_rng([seed, patients])
    runs = [_claims(patients, generator) for _ in range(repetitions)]
    return {name: sum(run[name] for run in runs) / repetitions for name in runs[0]}


def _claims(patients: int, generator: np.random.Generator) -> dict[str, bool]:
    patient = views(patients, generator)
    names = np.array([f"c{number:04d}" for number in range(len(patient))], object)
    sex = np.where(generator.random(patients) < 0.35, "F", "M")[patient]
    view = np.where(generator.random(len(patient)) < 0.3, "lateral", "frontal")
    divided = [
        Groups(column, tuple(np.unique(group)), dict(zip(names, group, strict=True)))
        for column, group in (("sex", sex), ("view", view))
    ]
    cases = pd.DataFrame({"case": names, "patient": patient.astype(str)})
    pairs = [pair for groups in divided for pair in pairs_of(cases, groups)]
    luck = generator.normal(size=(patients, len(FINDINGS)))[patient]
    labels = (generator.random((len(patient), len(FINDINGS))) < 0.4).astype(float)
    logits = 1.5 * labels + 0.6 * luck + 0.8 * generator.normal(size=labels.shape)
    answers = LabelledProbabilities(labels, expit(logits), patient.astype(str), names.astype(str))
    rows = {
        metric: differences(_values(metric, cases, labels, luck, generator), pairs, SETTINGS)
        for metric in ("iou", "hit")
    }
    rows["auroc"] = auroc_differences(answers, pairs, SETTINGS)
    return {metric: any(map(is_claim, some)) for metric, some in rows.items()}


def _values(
    metric: str, cases: pd.DataFrame, labels: np.ndarray, luck: np.ndarray, generator: np.random.Generator
) -> Values:
    """Skewed overlaps, or hits, of cases with a finding; a patient's cases share a part of them."""
    tables = {}
    for column, finding in enumerate(FINDINGS):
        level = 0.7 * luck[:, column, None] + 0.7 * generator.normal(size=(len(cases), len(METHODS))) - 1 + 0.5 * column
        scores = expit(level) if metric == "iou" else (generator.random(level.shape) < expit(level)).astype(float)
        table = pd.DataFrame(scores, index=pd.Index(cases["case"], dtype=object), columns=list(METHODS))
        table["patient"] = cases["patient"].to_numpy(object)
        tables[finding] = table[labels[:, column] == 1]
    return Values(metric, METHODS, tables)


if __name__ == "__main__":
    main_of_claims(false_claims, STUDIES, 10)
