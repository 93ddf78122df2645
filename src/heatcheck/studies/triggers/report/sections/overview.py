"""At a glance: what the criterion says of every method, and the two numbers behind it beside random boxes."""

from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SHARE, number
from heatcheck.studies.triggers.report.facts import manifest, triggers_of
from heatcheck.studies.triggers.report.plots import overall
from heatcheck.studies.triggers.report.verdict import (
    CRITERION,
    FINDS,
    LEAST_OVERLAP,
    NOT,
    PARTLY,
    SURELY,
    UNKNOWN,
    TriggerJudgement,
    judgements,
)
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS, floor_of

_SIGNS = {FINDS: "✓", PARTLY: "◐", NOT: "✕", UNKNOWN: "?"}
INTERVAL = (
    "The range in which the true value plausibly lies, given how few or how many trainings and images were seen: first "
    "seeds, then images are drawn again. A narrow one means a sure answer."
)
FLOOR = (
    "What a box of the same height and width would score at a random place. A large box overlaps and recovers much by "
    "its size alone; a method must beat the floor that its own boxes have."
)


@dataclass(frozen=True, slots=True)
class TriggerVerdictRow:
    """A row of the table: outcome and reasons in words."""

    entrant: Entrant
    sign: str
    outcome: str
    aside: str  # what the outcome lacks, where a few words can say it
    overlap: str
    fits: str
    recovered: str
    half: str
    area: str


def overview(evidence: Evidence) -> Mapping[str, object] | None:
    """What the first section shows; None when no trigger was planted."""
    if not triggers_of(evidence):
        return None
    rule = manifest(evidence).detection.main_rule
    terms = [(evidence.measures[m].label, evidence.measures[m].summary)
             for m in CRITERION_METRICS if m in evidence.measures]  # fmt: skip
    terms += [("Detected box", f"How a map becomes a box: {rule}.")] if rule else []
    return {
        "panels": [panel for metric in CRITERION_METRICS if (panel := overall(evidence, metric))],
        "rows": [_judged(evidence, made) for made in judgements(evidence) if made.outcome != UNKNOWN],
        "criterion": CRITERION,
        "surely": SURELY,
        "least_overlap": f"{LEAST_OVERLAP:g}",
        "terms": [*terms, ("Random-box floor", FLOOR), ("Interval", INTERVAL)],
    }


def _judged(evidence: Evidence, made: TriggerJudgement) -> TriggerVerdictRow:
    area = evidence.value(MEAN, "box_area", ALL_FINDINGS, made.entrant.name)
    return TriggerVerdictRow(
        made.entrant,
        _SIGNS[made.outcome],
        made.outcome,
        "recovers, but its boxes are far too large" if made.is_too_large else "",
        _against(evidence, "trigger_iou", made.entrant, sure=made.overlaps),
        "yes" if made.fits else "no",
        _against(evidence, "recovered", made.entrant, sure=made.recovers),
        "yes" if made.undoes_half else "no",
        number(area, SHARE),
    )


def _against(evidence: Evidence, metric: str, entrant: Entrant, *, sure: bool) -> str:
    own, floor = (evidence.value(MEAN, m, ALL_FINDINGS, entrant.name) for m in (metric, floor_of(metric)))
    unit = evidence.measures[metric].unit
    unit = unit.rounded(unit.decimals - 1)
    return f"{'yes' if sure else 'not surely'}: {number(own, unit)} against {number(floor, unit)}"
