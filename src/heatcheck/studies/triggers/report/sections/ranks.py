"""Which methods differ? Friedman's test over seeds and triggers, and Nemenyi's critical difference."""

from collections.abc import Mapping, Sequence

from heatcheck.core.records import Estimate
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few, listed
from heatcheck.report.ranking import RankingView, ranking_of

METRICS = ("trigger_iou", "recovered")


def ranks(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on differences shows; None when no test was made."""
    made = [ranking for metric in METRICS if (ranking := _ranking(evidence, metric))]
    return {"rankings": made} if made else None


def _ranking(evidence: Evidence, metric: str) -> RankingView | None:
    ranking = ranking_of(evidence, metric)
    if ranking is None:
        return None
    name = evidence.metrics[metric].label
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    diagram = ranking.diagram(f"{name}: mean ranks and critical difference", labels.__getitem__)
    by_label = {labels[method]: rank for method, rank in ranking.mean_ranks.items()}
    leaders = _leaders(by_label, ranking.critical) if ranking.differ and diagram else ()
    return RankingView(name, (ranking.outcome, *leaders, *_blocks(ranking.test)), diagram)


def _blocks(test: Estimate) -> tuple[str, ...]:
    used = f"{count(test.n_cases, 'block')} of seed and trigger {'was' if test.n_cases == 1 else 'were'} used"
    dropped = f", {test.n_undefined:,} incomplete {'one' if test.n_undefined == 1 else 'ones'} left out"
    return (used + (dropped if test.n_undefined else "") + ".",)


def _leaders(places: Mapping[str, float], critical: float) -> tuple[str, ...]:
    """What the method with the best mean rank is clearly better than, and what it is not."""
    ranked = sorted(places, key=lambda label: places[label])
    first, others = ranked[0], ranked[1:]
    worse = [label for label in others if places[label] - places[first] >= critical]
    alike = [label for label in others if label not in worse]
    parts = [f"is clearly better than {_named(worse, others)}"] if worse else []
    parts += [f"is not clearly better than {_named(alike, others)}"] if alike else []
    return (f"{first} has the best mean rank and {listed(parts)} (Nemenyi).",)


def _named(labels: Sequence[str], others: Sequence[str]) -> str:
    if len(labels) == len(others) and len(labels) > 1:
        return "any other"
    return listed(labels) if len(labels) <= 5 else few(labels)
