"""Coverage and false claims of the modality study: importances (φ), modality correlation (τ), MSFI, and what is said.

Run with `python -m benchmarks.simulations.modality [--repetitions N] [--seed S]`.
"""

from dataclasses import dataclass

import numpy as np

from heatcheck.stats.shapley import coalitions, contributions

DRAWS = 500
NAMES = ("T1", "T1C", "T2", "FLAIR")
READS = np.array([0.15, 1.3, 0.05, 0.45])  # how strongly the networks read each modality
TRUTH = 200_000  # cases from which the true importances are computed
SUBSETS = coalitions(len(NAMES))


@dataclass(frozen=True)
class Tested:
    """The test cases of one network: patient, class, and whether the answer is right with each subset shown."""

    patient: np.ndarray
    label: np.ndarray
    right: np.ndarray  # cases × subsets


def tested(reads: np.ndarray, patient: np.ndarray, generator: np.random.Generator) -> Tested:
    """A network that adds up what it reads in the modalities shown; signals of one patient are alike."""
    patients = int(patient.max()) + 1
    label = (generator.random(patients) < 0.55)[patient]
    signal = generator.normal(0, 0.7, (patients, len(reads)))[patient] + generator.normal(
        0, 0.7, (len(patient), len(reads))
    )
    evidence = (np.where(label, 1.0, -1.0)[:, None] + signal) * reads
    logits = evidence @ SUBSETS.members.T - 0.4  # an empty image is one class
    return Tested(patient, label, ((logits > 0) == label[:, None]).astype(float))


def phi_of(reads: np.ndarray, seed: int) -> np.ndarray:
    """The true importances to a network, by balanced accuracy."""
    whole = tested(reads, np.arange(TRUTH), np.random.default_rng([seed, 7]))
    means = [whole.right[whole.label == side].mean(0) for side in (False, True)]
    return np.asarray(np.mean(means, axis=0) @ contributions(SUBSETS))
