"""False claims of simultaneous intervals: methods and floors of the same mean, compared with each other.

Run with `python -m benchmarks.simulations.families [--repetitions N] [--seed S]`. A family "holds" when none of its
intervals excludes 0; that should be so in 95 % of the repetitions. Its relative width compares its intervals with those
of somebody who knows all variances and how far the largest deviation reaches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from benchmarks.simulations.populations import (
    COLUMNS,
    METHODS,
    Population,
    Study,
    alike,
    patients_of,
    skewed,
    steady_floors,
    tied,
    uneven,
)
from benchmarks.simulations.row import DRAWS, Row, main, views

from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.studentised import (
    Linearised,
    SimultaneousIntervals,
    contrast,
    linearised_macro,
    linearised_ratios,
    simultaneous_intervals,
)

STUDIES: tuple[Study, ...] = ((15, 5), (30, 5), (62, 5), (150, 5), (375, 10))
POPULATIONS = (alike, skewed, tied, steady_floors, uneven)
PAIRS = list(combinations(range(METHODS), 2))
AGAINST_FLOORS = list(product(range(METHODS), range(METHODS, COLUMNS)))
STEADY_PATIENTS = (8, 15, 30, 60)


def simulate(repetitions: int, seed: int) -> list[Row]:
    """All pairs of 19 equal methods, each of them against four equal floors, and both finding by finding."""
    rows = []
    for population, study, hits in product(POPULATIONS, STUDIES, (False, True)):
        rows += _holding(population, study, hits, repetitions, seed)
    for patients in STEADY_PATIENTS:
        rows.append(_steady_floor(patients, repetitions, seed))
    return rows


def _holding(population: Population, study: Study, hits: bool, count: int, seed: int) -> list[Row]:
    """How often the families of one study hold, on data where every difference is 0."""
    generator = np.random.default_rng([seed, *study, hits])
    runs: dict[str, list[SimultaneousIntervals]] = {}
    for _ in range(count):
        means = means_of_a_study(population, study, generator, hits, np.zeros(COLUMNS))
        families = {
            "all pairs of methods": means.macro_differences(PAIRS),
            "methods against floors": means.macro_differences(AGAINST_FLOORS),
            "methods against a floor by finding": means.differences([(method, METHODS) for method in range(METHODS)]),
        }
        for name, family in families.items():
            runs.setdefault(name, []).append(simultaneous_intervals(family, DRAWS, generator))
    setting = f"{population.__name__.replace('_', ' ')}, {'hits' if hits else 'overlap'}, {study[1]} findings"
    return [_row(f"{name}: {setting}", patients_of(study), found) for name, found in runs.items()]


def _row(setting: str, patients: int, runs: Sequence[SimultaneousIntervals]) -> Row:
    """Whether no interval excludes 0, and whether one lies above it."""
    lows, highs = (
        [np.array([getattr(interval, end) for interval in run.intervals]) for run in runs] for end in ("low", "high")
    )
    above = np.array([bool(np.any(low > 0)) for low in lows])
    below = np.array([bool(np.any(high < 0)) for high in highs])
    held = float(np.mean(~above & ~below))
    width = np.nan
    if len({len(low) for low in lows}) == 1:  # else a finding is lacking in some runs
        values = np.array([[interval.value for interval in run.intervals] for run in runs])
        spread = values.std(0)
        largest = float(np.quantile(np.abs(values / np.where(spread > 0, spread, np.inf)).max(1), 0.95))
        width = float(np.nanmean(np.array(highs) - np.array(lows)) / (2 * largest * spread.mean()))
    error = float(np.sqrt(held * (1 - held) / len(runs)))
    printed = float(np.mean(np.concatenate([~np.isnan(low) for low in lows])))
    return Row(setting, patients, printed, held, float(above.mean()), width, error)


def _steady_floor(patients: int, repetitions: int, seed: int) -> Row:
    """One method that is mostly 0, with a mean of 0.04, against a floor that is nearly always 0.04."""
    generator = np.random.default_rng([seed, patients])
    runs = []
    for _ in range(repetitions):
        patient = views(patients, generator)
        looks = (generator.random(patients) < 0.25)[patient]
        method = np.where(looks, generator.beta(1, 5.25, len(patient)), 0.0)  # 0.25 · 0.16
        floor = generator.normal(0.04, 0.002, len(patient))
        means = column_means(patient, np.stack([method, floor], axis=1)[:, :, None])
        runs.append(simultaneous_intervals(means.differences([(0, 1)]), DRAWS, generator))
    return _row("one method, mostly 0, against one steady floor", patients, runs)


@dataclass(frozen=True, slots=True)
class ColumnMeans:
    """The mean of every column of scores for every finding: all findings of one column, then of the next."""

    means: Linearised
    present: np.ndarray  # by finding: whether any image has it; the others have no means

    @property
    def findings(self) -> int:
        """How many findings have means."""
        return int(self.present.sum())

    def differences(self, compared: Sequence[tuple[int, int]]) -> Linearised:
        """The first column less the second, for each finding."""
        first, second = (
            self.means.only((np.array(columns)[:, None] * self.findings + np.arange(self.findings)).ravel())
            for columns in zip(*compared, strict=True)
        )
        return contrast(second, first)

    def macro_differences(self, compared: Sequence[tuple[int, int]]) -> Linearised:
        """The first column less the second, over all findings."""
        return linearised_macro(self.differences(compared), self.findings)


def means_of_a_study(
    population: Population, study: Study, generator: np.random.Generator, hits: bool, shifts: np.ndarray
) -> ColumnMeans:
    """The means of one study drawn from a population, drawn again while no patient has a finding (of six, none may)."""
    means = column_means(*population(study, generator, hits, shifts))
    while not means.findings:
        means = column_means(*population(study, generator, hits, shifts))
    return means


def column_means(patient: np.ndarray, scores: np.ndarray) -> ColumnMeans:
    """The means of scores by image, column and finding; findings that no image has are left out."""
    present = ~np.isnan(scores).all((0, 1))
    totals = cluster_totals(scores[:, :, present].reshape(len(scores), -1), patient)
    return ColumnMeans(linearised_ratios(totals.sums, totals.counts), present)


if __name__ == "__main__":
    main(simulate)
