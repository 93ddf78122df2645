"""At a glance: the criterion applied to every method, and its two metrics against random boxes."""

from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SHARE, number
from heatcheck.studies.triggers.report.facts import manifest, triggers_of
from heatcheck.studies.triggers.report.plots import overall
from heatcheck.studies.triggers.report.verdict import (
    CLEARLY,
    CRITERION,
    FINDS,
    LEAST_OVERLAP,
    NOT,
    PARTLY,
    UNKNOWN,
    TriggerJudgement,
    judgements,
)
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS, floor_of

_SIGNS = {FINDS: "✓", PARTLY: "◐", NOT: "✕", UNKNOWN: "?"}
INTERVAL = (
    "The range in which the true value plausibly lies, given how few or how many trainings and images were seen: first "
    "seeds, then images are resampled. A narrow one means a precise answer."
)
FLOOR = (
    "What a box of the same height and width would score at a random position. A large box overlaps and recovers much "
    "by its size alone; a method must beat the floor that its own boxes have."
)


@dataclass(frozen=True, slots=True)
class TriggerVerdictRow:
    """A row of the table: outcome and reasons in words."""

    entrant: Entrant
    sign: str
    outcome: str
    aside: str  # why it does not find the trigger, where a few words suffice
    overlap: str
    fits: str
    recovered: str
    half: str
    area: str


def overview(evidence: Evidence) -> Mapping[str, object] | None:
    """The content of the first section; None when no trigger was planted."""
    if not triggers_of(evidence):
        return None
    rule = manifest(evidence).detection.main_rule
    measures = [evidence.metrics[metric] for metric in CRITERION_METRICS if metric in evidence.metrics]
    terms = [(measure.label, measure.summary) for measure in measures]
    terms += [("Detected box", f"How a map becomes a box: {rule}.")] if rule else []
    return {
        "panels": [panel for metric in CRITERION_METRICS if (panel := overall(evidence, metric))],
        "rows": [_row(evidence, each) for each in judgements(evidence) if each.outcome != UNKNOWN],
        "criterion": CRITERION,
        "clearly": CLEARLY,
        "least_overlap": f"{LEAST_OVERLAP:g}",
        "terms": [*terms, ("Random-box floor", FLOOR), ("Interval", INTERVAL)],
    }


def _row(evidence: Evidence, judgement: TriggerJudgement) -> TriggerVerdictRow:
    entrant = judgement.entrant
    area = evidence.value(MEAN, "box_area", ALL_FINDINGS, entrant.name)
    return TriggerVerdictRow(
        entrant,
        _SIGNS[judgement.outcome],
        judgement.outcome,
        "recovers, but its boxes are far too large" if judgement.is_too_large else "",
        _against_floor(evidence, "trigger_iou", entrant, clear=judgement.overlaps),
        "yes" if judgement.fits else "no",
        _against_floor(evidence, "recovered", entrant, clear=judgement.recovers),
        "yes" if judgement.undoes_half else "no",
        number(area, SHARE),
    )


def _against_floor(evidence: Evidence, metric: str, entrant: Entrant, *, clear: bool) -> str:
    mean, floor = (evidence.value(MEAN, m, ALL_FINDINGS, entrant.name) for m in (metric, floor_of(metric)))
    unit = evidence.metrics[metric].unit
    unit = unit.rounded(unit.decimals - 1)
    return f"{'yes' if clear else 'not clearly'}: {number(mean, unit)} against {number(floor, unit)}"
