"""A test of whether two methods differ, paired by patient."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heatcheck.stats.resampling.bca import NO_PATIENT
from heatcheck.stats.resampling.clusters import Clusters, cluster_totals

FEWEST_FLIPS = 10_000  # with fewer, p-values are too coarse for a correction for several tests
_BLOCK = 2**20  # signs held at once


@dataclass(frozen=True, slots=True)
class SignFlip:
    """A two-sided p-value, and how many patients and cases it is based on."""

    p_value: float
    n_patients: int
    n_undefined: int  # cases without a difference
    exact: bool = False  # from all possible sign flips
    reason: str = ""


def sign_flip_test(
    differences: Float[np.ndarray, " cases"], clusters: Clusters, flips: int, generator: np.random.Generator
) -> SignFlip:
    """The probability of a sum of differences at least as far from 0 if each patient's total had a random sign.

    If there are at most `flips` ways to flip the signs, all are counted and the p-value is exact. Otherwise `flips`
    random ones are drawn, and the data themselves count as one more, so that the p-value is never 0.
    """
    if flips < FEWEST_FLIPS:
        raise ValueError(f"a sign-flip test needs at least {FEWEST_FLIPS} flips, got {flips}")
    totals = cluster_totals(differences[:, None], clusters)
    patients = totals.sums[totals.counts > 0]
    n_undefined = len(differences) - int(totals.counts.sum())
    if not len(patients):
        return SignFlip(np.nan, 0, n_undefined, reason=NO_PATIENT)
    exact = 2 ** len(patients) <= flips
    signs = _all_signs(len(patients)) if exact else _random_signs(len(patients), flips, generator)
    # sums taken in another order differ in the last bits: what ties with the data must count as a tie
    limit = abs(patients.sum()) - 1e-12 * np.abs(patients).sum()
    extreme = sum(int(np.count_nonzero(np.abs(block @ patients) >= limit)) for block in signs)
    p_value = extreme / 2 ** len(patients) if exact else (1 + extreme) / (1 + flips)
    return SignFlip(p_value, len(patients), n_undefined, exact)


def _all_signs(n_patients: int) -> Iterator[np.ndarray]:
    bits = np.arange(2**n_patients)[:, None] >> np.arange(n_patients)
    yield 1.0 - 2 * (bits & 1)


def _random_signs(n_patients: int, flips: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    rows = max(1, _BLOCK // n_patients)
    for start in range(0, flips, rows):
        shape = (min(rows, flips - start), n_patients)
        yield 1.0 - 2 * generator.integers(0, 2, shape, dtype=np.int8)
