"""Which methods may be the best by one metric, on the findings that all of them have."""

import math
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.best import best_set
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.studies.localization.vocabulary import COMMON_FINDINGS, METHOD_PAIR

NAMES = {"iou": "overlap", "hit": "hit rate"}  # of the two metrics of the verdict, within a sentence


@dataclass(frozen=True, slots=True)
class Standing:
    """Who may be the best by one metric."""

    metric: str
    leader: Entrant  # with the highest mean
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
    return Standing(
        metric=metric,
        leader=ranked[0],
        value=means[ranked[0]],
        may_be_best=tuple(by_name[name] for name in found.members),
        is_clear=found.best == names[0],
        is_tested=len(found.incomparable) < len(names),
        findings=finding,
    )


def distance_from_readers(evidence: Evidence, standing: Standing) -> Estimate | None:
    """Leader less readers on the cases that both have."""
    return evidence.find(DIFFERENCE, standing.metric, ALL_FINDINGS, standing.leader.name, HUMAN)
