"""False claims about factors of networks, and intervals of differences between trained networks.

Run with `python -m benchmarks.simulations.networks [--repetitions N] [--seed S]`. Networks differ by the luck of their
training and in nothing else: a term is false when its p is below 0.05, a family holds when none of its intervals
excludes 0. "Coverage" is the share without a false claim, "relative width" that of intervals that know the variance and
hold together.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from benchmarks.simulations.row import DRAWS, PATIENTS, Row, main, views
from scipy.special import ndtri

from heatcheck.stats.regression import FEWEST_PATIENTS
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.joint_means import joint_means
from heatcheck.stats.resampling.nested import nested_means
from heatcheck.stats.treatment import INTERCEPT, Factor, RowOrigin, Treatment, treatment_effects


@dataclass(frozen=True, slots=True)
class Grid:
    """A study of networks: bases are architectures by starts, each fine-tuned through every method."""

    architectures: int
    starts: int
    methods: int
    seeds: int
    base_luck: float  # SD of what a base's own training does to all its networks
    luck: float  # SD of one fine-tuning

    @property
    def name(self) -> str:
        """In words."""
        grid = f"{self.architectures}×{self.starts} bases, {self.methods} methods, {self.seeds} seeds"
        return f"{grid}, SD {self.luck:g}" + (f", bases {self.base_luck:g}" if self.base_luck else "")


GRIDS = (
    Grid(3, 1, 3, 3, 0.0, 0.0),
    Grid(3, 1, 3, 3, 0.0, 0.03),
    Grid(3, 1, 3, 1, 0.0, 0.06),
    Grid(2, 2, 2, 1, 0.05, 0.06),
    Grid(3, 2, 4, 3, 0.05, 0.03),
)
FAMILIES = ((4, 1), (4, 2), (4, 3), (12, 3), (6, 5))  # pairs of model and method, seeds


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Regressions by factor and kind of errors, then families of differences between trained networks."""
    rows = []
    for grid, patients in product(GRIDS, (each for each in PATIENTS if each >= FEWEST_PATIENTS)):
        rows += _regressions(grid, patients, repetitions, np.random.default_rng([seed, patients]))
    for (pairs, seeds), patients, alike in product(FAMILIES, (6, 12, 25, 60), (True, False)):
        rows += _families(
            pairs, seeds, patients, repetitions, np.random.default_rng([seed, patients, pairs]), alike=alike
        )
    return rows


def _regressions(grid: Grid, patients: int, repetitions: int, generator: np.random.Generator) -> Iterator[Row]:
    p_values: dict[tuple[str, str], list[float]] = {}
    for _ in range(repetitions):
        for term in _fitted(grid, patients, generator).terms:
            if term.factor != INTERCEPT and term.level:
                for errors in ("classical", "networks"):
                    p_values.setdefault((term.factor, errors), []).append(getattr(term, errors).p_value)
    for (factor, errors), values in p_values.items():
        yield _held(
            f"{factor}, {errors}; {grid.name}", patients, [math.nan if math.isnan(p) else p >= 0.05 for p in values]
        )


def _fitted(grid: Grid, patients: int, generator: np.random.Generator) -> Treatment:
    """A regression on the differences of one run, in which no factor has an effect."""
    patient = views(patients, generator)
    bases = list(product(range(grid.architectures), range(grid.starts)))
    columns = list(product(bases, range(grid.methods)))
    base_luck = dict(zip(bases, generator.normal(0, grid.base_luck, len(bases)), strict=True))
    # patients agree with each other about architectures and methods only in part
    likes = generator.normal(0, 0.04, (patients, grid.architectures + grid.methods))[patient]
    hard = generator.gamma(2, 0.05, patients)[patient]
    outcome = np.stack(
        [
            hard + base_luck[base] + generator.normal(0, grid.luck / math.sqrt(grid.seeds))
            + likes[:, base[0]] + likes[:, grid.architectures + method]
            + generator.normal(0, 0.1 / math.sqrt(grid.seeds), len(patient))
            for base, method in columns
        ],
        axis=1,
    )  # fmt: skip
    labels = {
        "start": [f"s{base[1]}" for base, _ in columns],
        "architecture": [f"a{base[0]}" for base, _ in columns],
        "method": [f"m{method}" for _, method in columns],
    }
    factors = [
        Factor(name, np.tile(np.array(each, object), len(patient)), tuple(sorted(set(each))))
        for name, each in labels.items()
    ]
    networks = np.tile([bases.index(base) for base, _ in columns], len(patient))
    return treatment_effects(outcome.ravel(), factors, RowOrigin(np.repeat(patient, len(columns)), networks))


