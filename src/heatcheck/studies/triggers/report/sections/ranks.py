"""Which methods differ? Friedman's test over seeds and triggers, and Nemenyi's critical difference."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.report.charts.rank_diagram import RankDiagram, Ranked, draw
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few, listed, probability
from heatcheck.report.verdict import LEVEL

METRICS = ("trigger_iou", "recovered")


@dataclass(frozen=True, slots=True)
class RankTest:
    """One measure's test in a sentence, what it found, and the diagram where there is one."""

    name: str
    sentences: tuple[str, ...]
    diagram: Markup | None


def ranks(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on differences shows; None when no test was made."""
    made = [ranking for metric in METRICS if (ranking := _ranking(evidence, metric))]
    return {"rankings": made} if made else None


def _ranking(evidence: Evidence, metric: str) -> RankTest | None:
    test = evidence.find("friedman", metric, ALL_FINDINGS)
    if test is None:
        return None
    name = evidence.measures[metric].label
    if math.isnan(test.value):
        why = test.reason or "no reason recorded"
        return RankTest(name, (f"The test is undefined: {why}.", *_blocks(test)), None)
    places = {
        method.label: row.value
        for method in (*evidence.methods, *evidence.floors)
        if (row := evidence.find("mean_rank", metric, ALL_FINDINGS, method.name)) and not math.isnan(row.value)
    }
    critical = evidence.value("critical_difference", metric, ALL_FINDINGS)
    differ = test.p_value < LEVEL
    outcome = "The methods differ" if differ else "No sure difference between the methods"
    told = f"{outcome} (Friedman χ² = {test.value:.1f}, {probability(test.p_value)})."
    drawable = len(places) > 1 and critical > 0
    found = _leaders(places, critical) if differ and drawable else ()
    title = f"{name}: mean ranks and critical difference"
    diagram = (
        draw(RankDiagram(title, tuple(Ranked(*place) for place in places.items()), critical)) if drawable else None
    )
    return RankTest(name, (told, *found, *_blocks(test)), diagram)


def _blocks(test: Estimate) -> tuple[str, ...]:
    used = f"{count(test.n_cases, 'block')} of seed and trigger {'was' if test.n_cases == 1 else 'were'} used"
    dropped = f", {test.n_undefined:,} incomplete {'one' if test.n_undefined == 1 else 'ones'} left out"
    return (used + (dropped if test.n_undefined else "") + ".",)


def _leaders(places: Mapping[str, float], critical: float) -> tuple[str, ...]:
    """What the method with the best mean rank is surely better than, and what it is not."""
    ranked = sorted(places, key=lambda label: places[label])
    first, others = ranked[0], ranked[1:]
    worse = [label for label in others if places[label] - places[first] >= critical]
    alike = [label for label in others if label not in worse]
    parts = [f"is surely better than {_named(worse, others)}"] if worse else []
    parts += [f"is not surely better than {_named(alike, others)}"] if alike else []
    return (f"{first} has the best mean rank and {listed(parts)} (Nemenyi).",)


def _named(labels: Sequence[str], others: Sequence[str]) -> str:
    if len(labels) == len(others) and len(labels) > 1:
        return "any other"
    return listed(labels) if len(labels) <= 5 else few(labels)
