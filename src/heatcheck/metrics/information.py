"""Mutual information of maps, from how often pairs of their grey levels occur at a pixel, and its value by chance.

With N pixels in a pair of levels, a and b pixels in a level of either map, and n pixels in all, the mutual information
is (ΣN log N − Σa log a − Σb log b + n log n) / n, in nats.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

Levels = Int[np.ndarray, "maps pixels"]
LevelCounts = Int[np.ndarray, " levels"]
PairMatrix = Float[np.ndarray, "maps maps"]

_DEVIATIONS = 6  # counts farther from their mean than this many standard deviations have no weight
_SPARE = 6  # counts included in addition, for standard deviations near 0


@dataclass(frozen=True, slots=True)
class Information:
    """Mutual information of every pair of maps, its expectation by chance, and the entropy of each map, in nats."""

    shared: PairMatrix
    by_chance: PairMatrix
    entropy: Float[np.ndarray, " maps"]

    @property
    def beyond_chance(self) -> PairMatrix:
        """Mutual information less its expectation by chance: for independent maps 0 on average, so often below 0."""
        return self.shared - self.by_chance

    @property
    def normalised(self) -> PairMatrix:
        """Mutual information beyond chance over its maximum: 1 for equal maps, 0 on average for independent ones.

        The adjusted mutual information of Vinh et al. 2010 (Journal of Machine Learning Research 11:2837), with the
        mean of both entropies as the maximum; NaN where that is no more than chance, as with very few pixels.
        """
        most = (self.entropy[:, None] + self.entropy) / 2 - self.by_chance
        return np.asarray(np.divide(self.beyond_chance, most, out=np.full(most.shape, np.nan), where=most > 1e-9))


def levels_of(stretched: Float[np.ndarray, "maps pixels"], bins: int) -> Levels:
    """The bin of each value of maps between 0 and 1; all bins have equal width, and 1 belongs to the last."""
    return np.minimum((stretched * bins).astype(np.intp), bins - 1)


def shared_information(levels: Levels, bins: int) -> PairMatrix:
    """The plain mutual information of every pair of maps; on the diagonal, the entropy of each.

    With finitely many pixels it is above 0 even for independent maps, by about (bins − 1)² / 2n for well-filled levels.
    """
    n_log_n = _tables(levels.shape[1]).count_times_log

    def pair_sum(i: int, j: int) -> float:
        return float(n_log_n[np.bincount(levels[i] * bins + levels[j])].sum())

    return _from_pair_sums(levels, bins, pair_sum)


def information(levels: Levels, bins: int) -> Information:
    """The mutual information of every pair of maps, with its mean over ALL ways to shuffle the pixels of one map.

    That mean is exact and needs no shuffling, because every N is then hypergeometric. Subtracting it removes the effect
    of the number of pixels, but not that of smoothness: two unrelated smooth maps may still share more than chance.
    """
    counts = [_counts(line, bins) for line in levels]

    def expected_pair_sum(i: int, j: int) -> float:
        return _expected_pair_sum(counts[i][counts[i] > 0], counts[j][counts[j] > 0], levels.shape[1])

    shared = shared_information(levels, bins)
    by_chance = _from_pair_sums(levels, bins, expected_pair_sum)
    return Information(shared, by_chance, shared.diagonal().copy())


def _from_pair_sums(levels: Levels, bins: int, pair_sum: Callable[[int, int], float]) -> PairMatrix:
    """The formula at the top of this file, given ΣN log N of two maps by their indices."""
    n = levels.shape[1]
    n_log_n = _tables(n).count_times_log
    single = np.array([n_log_n[_counts(line, bins)].sum() for line in levels])  # Σa log a of each map
    pairs = np.zeros((len(levels), len(levels)))
    for i in range(len(levels)):
        for j in range(i + 1):
            pairs[i, j] = pairs[j, i] = pair_sum(i, j)
    return np.maximum(pairs - single - single[:, None] + n_log_n[n], 0) / n


def _expected_pair_sum(one: LevelCounts, other: LevelCounts, n: int) -> float:
    """The mean of ΣN log N over all ways to shuffle: every possible N weighted by its probability given a and b.

    Where N varies widely, only every h-th value is evaluated, with h times the weight. A hypergeometric N is a sum of
    independent coin tosses, so this changes a sum of its probabilities by at most 2 exp(−σ² (1 − cos 2π/h)), which is
    below 1e-7 for h ≤ σ/1.5. The cost then depends little on the number of pixels.
    """
    tables = _tables(n)
    a, b = np.repeat(one, len(other)), np.tile(other, len(one))
    rest = n - a - b
    mean = a * (b / n)
    spread = np.sqrt(mean * ((n - a) / n) * ((n - b) / max(n - 1, 1)))
    # N log N is 0 for N = 0 and N = 1, and N < a + b − n is impossible
    first = np.maximum(np.maximum(mean - _DEVIATIONS * spread - _SPARE, 2).astype(np.intp), -rest)
    last = np.minimum((mean + _DEVIATIONS * spread + _SPARE).astype(np.intp), np.minimum(a, b))
    step = np.maximum(spread / 1.5, 1).astype(np.intp)
    terms = np.maximum((last - first) // step + 1, 0)
    index = np.arange(terms.sum()) - np.repeat(np.cumsum(terms) - terms, terms)  # from 0 within each pair of levels
    pixels = np.repeat(first, terms) + index * np.repeat(step, terms)  # N, for all pairs of levels in one array
    log_factorial = tables.log_factorial
    ways = log_factorial[a] + log_factorial[b] + log_factorial[n - a] + log_factorial[n - b] - log_factorial[n]
    logs = tables.log_weight.take(pixels)
    logs += np.repeat(ways + np.log(step), terms)
    logs -= log_factorial.take(np.repeat(a, terms) - pixels)
    logs -= log_factorial.take(np.repeat(b, terms) - pixels)
    logs -= log_factorial.take(np.repeat(rest, terms) + pixels)
    return float(np.exp(logs, out=logs).sum())


def _counts(line: Int[np.ndarray, " pixels"], bins: int) -> LevelCounts:
    return np.bincount(line, minlength=bins)


@dataclass(frozen=True, slots=True)
class _PixelTables:
    """Functions of a number of pixels, tabulated because they are needed again and again."""

    count_times_log: Float[np.ndarray, " counts"]  # N log N
    log_factorial: Float[np.ndarray, " counts"]
    log_weight: Float[np.ndarray, " counts"]  # log(N log N / N!)


@lru_cache(maxsize=4)  # the maps of a study have one size
def _tables(n: int) -> _PixelTables:
    counts = np.arange(n + 1)
    count_times_log = counts * np.log(np.maximum(counts, 1))
    log_factorial = gammaln(counts + 1.0)
    logs = np.log(count_times_log, out=np.full(n + 1, -np.inf), where=count_times_log > 0)
    return _PixelTables(count_times_log, log_factorial, logs - log_factorial)
