"""How often the blame table is right, wrong or open about a base model, where the truth is known.

Run with `python -m benchmarks.simulations.blame [--repetitions N] [--seed S]`.
"Printed" is the share of runs that decide, "coverage" the share of those that are right; "truth below" is the share of
all runs that decide wrongly. A gain of 0.05 is below the size that matters here (0.085), so that low is right: the map
"hardly" marks the area. What lies just above a size may stay open.
"""

import math
from dataclasses import dataclass

import numpy as np
from benchmarks.simulations.row import PATIENTS, Row, main, views

from heatcheck.judging.sizes import Sizes
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested import nested_means
from heatcheck.studies.alignment.blame.readings import EstimateWithInterval, Use, level, used

SEPARATION, FLOOR, BEST = 1.5, 0.15, 1.0
DRAWS = 400


@dataclass(frozen=True, slots=True)
class Truth:
    """A model and its maps: how much it relies on the area, how far maps score above random ones, what is right."""

    name: str
    reliance: float  # as a share of the separation
    gain: float
    right: tuple[str, str]  # levels of reliance and map


TRUTHS = (
    Truth("model reads a marker, faithful map", 0.0, 0.0, ("low", "low")),
    Truth("model fine, random map", 0.8, 0.0, ("high", "low")),
    Truth("both fine", 0.8, 0.25, ("high", "high")),
    Truth("marker, map marks the area", 0.0, 0.25, ("low", "high")),
    Truth("fine, map gains 0.10", 0.8, 0.10, ("high", "high")),
    Truth("fine, map gains 0.05", 0.8, 0.05, ("high", "low")),
    Truth("model uses 30 %, map fine", 0.3, 0.25, ("high", "high")),
)


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Every truth at every number of patients."""
    rows = []
    sizes, count = Sizes(), repetitions
    for truth in TRUTHS:
        for patients in PATIENTS:
            generator = np.random.default_rng([seed, patients])
            read = [_levels(truth, patients, sizes, generator) for _ in range(count)]
            decided = [each for each in read if "unknown" not in each]
            right = sum(each == truth.right for each in decided)
            share = right / len(decided) if decided else math.nan
            error = math.sqrt(max(share * (1 - share), 0) / len(decided)) if decided else math.nan
            wrong = (len(decided) - right) / count
            rows.append(Row(truth.name, patients, len(decided) / count, share, wrong, math.nan, error))
    return rows


def _levels(truth: Truth, patients: int, sizes: Sizes, generator: np.random.Generator) -> tuple[str, str]:
    patient = views(patients, generator)
    shared, apart = generator.normal(size=(3, patients))[:, patient], generator.normal(size=(3, len(patient)))
    noise = 0.6 * shared + 0.8 * apart
    # skewed, as drops of a logit and shares of heat are: most images move little, some much
    reliance = truth.reliance * SEPARATION * np.exp(0.5 * noise[0] - 0.125) + 0.9 * noise[1]
    gain = truth.gain * np.exp(0.8 * noise[2] - 0.32) + 0.1 * (0.6 * shared[2] + 0.8 * apart[1])
    placebo = 0.5 * apart[2]
    design = Design(np.zeros(len(patient)), patient)
    found = nested_means(np.stack([reliance, placebo, gain], axis=1), design, DRAWS, generator)
    reliance_found, placebo_found, gain_found = (
        EstimateWithInterval(each.value, each.low, each.high) for each in found
    )
    use = used(Use(reliance_found, placebo_found, sizes.of_separation(SEPARATION)))
    return use.level, level(gain_found, 0.0, sizes.above_floor(FLOOR, BEST)).level


if __name__ == "__main__":
    main(simulate)
