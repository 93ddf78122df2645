"""Which methods may be the best by one metric, on the findings that all of them have."""

import math
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, COMMON_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.best import best_set
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.verdict import first_methods
from heatcheck.studies.localization.vocabulary import METHOD_PAIR, TESTED

NAMES = {"iou": "overlap", "hit": "hit rate"}  # of the two metrics of the verdict, within a sentence


@dataclass(frozen=True, slots=True)
class Standing:
    """Who may be the best by one metric."""

    metric: str
    leader: Entrant  # with the highest mean of those that may be best
    value: float
    may_be_best: tuple[Entrant, ...]  # the highest mean first
    is_clear: bool  # the leader is clearly better than every other method
    is_tested: bool  # there are intervals of differences between methods
    findings: str  # all findings, or those that all methods have


def standing_on(evidence: Evidence, metric: str) -> Standing | None:
    """The standing by this metric; None where no method has a mean."""
    limited = any(evidence.find(MEAN, metric, COMMON_FINDINGS, m.name) for m in evidence.methods)
    finding = COMMON_FINDINGS if limited else ALL_FINDINGS
    means = {m: evidence.value(MEAN, metric, finding, m.name) for m in evidence.methods}
    ranked = sorted((m for m in means if not math.isnan(means[m])), key=lambda m: -means[m])
    if not ranked:
        return None
    names = [m.name for m in ranked]
    pairs = {
        (row.method, row.other_method): row
        for key, row in evidence.estimates.items()
        if key[0] == METHOD_PAIR and row.metric == metric
    }
    found = best_set(names, pairs)
    by_name = dict(zip(names, ranked, strict=True))
    may_be_best = tuple(by_name[name] for name in found.members)
    # a mean over easier cases may be higher than that of a method which is better on the cases that both have
    leader = by_name[found.best] if found.best else (may_be_best or ranked)[0]
    return Standing(
        metric=metric,
        leader=leader,
        value=means[leader],
        may_be_best=may_be_best,
        is_clear=bool(found.best),
        is_tested=any(not math.isnan(row.low) for row in pairs.values()),
        findings=finding,
    )


def best(evidence: Evidence) -> tuple[str, ...]:
    """For each metric of the verdict the methods that may be the best, with their intervals."""
    standings = [standing for metric in TESTED if (standing := standing_on(evidence, metric))]
    return tuple(line for standing in standings for line in _best_by(evidence, standing))


def _best_by(evidence: Evidence, standing: Standing) -> tuple[str, ...]:
    word = "Best" if standing.is_clear else "May have the best" if standing.is_tested else "Highest"
    entrants = (standing.leader,) if standing.is_clear else standing.may_be_best
    rows = [(each.label, evidence.find(MEAN, standing.metric, standing.findings, each.name)) for each in entrants]
    unit = evidence.metrics[standing.metric].unit
    return first_methods(f"{word} {NAMES[standing.metric]}", rows, unit.rounded(unit.decimals - 1))


def distance_from_readers(evidence: Evidence, standing: Standing) -> Estimate | None:
    """Leader minus readers on the cases that both have."""
    return evidence.find(DIFFERENCE, standing.metric, ALL_FINDINGS, standing.leader.name, HUMAN)
