"""A comparison of ranks as estimates, which `report/ranking.py` reads back."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import CRITICAL_DIFFERENCE, FRIEDMAN, MEAN_RANK, RANK_PAIR
from heatcheck.stats.ranks import RankComparison


def rank_estimates(comparison: RankComparison, methods: Sequence[str], template: Estimate) -> Iterator[Estimate]:
    """Friedman's test, the critical difference, every method's mean rank, and Nemenyi's test of each pair.

    The template has the metric, the model and the numbers of cases. The p-value of a pair already allows for the number
    of pairs; its value is below 0 where the first of the two ranks better.
    """
    template = replace(template, reason=comparison.reason)
    yield replace(template, statistic=FRIEDMAN, value=comparison.chi_squared, p_value=comparison.p_value)
    yield replace(template, statistic=CRITICAL_DIFFERENCE, value=comparison.critical_difference)
    mean_ranks = comparison.mean_ranks.tolist()
    for method, rank in zip(methods, mean_ranks, strict=True):
        yield replace(template, statistic=MEAN_RANK, method=method, value=rank)
    for i, j in combinations(range(len(methods)), 2):
        yield replace(
            template, statistic=RANK_PAIR, method=methods[i], other_method=methods[j],
            value=mean_ranks[i] - mean_ranks[j], p_value=float(comparison.p_values[i, j]),
        )  # fmt: skip