def _families(
    pairs: int, seeds: int, patients: int, repetitions: int, generator: np.random.Generator, *, alike: bool
) -> Iterator[Row]:
    held: dict[str, list[bool]] = {"largest alone, before": [], "all": [], "largest": [], "all differences": []}
    ends: dict[str, list[list[tuple[float, float, float]]]] = {name: [] for name in held}
    for _ in range(repetitions):
        luck = np.full(pairs, 0.04) if alike else 0.03 * np.exp(generator.normal(0, 0.7, pairs))
        values, design = _trained(luck, seeds, patients, generator)
        joint = [each.estimate for each in joint_means(values, design, pairs)]
        best = max(range(pairs), key=lambda column: joint[column].value)
        alone = nested_means(values[:, [best]], design, DRAWS, generator)[0]
        compared = np.stack([values[:, one] - values[:, other] for one, other in combinations(range(pairs), 2)], axis=1)
        differences = [each.estimate for each in joint_means(compared, design, pairs - 1)]
        for name, of in zip(held, ([alone], joint, [joint[best]], differences), strict=True):
            held[name].append(all(each.low <= 0 <= each.high for each in of))
            ends[name].append([(each.value, each.low, each.high) for each in of])
    luck_in_words = "luck alike" if alike else "luck differs"
    for name, each in held.items():
        line = _held(f"{name}; {pairs} pairs, {seeds} seeds, {luck_in_words}", patients, each)
        yield replace(
            line, relative_width=_relative_width(np.array(ends[name])) if name.startswith("all") else math.nan
        )


def _relative_width(ends: np.ndarray) -> float:
    """The mean width over that of intervals that know the variance and hold together (Bonferroni)."""
    values, low, high = np.moveaxis(ends, 2, 0)
    known = 2 * ndtri(1 - 0.025 / values.shape[1]) * values.std()
    return float((high - low).mean() / known)


def _trained(luck: np.ndarray, seeds: int, patients: int, generator: np.random.Generator) -> tuple[np.ndarray, Design]:
    """Differences around 0 by seed and image; skewed images, two findings, and a part of luck that a seed shares."""
    patient = views(patients, generator)
    finding = generator.integers(0, 2, len(patient))
    of_images = (
        generator.gamma(2, 0.05, (patients, 1)) - 0.1 + generator.gamma(1, 0.06, (patients, len(luck))) - 0.06
    )[patient]
    by_seed = [
        of_images + generator.normal(0, 0.02) + luck * generator.normal(size=len(luck))
        + generator.normal(0, 0.08, of_images.shape)
        for _ in range(seeds)
    ]  # fmt: skip
    design = Design(np.repeat(np.arange(seeds), len(patient)), np.tile(patient, seeds), np.tile(finding, seeds))
    return np.vstack(by_seed), design


def _held(setting: str, patients: int, held: list[bool] | list[float]) -> Row:
    given = np.array(held, float)
    share = float(np.nanmean(given)) if np.isfinite(given).any() else math.nan
    count = max(1, int(np.isfinite(given).sum()))
    error = math.sqrt(share * (1 - share) / count) if math.isfinite(share) else math.nan
    return Row(setting, patients, float(np.isfinite(given).mean()), share, math.nan, math.nan, error)


if __name__ == "__main__":
    main(simulate)
