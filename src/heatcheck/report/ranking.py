"""Which methods differ in rank: the tests that `estimating/ranks.py` stored, and the words and diagram they share."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import CRITICAL_DIFFERENCE, FRIEDMAN, MEAN_RANK, RANK_PAIR
from heatcheck.report.charts.rank_diagram import RankDiagram, Ranked, draw
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import probability
from heatcheck.report.verdict import LEVEL


@dataclass(frozen=True, slots=True)
class Ranking:
    """Friedman's test of one metric, the mean rank of each method, and Nemenyi's test of each pair."""

    test: Estimate  # its value is χ²
    mean_ranks: Mapping[str, float]  # by method; 1 is best
    critical: float  # the smallest significant difference of two mean ranks
    pairs: Mapping[frozenset[str], float]  # p-values

    @property
    def is_defined(self) -> bool:
        """Whether the methods could be tested."""
        return not math.isnan(self.test.value)

    @property
    def differ(self) -> bool:
        """Whether Friedman's test tells methods apart, at 5 %."""
        return self.test.p_value < LEVEL

    @property
    def best(self) -> frozenset[str]:
        """The method with the best mean rank, and those that Nemenyi's test does not tell apart from it.

        None where Friedman's test does not tell the methods apart.
        """
        return self._among(1)

    @property
    def best_as_published(self) -> frozenset[str]:
        """The methods with the two best mean ranks, and those that Nemenyi's test tells apart from neither.

        So Jin et al. 2021 marked them. None where Friedman's test does not tell the methods apart.
        """
        return self._among(2)

    def _among(self, tops: int) -> frozenset[str]:
        if not self.differ:
            return frozenset()
        best = sorted(self.mean_ranks, key=lambda name: self.mean_ranks[name])[:tops]
        return frozenset(
            name
            for name, rank in self.mean_ranks.items()
            if rank <= self.mean_ranks[best[-1]]
            or all(self.pairs.get(frozenset((name, other)), 0.0) >= LEVEL for other in best)
        )

    @property
    def outcome(self) -> str:
        """The outcome of Friedman's test, or why there is none."""
        if not self.is_defined:
            return f"The test is undefined: {self.test.reason or 'no reason recorded'}."
        test = f"χ² = {self.test.value:.1f}, {probability(self.test.p_value)}"
        return f"Friedman\u2019s test that all methods rank alike: {test}."

    def diagram(self, title: str, label: Callable[[str], str]) -> Markup | None:
        """The mean ranks on one axis, with the critical difference; None where there was no test."""
        if len(self.mean_ranks) < 2 or not self.critical > 0:
            return None
        ranked = tuple(Ranked(label(name), rank) for name, rank in self.mean_ranks.items())
        return draw(RankDiagram(title, ranked, self.critical))


@dataclass(frozen=True, slots=True)
class RankingView:
    """A ranking as a page shows it."""

    name: str  # of the metric
    sentences: tuple[str, ...]
    diagram: Markup | None


def ranking_of(evidence: Evidence, metric: str) -> Ranking | None:
    """The comparison of the methods by one metric; None when it was not made."""
    test = evidence.find(FRIEDMAN, metric, ALL_FINDINGS)
    if test is None:
        return None
    entrants = (*evidence.methods, *evidence.floors)
    ranks = {each.name: evidence.value(MEAN_RANK, metric, ALL_FINDINGS, each.name) for each in entrants}
    return Ranking(
        test=test,
        mean_ranks={name: rank for name, rank in ranks.items() if not math.isnan(rank)},
        critical=evidence.value(CRITICAL_DIFFERENCE, metric, ALL_FINDINGS),
        pairs={
            frozenset((row.method, row.other_method)): row.p_value
            for row, _ in evidence.rows(RANK_PAIR)
            if row.metric == metric
        },
    )
