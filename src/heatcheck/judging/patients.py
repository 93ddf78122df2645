"""How many patients would decide claims that are open, from resampling the run's own patients."""

import math
from collections.abc import Sequence
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
class OpenClaims:
    """Statistics of which nothing can be said yet, with the influence of each patient on each."""

    values: Float[np.ndarray, " claims"]
    influences: Float[np.ndarray, "patients claims"]  # each column sums to 0; 0 for a patient who takes no part
    low_reaches: Float[np.ndarray, " claims"]  # from the value to the ends of its interval, in standard errors
    high_reaches: Float[np.ndarray, " claims"]
    sizes: Float[np.ndarray, " claims"]
    of_seeds: Float[np.ndarray, " claims"]  # variance of the choice of seeds, which more patients do not lessen

    def only(self, chosen: np.ndarray) -> "OpenClaims":
        """Some of the claims."""
        parts = self.low_reaches[chosen], self.high_reaches[chosen], self.sizes[chosen], self.of_seeds[chosen]
        return OpenClaims(self.values[chosen], self.influences[:, chosen], *parts)


def patients_needed(claims: OpenClaims, generator: np.random.Generator) -> list[int | None]:
    """The fewest patients with whom most runs like this one would reach an answer; None where that is out of sight.

    Each imagined run draws patients from those of the run, with replacement; the reach of its intervals is that of the
    run, which allows for the other claims made with them.
    """
    n = len(claims.influences)
    needed: list[int | None] = [None] * len(claims.values)
    waiting = np.arange(len(claims.values))
    for times in _STEPS:
        if not len(waiting):
            break
        patients = math.ceil(n * times)
        weights = generator.multinomial(patients, np.full(n, 1 / n), _DRAWS)
        luck = generator.standard_normal((_DRAWS, len(waiting))) if claims.of_seeds.any() else 0.0
        decided = _share_decided(claims.only(waiting), weights, patients, luck) >= POWER
        for claim in waiting[decided]:
            needed[claim] = patients
        waiting = waiting[~decided]
    return needed


def _share_decided(
    claims: OpenClaims, weights: np.ndarray, patients: int, luck: np.ndarray | float
) -> Float[np.ndarray, " claims"]:
    n = len(claims.influences)
    values = claims.values + weights @ claims.influences * (n / patients) + luck * np.sqrt(claims.of_seeds)
    errors = np.sqrt(n / patients * np.sum(claims.influences**2, axis=0) + claims.of_seeds)
    says_yes = (values - claims.low_reaches * errors > 0) & (values >= claims.sizes)
    says_no = values + claims.high_reaches * errors < claims.sizes
    return np.asarray((says_yes | says_no).mean(0))


def judged(
    row: Estimate,
    size: float,
    influences: Float[np.ndarray, " patients"],
    generator: np.random.Generator,
    of_seeds: float = 0.0,
) -> Estimate:
    """One estimate, judged by itself."""
    return judged_together([row], [size], influences[:, None], generator, [of_seeds])[0]


def judged_together(
    rows: Sequence[Estimate],
    sizes: Sequence[float],
    influences: Float[np.ndarray, "patients rows"],
    generator: np.random.Generator,
    of_seeds: Sequence[float] = (),
) -> list[Estimate]:
    """The estimates with the sizes that matter and, where nothing can be said yet, with the patients that would do.

    `of_seeds` is the part of each variance that is due to the choice of seeds, by default none.
    """
    sized = [replace(row, size=size) for row, size in zip(rows, sizes, strict=True)]
    fixed = np.array(of_seeds, float) if of_seeds else np.zeros(len(rows))
    errors = np.sqrt(np.sum(influences**2, axis=0) + fixed)
    is_open = [_may_be_decided(row) and error > 0 for row, error in zip(sized, errors, strict=True)]
    chosen = np.flatnonzero(is_open)
    if len(influences) < 2 or not len(chosen):
        return sized
    values, lows, highs = (np.array([getattr(sized[i], name) for i in chosen]) for name in ("value", "low", "high"))
    reaches = (values - lows) / errors[chosen], (highs - values) / errors[chosen]
    wanted = np.array([sized[i].size for i in chosen])
    claims = OpenClaims(values, influences[:, chosen], *reaches, wanted, fixed[chosen])
    for row, needed in zip(chosen, patients_needed(claims, generator), strict=True):
        sized[row] = replace(sized[row], n_needed=needed or 0)
    return sized


def _may_be_decided(row: Estimate) -> bool:
    """Whether the claim is open for no other reason than the width of its interval."""
    judgement = judge(row.value, row.low, row.high, row.size)
    return judgement.answer is Answer.OPEN and not judgement.reason
