"""Which methods find the planted triggers: the criterion, each method's judgement, and two sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, ONE_VALUE, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, SHARE, Unit, count, few, listed, number
from heatcheck.report.verdict import Verdict
from heatcheck.studies.triggers.report.facts import graded_triggers, grading, images_graded, manifest, triggers_of
from heatcheck.studies.triggers.report.sections.artefacts import artefact_verdict
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS, RANDOM_BOX

HALF = 0.5  # of the images must be recovered
LEAST_OVERLAP = 0.1  # mean IoU: all that a box ten times as large as the trigger can reach, wherever it lies
UNANIMOUS = 6  # the fewest agreeing images for which a two-sided sign test has p < 0.05
FINDS, PARTLY, NOT, UNKNOWN = "finds it", "partly", "does not", "not judged"
_FITS = (
    f"their mean overlap (IoU) is at least {LEAST_OVERLAP:g}, which is all that a box {1 / LEAST_OVERLAP:g} times as "
    "large as the trigger can reach: a larger one may undo the attack by its size, but does not show where the trigger "
    "is;"
)
CRITERION = (
    "its boxes overlap the triggers clearly more than random boxes of the same height and width;",
    _FITS,
    "clean pixels pasted into its boxes undo the attack clearly more often than pasted into such random boxes;",
    "and they do so in at least half of the images.",
)
CLEARLY = (
    "Clearly means that the 95 % interval of the difference lies above 0, or that all images agree and there are at "
    f"least {UNANIMOUS} of them. A method that is clearly better than random boxes, but does not meet all "
    "of this, finds triggers partly."
)


@dataclass(frozen=True, slots=True)
class TriggerJudgement:
    """The outcome of the criterion for one method, and the numbers behind it."""

    entrant: Entrant
    outcome: str
    overlap: Estimate | None
    recovered: Estimate | None
    overlaps: bool  # clearly more than random boxes
    recovers: bool  # clearly more often than random boxes
    uncovered: float = math.nan  # share of the trigger outside its boxes

    @property
    def fits(self) -> bool:
        """Whether its boxes are close enough to the triggers to show where they are."""
        return self.overlap is not None and self.overlap.value >= LEAST_OVERLAP

    @property
    def undoes_half(self) -> bool:
        """Whether at least half of the images were recovered."""
        return self.recovered is not None and self.recovered.value >= HALF

    @property
    def is_too_large(self) -> bool:
        """Whether its boxes hold most of the trigger and undo the attack, and fail only by their size."""
        return self.outcome == PARTLY and self.recovers and self.undoes_half and not self.fits and self.uncovered < HALF


def judge(evidence: Evidence, entrant: Entrant) -> TriggerJudgement:
    """The criterion applied to one method over all triggers."""
    overlap, recovered = (evidence.find(MEAN, m, ALL_FINDINGS, entrant.name) for m in CRITERION_METRICS)
    overlaps, recovers = (_clearly_above(evidence, m, entrant) for m in CRITERION_METRICS)
    uncovered = evidence.value(MEAN, "uncovered", ALL_FINDINGS, entrant.name)
    judgement = TriggerJudgement(entrant, UNKNOWN, overlap, recovered, overlaps, recovers, uncovered)
    if any(row is None or math.isnan(row.value) for row in (overlap, recovered)):
        return judgement
    if overlaps and recovers and judgement.fits and judgement.undoes_half:
        return replace(judgement, outcome=FINDS)
    if not overlaps and not recovers and any(_is_open(evidence, m, entrant) for m in CRITERION_METRICS):
        return judgement
    return replace(judgement, outcome=PARTLY if overlaps or recovers else NOT)


def judgements(evidence: Evidence) -> list[TriggerJudgement]:
    """Every method, those that find triggers first, the highest overlap first within each outcome."""
    order = (FINDS, PARTLY, NOT, UNKNOWN)

    def key(judgement: TriggerJudgement) -> tuple[int, float]:
        value = judgement.overlap.value if judgement.overlap else math.nan
        return order.index(judgement.outcome), math.inf if math.isnan(value) else -value

    return sorted((judge(evidence, method) for method in evidence.methods), key=key)


def verdict(evidence: Evidence) -> Verdict:
    """What the run's estimates say about its methods."""
    every = judgements(evidence)
    judged = [judgement for judgement in every if judgement.outcome != UNKNOWN]
    if judged:
        return Verdict(_finders(evidence, judged, unjudged=len(every) > len(judged)), _others(evidence, every))
    if not evidence.finished:
        return Verdict(
            "There is no verdict yet, because the run is not finished.", "Finish the run and rebuild this report."
        )
    if not triggers_of(evidence):
        return artefact_verdict(evidence)
    return _nothing_defined(evidence) if graded_triggers(evidence) else _nothing_graded(evidence)


def _clearly_above(evidence: Evidence, metric: str, entrant: Entrant) -> bool:
    row = evidence.find(DIFFERENCE, metric, ALL_FINDINGS, entrant.name, RANDOM_BOX)
    return row is not None and (row.low > 0 or (row.value > 0 and is_unanimous(row)))


