"""Coverage of the modality study's intervals: importances (φ), modality correlation (τ), MSFI, readers' ratings.

Run with `python -m benchmarks.simulations.modality [--repetitions N] [--seed S]`.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from benchmarks.simulations.row import DRAWS, PATIENTS, Row, main, row, views

from heatcheck.stats.balanced import Strata, linearised_balanced, with_unanimous
from heatcheck.stats.correlation import correlations
from heatcheck.stats.krippendorff import krippendorff_alpha
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.clusters import totals_by_code
from heatcheck.stats.resampling.studentised import LEVEL, Linearised
from heatcheck.stats.resampling.t_families import simultaneous_t
from heatcheck.stats.resampling.uncertain_weights import (
    PartSums,
    drawn_interval,
    drawn_mean,
)
from heatcheck.stats.shapley import coalitions, contributions
from heatcheck.studies.modality.estimating.drawn import (
    DrawnImportances,
    PatientDraws,
    pair_weights,
    share_weights,
    signs_of_pairs,
)

TRUTH = 200_000  # cases from which true values are computed
SUBSETS = coalitions(4)
PAIRS = list(combinations(range(4), 2))
READS = np.array([0.15, 1.3, 0.05, 0.45])  # how strongly a network reads T1, T1C, T2 and FLAIR
INSIDE = np.array([-2.2, -0.8, -1.8, -1.4])  # how much heat lies inside the lesion, as log odds


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Importances and scores with one network and with five, then ratings."""
    rows = list[Row]()
    for networks in (1, 5):
        reads = _networks(READS, networks, seed)
        for patients in PATIENTS:
            if patients >= 5 * networks or networks == 1:
                rows += _coverage(reads, patients, repetitions, seed)
    return rows + _ratings(repetitions, seed)


def _networks(reads: np.ndarray, networks: int, seed: int) -> np.ndarray:
    """Networks that read the modalities alike, but not equally."""
    return np.array(reads * np.exp(np.random.default_rng([seed, networks]).normal(0, 0.15, (networks, len(reads)))))


@dataclass(frozen=True)
class Answered:
    """The cases of one network: patients, classes, and whether it is right with each subset of modalities shown."""

    patient: np.ndarray
    label: np.ndarray
    right: np.ndarray  # cases × subsets

    def linearised(self) -> tuple[Linearised, np.ndarray, Strata] | None:
        """The importances as sums over patients, with what they are means of; None where a class is missing."""
        if len(np.unique(self.label)) < 2:
            return None
        strata = Strata(np.ones(len(self.patient), int), self.label)
        values = np.round(self.right @ contributions(SUBSETS), 9)
        return linearised_balanced(values, strata, self.patient), values, strata


def answered(
    reads: np.ndarray, patient: np.ndarray, generator: np.random.Generator, *, informs: bool = True
) -> Answered:
    """A network that adds up what it reads in the modalities shown; signals of one patient are alike."""
    patients, shape = int(patient.max()) + 1, (len(patient), len(reads))
    label = (generator.random(patients) < 0.55)[patient]
    signal = generator.normal(0, 0.7, (patients, len(reads)))[patient] + generator.normal(0, 0.7, shape)
    evidence = (np.where(label, 1.0, -1.0)[:, None] * informs + signal) * reads
    logits = evidence @ SUBSETS.members.T - 0.4  # an empty image is one class
    return Answered(patient, label, ((logits > 0) == label[:, None]).astype(float))


def importances_of(reads: np.ndarray, seed: int) -> np.ndarray:
    """The true importances to a network, by balanced accuracy."""
    whole = answered(reads, np.arange(TRUTH), np.random.default_rng([seed, 7]))
    means = [whole.right[whole.label == side].mean(0) for side in (False, True)]
    return np.asarray(np.mean(means, axis=0) @ contributions(SUBSETS))


