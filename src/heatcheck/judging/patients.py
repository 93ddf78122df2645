"""How many patients would decide a claim that is open, from resampling the run's own patients."""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import Estimate
from heatcheck.judging.judgement import Answer, judge

POWER = 0.8  # the share of imagined runs that must reach an answer
MOST = 64  # times as many patients as there are: further ahead, the run's own patients say little
_STEPS = 2 ** np.arange(0.25, math.log2(MOST) + 0.01, 0.25)
_DRAWS = 200


@dataclass(frozen=True, slots=True)
class OpenClaim:
    """A statistic of which nothing can be said yet, with the influence of each of its patients."""

    value: float
    influences: Float[np.ndarray, " patients"]  # sum to 0
    low_reach: float  # from the value to the ends of its interval, in standard errors
    high_reach: float
    size: float


def patients_needed(claim: OpenClaim, generator: np.random.Generator) -> int | None:
    """The fewest patients with whom most runs like this one would reach an answer; None where that is out of sight.

    Each imagined run draws patients from those of the run, with replacement; the reach of its interval is that of the
    run, which allows for the other claims made with it.
    """
    n = len(claim.influences)
    spread = math.sqrt(n * float(np.sum(claim.influences**2)))  # of the terms n·u that a mean over patients adds up
    for times in _STEPS:
        patients = math.ceil(n * times)
        moved = _drawn_means(claim.influences * n, patients, generator)
        error = spread / math.sqrt(patients)
        answers = [
            judge(value, value - claim.low_reach * error, value + claim.high_reach * error, claim.size).answer
            for value in claim.value + moved
        ]
        if sum(answer is not Answer.OPEN for answer in answers) >= POWER * len(answers):
            return patients
    return None


def _drawn_means(
    terms: Float[np.ndarray, " patients"], patients: int, generator: np.random.Generator
) -> Float[np.ndarray, " draws"]:
    weights = generator.multinomial(patients, np.full(len(terms), 1 / len(terms)), _DRAWS)
    return np.asarray(weights @ terms / patients)


def judged(
    row: Estimate, size: float, influences: Float[np.ndarray, " patients"], generator: np.random.Generator
) -> Estimate:
    """The estimate with the size that matters and, where nothing can be said yet, with the patients that would do.

    `influences` holds one value for each patient on whom the estimate rests.
    """
    sized = replace(row, size=size)
    judgement = judge(row.value, row.low, row.high, size)
    n, error = len(influences), float(np.sqrt(np.sum(influences**2)))
    if judgement.answer is not Answer.OPEN or judgement.reason or n < 2 or error == 0:
        return sized
    reaches = (row.value - row.low) / error, (row.high - row.value) / error
    needed = patients_needed(OpenClaim(row.value, influences, *reaches, size), generator)
    return replace(sized, n_needed=needed or 0)
