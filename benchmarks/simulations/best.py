"""Which method is best: how often the set of methods that may be best holds it, and the winner's distance from readers.

Run with `python -m benchmarks.simulations.best [--repetitions N] [--seed S]`. Methods are either all equal or three are
near the top. The rows of a set have as coverage how often the truly best method is in it (all methods, where they are
equal) and as relative width the share of the methods that it holds; the rows of the winner, how often the interval of
the method with the highest mean holds its true distance from the readers. The last rows have as coverage how often a
method with a clearly higher overlap beats every floor: its power.
"""

from itertools import product

import numpy as np
from benchmarks.simulations.families import PAIRS, STUDIES, means_of_a_study
from benchmarks.simulations.populations import COLUMNS, METHODS, Population, Study, alike, patients_of, skewed, tied
from benchmarks.simulations.row import DRAWS, Row, main, row

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import TEST
from heatcheck.judging.best import best_set
from heatcheck.stats.resampling.studentised import simultaneous_intervals

READERS = METHODS  # the column after the methods
READERS_SHIFT, TOP = 1.2, 0.5  # of scores' logarithms or logits
TRUTH = 40_000  # images from which true means are computed
POWER = 0.75  # the shift that lifts an overlap of about .17 to .26


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Sets, winners and power, on populations of two kinds."""
    rows = []
    for population, study, hits in product((alike, tied, skewed), STUDIES, (False, True)):
        for name, top in (("all equal", 0), ("three near the top", 3)):
            rows += _best(population, (study, hits), (name, top), repetitions, seed)
    rows += [_power(study, repetitions, seed) for study in STUDIES]
    return rows


def _best(population: Population, kind: tuple[Study, bool], truth: tuple[str, int], count: int, seed: int) -> list[Row]:
    (study, hits), (name, top) = kind, truth
    shifts = np.zeros(METHODS + 4)
    shifts[:top] = TOP * (1 - 0.1 * np.arange(top))
    shifts[READERS] = READERS_SHIFT
    generator = np.random.default_rng([seed, *study, hits, top])
    true = _true_means(population, study, hits, shifts)
    names = [str(method) for method in range(METHODS)]
    held, sizes, winners = [], [], []
    for _ in range(count):
        means = means_of_a_study(population, study, generator, hits, shifts)
        pairs = simultaneous_intervals(means.macro_differences(PAIRS), DRAWS, generator).intervals
        found = best_set(
            names,
            {
                (str(one), str(other)): Estimate(TEST, "", value=each.value, low=each.low, high=each.high, size=0.05)
                for (one, other), each in zip(PAIRS, pairs, strict=True)
            },
        )
        held.append("0" in found.members if top else len(found.members) == METHODS)
        sizes.append(len(found.members) / METHODS)
        against = simultaneous_intervals(
            means.macro_differences([(method, READERS) for method in range(METHODS)]), DRAWS, generator
        ).intervals
        winner = int(np.argmax([each.value for each in against]))
        error = float((true[winner] - true[READERS])[means.present].mean())
        winners.append(
            tuple(each - error for each in (against[winner].value, against[winner].low, against[winner].high))
        )
    share = float(np.mean(held))
    setting = f"{population.__name__}, {'hits' if hits else 'overlap'}, {study[1]} findings, {name}"
    error = float(np.sqrt(share * (1 - share) / count))
    return [
        Row(f"set that may be best: {setting}", patients_of(study), 1.0, share, 0.0, float(np.mean(sizes)), error),
        row(f"winner's distance from readers: {setting}", patients_of(study), 0.0, winners),
    ]


def _true_means(population: Population, study: Study, hits: bool, shifts: np.ndarray) -> np.ndarray:
    """The mean of every column for every finding; methods of the same shift have the same."""
    _, scores = population((TRUTH, study[1]), np.random.default_rng(1), hits, shifts)
    means = np.nanmean(scores, axis=0)
    return np.array([means[shifts == shift].mean(0) for shift in shifts])


def _power(study: Study, count: int, seed: int) -> Row:
    """One method that is better than all, against the floors, in the family of all methods against all floors."""
    shifts = np.zeros(COLUMNS)
    shifts[0] = POWER
    generator = np.random.default_rng([seed, *study])
    floors = list(product(range(METHODS), range(METHODS, COLUMNS)))
    beats, values = [], []
    for _ in range(count):
        means = means_of_a_study(alike, study, generator, False, shifts)
        found = simultaneous_intervals(means.macro_differences(floors), DRAWS, generator).intervals
        beats.append(all(each.low > 0 for each in found[: COLUMNS - METHODS]))
        values.append(found[0].value)
    share = float(np.mean(beats))
    setting = f"beats every floor: higher by {np.mean(values):.2f}, {study[1]} findings"
    return Row(setting, patients_of(study), 1.0, share, 0.0, np.nan, float(np.sqrt(share * (1 - share) / count)))


if __name__ == "__main__":
    main(simulate)