def heat_of(likes: np.ndarray, patient: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Heat of each case in each modality: what the method likes, and luck that a patient's cases share."""
    patients, shape = int(patient.max()) + 1, (len(patient), 4)
    return np.asarray(likes + generator.normal(0, 0.4, (patients, 4))[patient] + generator.normal(0, 0.4, shape))


def inside_of(patient: np.ndarray, generator: np.random.Generator, shift: float = 0.0) -> np.ndarray:
    """The share of each modality's heat inside the lesion: skewed, and alike in the cases of a patient."""
    patients, shape = int(patient.max()) + 1, (len(patient), 4)
    level = generator.normal(0, 0.8, patients)[patient][:, None] + generator.normal(0, 0.7, shape)
    return np.asarray(1 / (1 + np.exp(-(INSIDE + shift + level))))


def _pair_parts(heat: np.ndarray) -> np.ndarray:
    return np.asarray(signs_of_pairs(heat) / math.sqrt(len(PAIRS)))


LIKES = np.array([0.2, 1.2, 0.0, 0.6])  # of a method that mostly follows these networks


def _coverage(reads: np.ndarray, patients: int, repetitions: int, seed: int) -> list[Row]:
    """Intervals of φ, of a difference of two φ, of τ and of MSFI for these networks."""
    phi = np.array([importances_of(each, seed) for each in reads])
    big = np.random.default_rng([seed, 8])
    pairs, inside = _pair_parts(heat_of(LIKES, np.arange(TRUTH), big)).mean(0), inside_of(np.arange(TRUTH), big).mean(0)
    truths = {
        "φ of T1 (hardly read)": phi.mean(0)[0], "φ of T1C (most read)": phi.mean(0)[1],
        "φ of T1C less that of FLAIR": phi.mean(0)[1] - phi.mean(0)[3],
        "τ": float((pair_weights(phi) @ pairs).mean()), "MSFI": float((share_weights(phi, "positive") @ inside).mean()),
    }  # fmt: skip
    generator = np.random.default_rng([seed, len(reads), patients])
    drawn = [_intervals(reads, patients, generator) for _ in range(repetitions)]
    name = "1 network" if len(reads) == 1 else f"{len(reads)} networks"
    return [
        row(f"{what}, {name}", patients, truth, [each[number] for each in drawn])
        for number, (what, truth) in enumerate(truths.items())
    ]


def _intervals(reads: np.ndarray, patients: int, generator: np.random.Generator) -> list[tuple[float, float, float]]:
    """Each estimate with its interval, in the order of the truths."""
    fold = generator.permutation(np.arange(patients) % len(reads))
    patient = views(patients, generator)
    parts = [patient[fold[patient] == number] for number in range(len(reads))]
    networks = [
        answered(each, np.unique(part, return_inverse=True)[1], generator)
        for each, part in zip(reads, parts, strict=True)
    ]
    found = [network.linearised() for network in networks]
    undefined = (math.nan,) * 3
    if any(each is None for each in found):
        return [undefined] * 5
    strata = Strata(np.concatenate([np.full(len(part), n) for n, part in enumerate(parts)]),
                    np.concatenate([network.label for network in networks]))  # fmt: skip
    values, clusters = np.vstack([each[1] for each in found if each]), np.concatenate(parts)
    alone = family_of(values, strata, clusters, generator)
    first, second = np.array(PAIRS).T
    paired = family_of(values[:, first] - values[:, second], strata, clusters, generator)
    index = pd.MultiIndex.from_arrays([np.arange(len(reads))[fold], np.arange(patients)]).sort_values()
    draws = PatientDraws.of(index, range(len(reads)), DRAWS, generator)
    positions = [draws.codes(np.full(len(names), n), names) for n, names in enumerate(map(np.unique, parts))]
    influences = {n: (each[0], positions[n]) for n, each in enumerate(found) if each}
    importances = DrawnImportances.of(influences, (len(reads), 4), draws)
    codes = draws.codes(fold[patient], patient)
    means = []
    for weights, scored in (
        (importances.by_pairs(draws), _pair_parts(heat_of(LIKES, patient, generator))),
        (importances.by_modality("positive", draws), inside_of(patient, generator)),
    ):
        totals = totals_by_code(scored, codes, patients)
        means.append(drawn_interval(drawn_mean(PartSums(totals.sums, totals.counts[:, 0]), weights)))
    return [(each.value, each.low, each.high) for each in (alone[0], alone[1], paired[PAIRS.index((1, 3))], *means)]


def family_of(
    values: np.ndarray, strata: Strata, clusters: np.ndarray, generator: np.random.Generator
) -> tuple[Interval, ...]:
    """Simultaneous intervals as the study makes them."""
    result = simultaneous_t(linearised_balanced(values, strata, clusters), DRAWS, generator)
    level = 1 - (1 - LEVEL) / values.shape[1]
    return with_unanimous(result.intervals, values, strata, clusters, (-1.0, 1.0), level)


def _rated(patients: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The patient of each rated map (three methods per case), what two readers give it, and its MSFI."""
    patient = np.repeat(views(patients, generator), 3)
    easy = generator.normal(0, 1, patients)[patient] + np.tile([0.0, 0.5, 1.0], len(patient) // 3)
    msfi = 1 / (1 + np.exp(-(easy - 1.5 + generator.normal(0, 1, len(patient)))))
    ratings = 50 + 12 * easy[:, None] + generator.normal(0, 15, (len(patient), 2))
    return patient, np.clip(np.round(ratings / 5) * 5, 0, 100), msfi


def _ratings(repetitions: int, seed: int) -> list[Row]:
    """The correlation of ratings with MSFI and the readers' agreement, both by BCa."""
    patient, ratings, msfi = _rated(20_000, np.random.default_rng([seed, 9]))
    pairs = np.column_stack([ratings.mean(1), msfi])
    truths = (
        correlations(pairs, patient, 2, np.random.default_rng(0)).spearman[0].value,
        krippendorff_alpha(ratings, patient, 2, np.random.default_rng(0)).value,
    )
    rows = []
    for patients in PATIENTS:
        generator = np.random.default_rng([seed, 10, patients])
        found: list[list[tuple[float, float, float]]] = [[], []]
        for _ in range(repetitions):
            patient, ratings, msfi = _rated(patients, generator)
            pairs = np.column_stack([ratings.mean(1), msfi])
            made = (
                correlations(pairs, patient, DRAWS, generator).spearman[0],
                krippendorff_alpha(ratings, patient, DRAWS, generator),
            )
            for kept, each in zip(found, made, strict=True):
                kept.append((each.value, each.low, each.high))
        for what, truth, kept in zip(("ρ of rating and MSFI", "α of two readers"), truths, found, strict=True):
            rows.append(row(f"{what} (BCa)", patients, truth, kept))
    return rows


if __name__ == "__main__":
    main(simulate)
