"""How methods rank: mean ranks over patients, Friedman's test and Nemenyi's pairs, which judge nothing."""

from collections.abc import Mapping

from heatcheck.core.records import Estimate
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few, listed
from heatcheck.report.ranking import Ranking, RankingView, ranking_of

METRICS = ("msfi", "mi_correlation", "lesion_share", "median_iou", "delta_aupc")
MAIN = 2  # of these are shown at once


def ranks(evidence: Evidence) -> Mapping[str, object] | None:
    """The content of the section on differences; None when no test was made."""
    views = [view for metric in METRICS if (view := _view(evidence, metric))]
    return {"rankings": views[:MAIN], "more": views[MAIN:]} if views else None


def _view(evidence: Evidence, metric: str) -> RankingView | None:
    ranking = ranking_of(evidence, metric)
    if ranking is None:
        return None
    name = evidence.metrics[metric].label
    if not ranking.is_defined:
        return RankingView(name, (ranking.outcome,), None)
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    diagram = ranking.diagram(
        f"{name}: mean ranks", lambda method: labels[method] + (" *" if method in ranking.best else "")
    )
    return RankingView(name, (ranking.outcome, *_best(ranking, labels), _cases(ranking.test)), diagram)


def _best(ranking: Ranking, labels: Mapping[str, str]) -> list[str]:
    by_rank = sorted(ranking.mean_ranks, key=lambda name: ranking.mean_ranks[name])
    ordered = [labels[name] for name in by_rank if name in ranking.best]
    if not ordered:
        return []
    names = listed(ordered) if len(ordered) <= 6 else few(ordered)
    if len(ordered) == 1:
        return [
            f"Nemenyi\u2019s test (at 5 %) tells every other method apart from {names} (*), the first in mean rank."
        ]
    return [f"Nemenyi\u2019s test (at 5 %) does not tell apart from the first mean rank (*): {names}."]


def _cases(test: Estimate) -> str:
    several = test.n_cases > test.n_patients
    means = f" by the mean of their {count(test.n_cases, 'case')}" if several else ""
    left_out = f"; {count(test.n_undefined, 'case')} without all scores left out" if test.n_undefined else ""
    return f"{count(test.n_patients, 'patient')} ranked{means}{left_out}."
