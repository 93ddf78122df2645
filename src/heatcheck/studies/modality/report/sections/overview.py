"""At a glance: what the criterion says of every method, and what the words mean."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, interval, number
from heatcheck.studies.modality.report.facts import masks_in_words, needs_images
from heatcheck.studies.modality.report.judgement import (
    BOTH,
    CLEARLY,
    LESION,
    MARKS_IT,
    MODALITY,
    NAMES_IT,
    NEITHER,
    UNKNOWN,
    ModalityJudgement,
    judgements,
)
from heatcheck.studies.modality.vocabulary import UNIFORM

SIGNS = {BOTH: "✓", LESION: "◐", MODALITY: "◐", NEITHER: "✕", UNKNOWN: "?"}
TERMS = ("mi_correlation", "msfi", "lesion_share", "delta_aupc")
_UNIT = SCORE.rounded(2)
NOISE = (
    "No modality clearly helps this network, so its importances may be chance and the table below says nothing about "
    "the methods."
)
FLOOR = (
    "A map that is the same everywhere inside the head. Its score depends on the size of the lesion alone; a map that "
    "does no better does not show where the lesion is."
)
INTERVAL = (
    "The range in which the true value plausibly lies, given the number of patients: patients are resampled. It covers "
    "other patients, not another training of the network."
)


@dataclass(frozen=True, slots=True)
class ModalityVerdictRow:
    """A row of the table: outcome and reasons in words."""

    entrant: Entrant
    sign: str
    outcome: str
    names: str
    marks: str


def overview(evidence: Evidence) -> Mapping[str, object] | None:
    """The content of the first section; None when there is no method."""
    judged = judgements(evidence)
    if not judged:
        return None
    terms = [(evidence.metrics[m].label, evidence.metrics[m].summary)
             for m in TERMS if m in evidence.metrics]  # fmt: skip
    lesion = ("Lesion", f"In this run: {masks_in_words(evidence)}.")
    return {
        "rows": [_row(evidence, one) for one in judged if one.outcome != UNKNOWN],
        "unjudged": [one.entrant.label for one in judged if one.outcome == UNKNOWN],
        "criterion": (NAMES_IT, MARKS_IT),
        "clearly": CLEARLY,
        "noise": "" if needs_images(evidence) else NOISE,
        "terms": [*terms, lesion, ("Uniform map", FLOOR), ("Interval", INTERVAL)],
    }


def _row(evidence: Evidence, judgement: ModalityJudgement) -> ModalityVerdictRow:
    floor = evidence.value(MEAN, "msfi", ALL_FINDINGS, UNIFORM)
    names = (
        "no: one map for all modalities"
        if judgement.shares
        else f"{_yes(judgement.names)}: {_value(judgement.correlation)}"
    )
    against = f" against {number(floor, _UNIT)}" if not math.isnan(floor) else ""
    msfi = number(judgement.msfi.value if judgement.msfi else math.nan, _UNIT)
    marks = f"{_yes(judgement.marks)}: {msfi}{against}"
    return ModalityVerdictRow(judgement.entrant, SIGNS[judgement.outcome], judgement.outcome, names, marks)


def _yes(clear: bool | None) -> str:
    return "yes" if clear else "not clearly"


def _value(row: Estimate | None) -> str:
    if row is None:
        return number(math.nan)
    between = interval(row.low, row.high, _UNIT)
    return number(row.value, _UNIT) + (f" ({between})" if between else "")
