"""One line of a simulation: how often an interval holds the truth, and how wide it is."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heatcheck.core.records import Estimate
from heatcheck.judging.judgement import judgement_of, opposite_of

PATIENTS = (6, 12, 25, 60, 150)
MOST_VIEWS = 4  # of a patient, at least one
DRAWS = 399  # of an interval: 10 of 400 lie beyond either end, so that rates of false claims are those of many draws


@dataclass(frozen=True, slots=True)
class Row:
    """The intervals of one setting; intervals that were not given count neither as held nor as wide."""

    setting: str
    patients: int
    printed: float  # share of repetitions with an interval
    coverage: float  # of those
    truth_below: float  # share of those that lie above the truth
    relative_width: float  # mean width over that of ± 1.96 true standard deviations of the estimate
    monte_carlo_error: float  # standard error of the coverage


def row(setting: str, patients: int, truth: float, estimates: Sequence[tuple[float, float, float]]) -> Row:
    """The line of many estimates, each with its interval (value, low, high), the limits NaN if there is none."""
    values, low, high = np.array(estimates).T
    given = np.isfinite(low)
    held = (low <= truth) & (truth <= high)
    coverage = float(held[given].mean()) if given.any() else math.nan
    known = 2 * 1.959964 * float(np.nanstd(values))
    return Row(
        setting,
        patients,
        float(given.mean()),
        coverage,
        float((low > truth)[given].mean()) if given.any() else math.nan,
        float((high - low)[given].mean()) / known if given.any() and known > 0 else math.nan,
        math.sqrt(max(coverage * (1 - coverage), 0) / max(int(given.sum()), 1)),
    )


def views(patients: int, generator: np.random.Generator) -> np.ndarray:
    """The patient of each case, with 1 to `MOST_VIEWS` cases per patient."""
    return np.repeat(np.arange(patients), generator.integers(1, MOST_VIEWS + 1, patients))


def main(simulate: Callable[[int, int], list[Row]]) -> None:
    """Print the table of a simulation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| setting | patients | printed | coverage | truth below | relative width | Monte-Carlo error |")
    print("|---|---|---|---|---|---|---|")
    for line in simulate(arguments.repetitions, arguments.seed):
        shares = f"{line.printed:.0%} | {line.coverage:.1%} | {line.truth_below:.1%} | {line.relative_width:.2f}"
        print(f"| {line.setting} | {line.patients} | {shares} | {line.monte_carlo_error:.1%} |")


def is_claim(row: Estimate) -> bool:
    """Whether a report would call the difference clearly higher or clearly lower."""
    return judgement_of(row).is_yes or opposite_of(row).is_yes


def main_of_claims(claims: Callable[[int, int, int], dict[str, float]], studies: Sequence[int], fewer: int) -> None:
    """Print in which share of runs each claim is made; a run takes long, so only a part of the repetitions is made."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    repetitions = max(50, arguments.repetitions // fewer)
    print("| patients | claim | runs with it | Monte-Carlo error |")
    print("|---|---|---|---|")
    for patients in studies:
        for name, share in claims(patients, repetitions, arguments.seed).items():
            print(f"| {patients} | {name} | {share:.1%} | {math.sqrt(share * (1 - share) / repetitions):.1%} |")
