"""Which methods differ: mean ranks over patients, Friedman's test, Nemenyi's pairs and the marks of the best."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.report.charts.rank_diagram import RankDiagram, Ranked, draw
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few, listed, probability
from heatcheck.report.verdict import LEVEL

METRICS = ("msfi", "mi_correlation", "lesion_share", "median_iou", "delta_aupc")
MAIN = 2  # of these are shown at once


@dataclass(frozen=True, slots=True)
class MetricRanking:
    """One metric's test: mean ranks by method, its p-value, and who is among the best."""

    ranks: Mapping[str, float]
    p_value: float
    chi_squared: float
    tops: frozenset[str]
    reason: str
    patients: int
    cases: int
    dropped: int  # cases

    @property
    def is_open(self) -> bool:
        """Whether the methods do not surely differ."""
        return not self.p_value < LEVEL


@dataclass(frozen=True, slots=True)
class RankingView:
    """A ranking as the page shows it."""

    name: str
    sentences: tuple[str, ...]
    diagram: Markup | None


def ranking_of(evidence: Evidence, metric: str) -> MetricRanking | None:
    """The test of one metric; None when it was not made."""
    found = [(row, facts) for row, facts in evidence.rows("rank") if row.metric == metric]
    if not found:
        return None
    ranks = {row.method: row.value for row, _ in found if row.method and not math.isnan(row.value)}
    first, facts = found[0]
    return MetricRanking(
        ranks,
        first.p_value,
        float(facts.get("chi_squared") or math.nan),
        frozenset(row.method for row, each in found if each.get("top")) if first.p_value < LEVEL else frozenset(),
        next((row.reason for row, _ in found if row.reason), ""),
        first.n_patients,
        first.n_cases,
        first.n_undefined,
    )


def ranks(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on differences shows; None when no test was made."""
    made = [shown for metric in METRICS if (shown := _shown(evidence, metric))]
    return {"rankings": made[:MAIN], "more": made[MAIN:]} if made else None


def _shown(evidence: Evidence, metric: str) -> RankingView | None:
    ranking = ranking_of(evidence, metric)
    if ranking is None:
        return None
    name = evidence.measures[metric].label
    if not ranking.ranks or math.isnan(ranking.p_value):
        why = ranking.reason or "no reason recorded"
        return RankingView(name, (f"The test is undefined: {why}.",), None)
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    outcome = "No sure difference between the methods" if ranking.is_open else "The methods differ"
    chi = f"Friedman χ² = {ranking.chi_squared:.1f}, " if not math.isnan(ranking.chi_squared) else ""
    sentences = [f"{outcome} ({chi}{probability(ranking.p_value)}).", *_tops(ranking, labels), _cases(ranking)]
    return RankingView(
        name, tuple(sentences), _diagram(evidence, metric, name, ranking) if len(ranking.ranks) > 1 else None
    )


def _tops(ranking: MetricRanking, labels: Mapping[str, str]) -> list[str]:
    ordered = sorted(ranking.tops, key=lambda name: ranking.ranks.get(name, math.inf))
    if not ordered:
        return []
    told = [labels.get(name, name) for name in ordered]
    names = listed(told) if len(told) <= 6 else few(told)
    return [f"Top (*), not surely different from the two best: {names}."]


def _cases(ranking: MetricRanking) -> str:
    several = ranking.cases > ranking.patients
    means = f" by the mean of their {count(ranking.cases, 'case')}" if several else ""
    left_out = f"; {count(ranking.dropped, 'case')} without all scores left out" if ranking.dropped else ""
    return f"{count(ranking.patients, 'patient')} ranked{means}{left_out}."


def _diagram(evidence: Evidence, metric: str, name: str, ranking: MetricRanking) -> Markup:
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    apart = {
        frozenset((row.method, row.other_method))
        for row, _ in evidence.rows("pair")
        if row.metric == metric and row.p_adjusted < LEVEL
    }
    methods = tuple(
        Ranked(labels.get(each, each) + (" *" if each in ranking.tops else ""), rank)
        for each, rank in ranking.ranks.items()
    )
    critical = evidence.value("critical_difference", metric, ALL_FINDINGS)
    return draw(RankDiagram(f"{name}: mean ranks", methods, critical, _alike(ranking, apart)))


def _alike(ranking: MetricRanking, apart: set[frozenset[str]]) -> tuple[tuple[int, int], ...]:
    """First and last place of each longest run of neighbours in rank of which no two surely differ."""
    names: Sequence[str] = sorted(ranking.ranks, key=lambda name: ranking.ranks[name])
    found: list[tuple[int, int]] = []
    for start in range(len(names)):
        end = start
        while end + 1 < len(names) and all(
            frozenset((one, names[end + 1])) not in apart for one in names[start : end + 1]
        ):
            end += 1
        if end > start and (not found or end > found[-1][1]):
            found.append((start, end))
    return tuple(found)
