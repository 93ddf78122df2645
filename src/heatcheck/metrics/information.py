"""What one map tells about another, from how often their grey levels meet at a pixel, and what chance makes of it.

With N pixels in a pair of levels, a and b in each level of either map, and n in all, the mutual information is
(ΣN log N − Σa log a − Σb log b + n log n) / n, in nats.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

Levels = Int[np.ndarray, "maps pixels"]
LevelCounts = Int[np.ndarray, " levels"]
PairMatrix = Float[np.ndarray, "maps maps"]

_DEVIATIONS = 6  # of a count from its mean, beyond which it has no weight
_SPARE = 6  # further counts, where the spread is so small that deviations say little


@dataclass(frozen=True, slots=True)
class Information:
    """Of every pair of maps: what they share, and what they would share by chance; of each: what it holds. In nats."""

    shared: PairMatrix
    by_chance: PairMatrix
    entropy: Float[np.ndarray, " maps"]

    @property
    def beyond_chance(self) -> PairMatrix:
        """What is shared less what chance gives: 0 on average for independent maps, so as often below as above."""
        return self.shared - self.by_chance

    @property
    def normalised(self) -> PairMatrix:
        """What is shared beyond chance, over the most that could be: 1 for equal maps, 0 on average for independent.

        The adjusted mutual information of Vinh et al. 2010 (Journal of Machine Learning Research 11:2837), the most
        being the mean of both entropies; NaN where even that is no more than chance, as on very few pixels.
        """
        most = (self.entropy[:, None] + self.entropy) / 2 - self.by_chance
        return np.asarray(np.divide(self.beyond_chance, most, out=np.full(most.shape, np.nan), where=most > 1e-9))


def levels_of(stretched: Float[np.ndarray, "maps pixels"], bins: int) -> Levels:
    """The bin of each value of maps between 0 and 1; all bins are equally wide, and 1 belongs to the last."""
    return np.minimum((stretched * bins).astype(np.intp), bins - 1)


def shared_information(levels: Levels, bins: int) -> PairMatrix:
    """The mutual information of every pair of maps as it is counted; on the diagonal, the entropy of each.

    Finitely many pixels make any two maps share something: about (bins − 1)² / 2n where levels are well filled.
    """
    n = levels.shape[1]
    of_counts = _tables(n).count_times_log
    each = np.array([of_counts[_counts(line, bins)].sum() for line in levels])
    met = np.zeros((len(levels), len(levels)))
    for one, line in enumerate(levels):
        first = line * bins
        for other in range(one + 1):
            met[one, other] = met[other, one] = of_counts[np.bincount(first + levels[other])].sum()
    return np.maximum(met - each - each[:, None] + of_counts[n], 0) / n


def information(levels: Levels, bins: int) -> Information:
    """The mutual information of every pair of maps beside the mean over ALL ways to shuffle the pixels of one map.

    That mean is exact and needs no shuffling: every N is then hypergeometric. It takes out what the number of pixels
    does. It does not know that neighbouring pixels are alike, so two smooth maps of different things may share more.
    """
    n = levels.shape[1]
    counts = [_counts(line, bins) for line in levels]
    of_counts = _tables(n).count_times_log
    each = np.array([of_counts[count].sum() for count in counts])
    met = np.zeros((len(levels), len(levels)))
    for one, count in enumerate(counts):
        for other in range(one + 1):
            met[one, other] = met[other, one] = _met_by_chance(count[count > 0], counts[other][counts[other] > 0], n)
    by_chance = np.maximum(met - each - each[:, None] + of_counts[n], 0) / n
    shared = shared_information(levels, bins)
    return Information(shared, by_chance, shared.diagonal().copy())


def _met_by_chance(one: LevelCounts, other: LevelCounts, n: int) -> float:
    """The mean of ΣN log N over all ways to shuffle: each N is weighed by its probability, given a and b.

    Where N spreads widely, only every so many-th N is looked at and weighed as often. A hypergeometric N is a sum of
    independent coins, so that leaving out all but every h-th changes a sum of its probabilities by at most
    2 exp(−σ² (1 − cos 2π/h)): with h ≤ σ/1.5 below 1e-7. Cost then depends little on the number of pixels.
    """
    tables = _tables(n)
    a, b = np.repeat(one, len(other)), np.tile(other, len(one))
    rest = n - a - b
    mean = a * (b / n)
    spread = np.sqrt(mean * ((n - a) / n) * ((n - b) / max(n - 1, 1)))
    # N = 0 and N = 1 add nothing, and N < a + b - n is impossible
    first = np.maximum(np.maximum(mean - _DEVIATIONS * spread - _SPARE, 2).astype(np.intp), -rest)
    last = np.minimum((mean + _DEVIATIONS * spread + _SPARE).astype(np.intp), np.minimum(a, b))
    step = np.maximum(spread / 1.5, 1).astype(np.intp)
    terms = np.maximum((last - first) // step + 1, 0)
    number = np.arange(terms.sum()) - np.repeat(np.cumsum(terms) - terms, terms)
    met = np.repeat(first, terms) + number * np.repeat(step, terms)
    log_factorial = tables.log_factorial
    ways = log_factorial[a] + log_factorial[b] + log_factorial[n - a] + log_factorial[n - b] - log_factorial[n]
    logs = tables.log_weight.take(met)
    logs += np.repeat(ways + np.log(step), terms)
    logs -= log_factorial.take(np.repeat(a, terms) - met)
    logs -= log_factorial.take(np.repeat(b, terms) - met)
    logs -= log_factorial.take(np.repeat(rest, terms) + met)
    return float(np.exp(logs, out=logs).sum())


def _counts(line: Int[np.ndarray, " pixels"], bins: int) -> LevelCounts:
    return np.bincount(line, minlength=bins)


@dataclass(frozen=True, slots=True)
class _PixelTables:
    """Functions of a number of pixels that are asked for over and over."""

    count_times_log: Float[np.ndarray, " counts"]  # N log N
    log_factorial: Float[np.ndarray, " counts"]
    log_weight: Float[np.ndarray, " counts"]  # log(N log N / N!)


@lru_cache(maxsize=4)  # a study's maps are of one size
def _tables(n: int) -> _PixelTables:
    counts = np.arange(n + 1)
    count_times_log = counts * np.log(np.maximum(counts, 1))
    log_factorial = gammaln(counts + 1.0)
    logs = np.log(count_times_log, out=np.full(n + 1, -np.inf), where=count_times_log > 0)
    return _PixelTables(count_times_log, log_factorial, logs - log_factorial)
