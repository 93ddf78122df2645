"""Whether methods differ in rank over several blocks (such as folds, or seeds per trigger), and which pairs do.

Within a block each method has one score. Only their order matters, so blocks may differ in scale. Friedman 1937
(Journal of the American Statistical Association 32:675), Nemenyi 1963 (Distribution-free multiple comparisons,
Princeton), Demšar 2006 (Journal of Machine Learning Research 7:1).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import chdtrc

from heatcheck.stats.spearman import ranks

FEW_METHODS = "fewer than three methods"
FEW_BLOCKS = "fewer than two complete blocks"
ALL_TIED = "every block ranks all methods alike"

Blocks = Float[np.ndarray, "blocks methods"]


@dataclass(frozen=True, slots=True)
class RankComparison:
    """Friedman's test of all methods and Nemenyi's test of each pair; `reason` says why they are NaN."""

    mean_ranks: Float[np.ndarray, " methods"]  # 1 is best
    p_values: Float[np.ndarray, "methods methods"]  # of each pair, corrected for the number of pairs; 1 on the diagonal
    critical_difference: float  # the smallest difference of two mean ranks that is significant at the level
    chi_squared: float
    p_value: float
    n_blocks: int  # complete
    n_incomplete: int  # blocks without a score of some method; left out
    reason: str = ""


def compare_ranks(scores: Blocks, *, higher_is_better: bool, level: float = 0.95) -> RankComparison:
    """The mean ranks of the methods over the complete blocks, tested together and pair by pair.

    Equal scores share the mean of their ranks, and Friedman's statistic is corrected for ties. Its p-value is that of
    χ², which is conservative for few blocks; Nemenyi's is that of the studentized range over √2. A block in which a
    method is NaN is dropped: filling it in would invent a rank. Blocks are treated as independent; those that share a
    seed or a trigger carry somewhat less information than their number suggests.
    """
    if scores.ndim != 2:
        raise ValueError(f"scores must be one row per block and one column per method, got shape {scores.shape}")
    if np.isinf(scores).any():
        raise ValueError("scores must be finite, or NaN where undefined, got infinity; check the metric")
    complete = scores[~np.isnan(scores).any(1)]
    n, k = complete.shape
    dropped = len(scores) - n
    if k < 3 or n < 2:
        return _undefined(complete, dropped, higher_is_better, FEW_METHODS if k < 3 else FEW_BLOCKS)
    by_block = _ranked(complete, higher_is_better)
    mean_ranks = by_block.mean(0)
    # ties reduce the spread of the ranks; without ties it is k(k² − 1)/12 per block
    spread = float(np.sum((by_block - (k + 1) / 2) ** 2)) / n
    if spread == 0:
        return _undefined(complete, dropped, higher_is_better, ALL_TIED)
    chi_squared = n * (k - 1) * float(np.sum((mean_ranks - (k + 1) / 2) ** 2)) / spread
    p_value = float(chdtrc(k - 1, chi_squared))
    error = math.sqrt(k * (k + 1) / (6 * n))
    p_values = _nemenyi(mean_ranks, error)
    return RankComparison(mean_ranks, p_values, critical_value(k, level) * error, chi_squared, p_value, n, dropped)


def among_best(comparison: RankComparison, level: float = 0.95, tops: int = 1) -> Bool[np.ndarray, " methods"]:
    """Which methods may be best: that with the best mean rank, and all not behind it beyond chance.

    With two `tops`, as Jin et al. 2021 marked them: the two best mean ranks, and all that differ from neither of them.
    No method is marked where there was no test.
    """
    mean_ranks = comparison.mean_ranks
    if comparison.reason:
        return np.zeros(len(mean_ranks), bool)
    best = np.argsort(mean_ranks, kind="stable")[:tops]
    alike = (comparison.p_values[best] >= 1 - level).all(0)
    return np.asarray(alike | (mean_ranks <= mean_ranks[best[-1]]))  # includes ties with the last of them


def critical_value(methods: int, level: float = 0.95) -> float:
    """Nemenyi's q: how many standard errors two mean ranks must lie apart, given the number of methods."""
    from scipy.stats import studentized_range  # takes most of a second to import

    return float(studentized_range.ppf(level, methods, np.inf)) / math.sqrt(2)


def _nemenyi(mean_ranks: Float[np.ndarray, " methods"], error: float) -> Float[np.ndarray, "methods methods"]:
    from scipy.stats import studentized_range

    distance = np.abs(mean_ranks[:, None] - mean_ranks) / error
    pairs = np.triu_indices(len(mean_ranks), 1)
    p_values = np.ones(distance.shape)
    p_values[pairs] = studentized_range.sf(distance[pairs] * math.sqrt(2), len(mean_ranks), np.inf)
    return np.asarray(np.minimum(np.minimum(p_values, p_values.T), 1))


def _ranked(blocks: Blocks, higher_is_better: bool) -> Blocks:
    signed = -blocks if higher_is_better else blocks
    return np.array([ranks(block) for block in signed])


def _undefined(complete: Blocks, dropped: int, higher_is_better: bool, reason: str) -> RankComparison:
    """A comparison without tests; it still has mean ranks if there is a complete block."""
    n, k = complete.shape
    mean_ranks = _ranked(complete, higher_is_better).mean(0) if n else np.full(k, np.nan)
    pairs = np.full((k, k), np.nan)
    return RankComparison(mean_ranks, pairs, math.nan, math.nan, math.nan, n, dropped, reason)