def _is_open(evidence: Evidence, metric: str, entrant: Entrant) -> bool:
    """Whether the method is above its floor but has no interval, which is no reason to call it a failure."""
    row = evidence.find(DIFFERENCE, metric, ALL_FINDINGS, entrant.name, RANDOM_BOX)
    return row is not None and row.value > 0 and math.isnan(row.low) and not is_unanimous(row)


def is_unanimous(row: Estimate) -> bool:
    """Whether all images agree, so that there is no interval, and are enough for a sign test at 5 %."""
    return row.reason == ONE_VALUE and row.n_patients >= UNANIMOUS


def _finders(evidence: Evidence, judged: Sequence[TriggerJudgement], *, unjudged: bool) -> str:
    finders = [judgement for judgement in judged if judgement.outcome == FINDS]
    model = evidence.models[0].label
    if not finders:
        which = "that could be judged" if unjudged else "tested" if len(judged) == 1 else ""
        one, several = (
            f"the one method {which} does not find",
            f"none of {len(judged)} methods {which}".rstrip() + " finds",
        )
        tested = one if len(judged) == 1 else several
        return (
            f"On {model}, {tested} the planted triggers: none has boxes that clearly beat random boxes of the same "
            f"size, have a mean IoU of at least {LEAST_OVERLAP:g} and undo the attack in at least half of the images."
        )
    names = listed([judgement.entrant.label for judgement in finders])
    find, whose = ("finds", "its") if len(finders) == 1 else ("find", "their")
    overlap = _values([judgement.overlap for judgement in finders], SCORE.rounded(2))
    share = _values([judgement.recovered for judgement in finders], SHARE.rounded(0))
    return (
        f"On {model}, {names} {find} the planted triggers: {whose} boxes overlap them clearly more than random boxes "
        f"of the same size (IoU {overlap}), and clean pixels pasted into these boxes undo the attack in {share} of "
        "images."
    )


def _values(rows: Sequence[Estimate | None], unit: Unit) -> str:
    """Every value in its order where they are few, else the lowest and the highest."""
    values = [row.value for row in rows if row]
    if len(values) <= 3:
        return listed([number(value, unit) for value in values])
    return f"{number(min(values), Unit(unit.factor, unit.decimals))} to {number(max(values), unit)}"


def _others(evidence: Evidence, every: Sequence[TriggerJudgement]) -> str:
    large = [judgement for judgement in every if judgement.is_too_large]
    partly = [judgement for judgement in every if judgement.outcome == PARTLY and not judgement.is_too_large]
    failed = [judgement for judgement in every if judgement.outcome == NOT]
    overlaps = _values([judgement.overlap for judgement in large], SCORE.rounded(2))
    but = f"the attack, but with boxes far too large to show where the trigger is (IoU {overlaps})"
    parts = [
        _clause(large, f"undoes {but}", f"undo {but}"),
        _clause(partly, "finds them partly", "find them partly"),
        _clause(failed, "does not", "do not"),
        _clause(
            [judgement for judgement in every if judgement.outcome == UNKNOWN], "cannot be judged", "cannot be judged"
        ),
    ]
    text = listed([part for part in parts if part])
    basis = _basis(evidence)
    if not text:
        return f"No other method was tested; {basis}." if len(every) == 1 else f"No method fails; {basis}."
    return f"{text}; {basis}."


def _clause(judgements: Sequence[TriggerJudgement], one: str, several: str) -> str:
    names = [judgement.entrant.label for judgement in judgements]
    if not names:
        return ""
    methods = listed(names) if len(names) <= 8 else few(names)
    return f"{methods} {one if len(names) == 1 else several}"


def _basis(evidence: Evidence) -> str:
    graded, planted = graded_triggers(evidence), triggers_of(evidence)
    text = (
        f"this rests on {count(images_graded(evidence), 'poisoned image')}, {count(len(graded), 'trigger')} and "
        f"{count(len(manifest(evidence).seeds), 'seed')}"
    )
    left_out = [trigger.label for trigger in planted if trigger not in graded]
    if not left_out:
        return text
    was = "was" if len(left_out) == 1 else "were"
    return f"{text}, and {few(left_out)} {was} not graded because the attack did not work"


def _nothing_graded(evidence: Evidence) -> Verdict:
    """Why no method can be judged: a map can only show a trigger that the model uses."""
    planted = triggers_of(evidence)
    example = f"{planted[0].label} ({grading(evidence, planted[0].name).first_reason})"
    attacks = (
        f"the attack with {example} did not work"
        if len(planted) == 1
        else f"none of {len(planted)} attacks worked well enough, for example not with {example}"
    )
    return Verdict(
        f"No method can be judged on {evidence.models[0].label}, because {attacks}.",
        "A method can only be asked to find a trigger on which the model relies: the section on the attack has the "
        "numbers, and more training, more poisoned images or a larger trigger may help.",
    )


def _nothing_defined(evidence: Evidence) -> Verdict:
    return Verdict(
        f"No method can be judged on {evidence.models[0].label}, because none has both a defined overlap and a defined "
        "recovery.",
        "The tables of detection give the reasons.",
    )
