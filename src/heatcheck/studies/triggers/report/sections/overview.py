"""At a glance: the criterion applied to every method, against random boxes and against the baseline."""

from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.sizes import Sizes
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SHARE, number
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN, answer
from heatcheck.studies.triggers.report.facts import manifest, trainings, triggers_of
from heatcheck.studies.triggers.report.plots import overall
from heatcheck.studies.triggers.report.verdict import (
    CRITERION,
    FINDS,
    NOT,
    ONE_TRAINING,
    OPEN,
    UNKNOWN,
    TriggerJudgement,
    judgements,
)
from heatcheck.studies.triggers.vocabulary import CONTROL, CRITERION_METRICS, HALF, floor_of

_SIGNS = {FINDS: "✓", NOT: "✕", OPEN: "?"}
INTERVAL = (
    "The range in which the true value plausibly lies, given how few or how many trainings and images were seen: first "
    "seeds, then images are resampled. A narrow one means a precise answer."
)
FLOOR = (
    "What a box of the same height and width would score at a random position. A large box overlaps and recovers much "
    "by its size alone; a method must beat the floor that its own boxes have."
)
ON_BASELINE = (
    "The same method explains the baseline on the same images with the trigger. The baseline was never attacked, so "
    "what its maps overlap of it has nothing to do with the attack: an edge, a corner, a bright patch."
)

TERMS = (("Random-box floor", FLOOR), ("Overlap on the baseline", ON_BASELINE), ("Interval", INTERVAL))


@dataclass(frozen=True, slots=True)
class TriggerVerdictRow:
    """A row of the table: outcome and reasons in words."""

    entrant: Entrant
    sign: str
    outcome: str
    aside: str  # more about the outcome, where a few words suffice
    overlap: str
    follows: str
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
        "words": (CLEARLY, _size(evidence), NOT_SHOWN, _one_training(evidence)),
        "terms": [*terms, *TERMS],
    }


def _size(evidence: Evidence) -> str:
    """The size that matters in a comparison with random boxes."""
    share = Sizes(**manifest(evidence).sizes).maps
    return (
        f"The size that matters here is {number(share, SHARE.rounded(0))} of the room between random boxes, or the "
        f"baseline, and a perfect score, so a method that finds triggers has a mean IoU of at least {share:g}. It does "
        "not find them where the whole interval of one of its three differences lies below that size."
    )


def _one_training(evidence: Evidence) -> str:
    return (
        f"Methods were judged on one training, so nothing is shown: {ONE_TRAINING}." if trainings(evidence) == 1 else ""
    )


def _row(evidence: Evidence, judgement: TriggerJudgement) -> TriggerVerdictRow:
    entrant = judgement.entrant
    area = evidence.value(MEAN, "box_area", ALL_FINDINGS, entrant.name)
    half = evidence.find(DIFFERENCE, "recovered", ALL_FINDINGS, entrant.name, HALF)
    return TriggerVerdictRow(
        entrant,
        _SIGNS[judgement.outcome],
        judgement.outcome,
        _aside(judgement),
        _against(evidence, judgement.overlaps, "trigger_iou", floor_of("trigger_iou")),
        _against(evidence, judgement.follows, "trigger_iou", CONTROL),
        _against(evidence, judgement.recovers, "recovered", floor_of("recovered")),
        answer(half),
        number(area, SHARE),
    )


def _aside(judgement: TriggerJudgement) -> str:
    if judgement.only_recovers:
        return "recovers, but its boxes do not show where the trigger is"
    if judgement.outcome == NOT and judgement.ignores_the_attack:
        return "overlaps the trigger as much on the baseline, which was never attacked"
    return judgement.would_decide


def _against(evidence: Evidence, row: Estimate | None, metric: str, control: str) -> str:
    if row is None:
        return answer(row)
    mean, floor = (evidence.value(MEAN, name, ALL_FINDINGS, row.method) for name in (metric, control))
    unit = evidence.metrics[metric].unit
    unit = unit.rounded(unit.decimals - 1)
    return f"{answer(row)}: {number(mean, unit)} against {number(floor, unit)}"
