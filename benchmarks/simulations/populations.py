"""Made-up studies for comparisons of many methods: which patient has which finding, and what every method scores.

A population gives scores by image, column and finding, NaN where the image has not got the finding; the columns are
methods, then floors. `shifts` makes columns better or worse; without, all have the same mean.
"""

from collections.abc import Callable

import numpy as np
from benchmarks.simulations.row import MOST_VIEWS, views

METHODS, FLOORS = 19, 4
COLUMNS = METHODS + FLOORS
_GROUP = 4  # methods that mostly do the same, as relatives of one gradient do

Study = tuple[int, int]  # images, findings
Population = Callable[[Study, np.random.Generator, bool, np.ndarray], tuple[np.ndarray, np.ndarray]]


def patients_of(study: Study) -> int:
    """About how many patients the images of a study are of."""
    return round(study[0] / np.mean(range(1, MOST_VIEWS + 1)))


def alike(
    study: Study, generator: np.random.Generator, hits: bool, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Methods agree about what is hard; a quarter of the overlaps are 0."""
    patient, has = _films(study, np.linspace(0.1, 0.5, study[1]), generator)
    shape, patients = (len(patient), len(shifts), study[1]), patient.max() + 1
    hard = (
        generator.normal(0, 0.8, (patients, study[1]))[patient] + generator.normal(0, 0.5, patients)[patient][:, None]
    )
    luck = generator.normal(0, 0.4, (patients, *shape[1:]))[patient]
    levels = hard[:, None] - 1.6 + shifts[:, None] + luck + generator.normal(0, 0.8, shape)
    scores = 1 / (1 + np.exp(-levels))
    chance = generator.random(shape)
    scores = np.where(chance < scores, 1.0, 0.0) if hits else np.where(chance < 0.25, 0.0, scores)
    return patient, np.where(has[:, None], scores, np.nan)


def skewed(
    study: Study, generator: np.random.Generator, hits: bool, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Skewed scores of beta shape; findings from 3 % to 60 % of the patients, the rare ones harder."""
    patient, has = _films(study, np.geomspace(0.03, 0.6, study[1]), generator)
    shape, patients = (len(patient), len(shifts), study[1]), patient.max() + 1
    ease = generator.beta(1, 3, (patients, study[1]))[patient][:, None]
    own = generator.beta(0.5, 2, (patients, *shape[1:]))[patient] + generator.beta(0.5, 2, shape)
    scores = np.linspace(0.06, 0.3, study[1]) * (1.4 * ease + 1.6 * own) * np.exp(shifts)[:, None]
    if hits:
        scores = np.where(generator.random(shape) < 1.6 * scores, 1.0, 0.0)
    return patient, np.where(has[:, None], np.minimum(scores, 1), np.nan)


def tied(study: Study, generator: np.random.Generator, hits: bool, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Groups of methods that give the same score in six of ten images; overlaps of one decimal, most of them 0."""
    patient, has = _films(study, np.linspace(0.15, 0.4, study[1]), generator)
    group = np.arange(len(shifts)) // _GROUP
    hard = generator.normal(size=(patient.max() + 1, study[1]))[patient][:, None]

    def overlaps(columns: int) -> np.ndarray:
        shape = (columns, study[1])
        luck = generator.normal(0, 0.6, (patient.max() + 1, *shape))[patient]
        levels = hard + luck + generator.normal(0, 0.8, (len(patient), *shape))
        return np.where(levels > 0, np.exp(0.7 * levels - 2.6), 0.0)

    same = generator.random((len(patient), len(shifts), study[1])) < 0.6
    scores = np.where(same, overlaps(int(group.max()) + 1)[:, group], overlaps(len(shifts))) * np.exp(shifts)[:, None]
    scores = (scores > 0.1).astype(float) if hits else np.round(np.minimum(scores, 1), 1)
    return patient, np.where(has[:, None], scores, np.nan)


def steady_floors(
    study: Study, generator: np.random.Generator, hits: bool, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Methods that mostly score 0 and floors of the same mean that hardly vary."""
    patient, has = _films(study, np.linspace(0.1, 0.5, study[1]), generator)
    means = np.linspace(0.04, 0.2, study[1])
    methods = (len(shifts) - FLOORS, study[1])
    looks = generator.random((patient.max() + 1, *methods))[patient] < 0.4
    scores = np.where(looks, generator.beta(1, 3, (len(patient), *methods)) * 4 * means / 0.4, 0.0)
    floors = means * (1 + 0.1 * generator.normal(size=(len(patient), FLOORS, study[1])))
    scores = np.concatenate([scores, floors], axis=1) * np.exp(shifts)[:, None]
    if hits:
        scores = np.where(generator.random(scores.shape) < scores, 1.0, 0.0)
    return patient, np.where(has[:, None], scores, np.nan)


def uneven(
    study: Study, generator: np.random.Generator, hits: bool, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Patients with more images are harder, scores have long tails, and methods differ in how much they vary.

    Written after the procedure was settled: two changes that were tried on it were not taken up.
    """
    patient, has = _films(study, np.linspace(0.05, 0.3, study[1]), generator)
    shape, patients = (len(patient), len(shifts), study[1]), patient.max() + 1
    ease = generator.gamma(2, 0.5, (patients, study[1]))[patient] / np.sqrt(np.bincount(patient))[patient][:, None]
    spread = np.linspace(0.2, 1.2, len(shifts))[:, None]  # a method's own noise, of mean 1
    own = generator.normal(0, 0.7, (patients, *shape[1:]))[patient] + generator.normal(0, 0.7, shape)
    scores = 0.15 * ease[:, None] * np.exp(spread * own - 0.49 * spread**2 + shifts[:, None])
    if hits:
        scores = np.where(
            generator.random(shape) < 0.35 * np.minimum(ease[:, None] * np.exp(shifts)[:, None], 2), 1.0, 0.0
        )
    return patient, np.where(has[:, None], np.minimum(scores, 20), np.nan)


def _films(study: Study, prevalence: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The patient of each image, and which findings each image has: those of its patient."""
    patient = views(study[0], generator)[: study[0]]
    return patient, (generator.random((study[0], study[1])) < prevalence)[patient]
