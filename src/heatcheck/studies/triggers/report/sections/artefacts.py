"""Artefacts that the images came with: do the maps mark them? Nothing was planted and nothing retrained."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.matrix import Matrix
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, Unit, count, listed, number
from heatcheck.report.verdict import Verdict
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import TriggerRecord, manifest
from heatcheck.studies.triggers.report.plots import by_trigger as panels_by_trigger
from heatcheck.studies.triggers.report.sections.sensitivity import RulePart, sensitivity
from heatcheck.studies.triggers.report.tables import by_trigger
from heatcheck.studies.triggers.vocabulary import ARTEFACT, floor_of

MAIN = "trigger_mask_iou"  # artefacts come with an outline, so it is the outline that counts
EVERY = TriggerRecord(ALL_FINDINGS, "All artefacts")
PART = RulePart(ARTEFACT, EVERY, "artefacts", (MAIN, "trigger_iou", "box_area"))
CAUTION = (
    "It is not known whether the model uses such an artefact. A map that leaves it unmarked may be right, and one that "
    "marks it may be wrong: this shows whether a map would draw a reader\u2019s eye to the artefact, not whether the "
    "method is faithful."
)


@dataclass(frozen=True, slots=True)
class Graded:
    """A table with a title and an explanation that are worded for artefacts."""

    title: str
    sentence: str
    table: Matrix


_OUTLINE = (
    "The area that the detected box and the outlined artefact share, divided by the area either covers: 0 is no "
    "overlap, or nothing detected. No box matches a thin or slanted artefact, so even the best may stay far below 1."
)
_TITLES = {
    MAIN: ("Overlap with the artefact (mask IoU)", _OUTLINE),
    "trigger_iou": (
        "Overlap with the box around the artefact (IoU)",
        "The same, with the box around the artefact in place of its outline.",
    ),
    "uncovered": (
        "Uncovered share of the artefact",
        "The share of the outlined artefact that lies outside the detected box: 0 is best.",
    ),
}


def artefacts(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on artefacts shows; None when none were given."""
    names = manifest(evidence).artefacts
    if not names:
        return None
    of_artefacts = PART.under(evidence)
    given = tuple(TriggerRecord(name, name) for name in names)
    columns = (*((EVERY,) if len(given) > 1 else ()), *given)
    main, *more = (_graded(of_artefacts, metric, columns) for metric in _TITLES)
    return {
        "main": main,
        "panels": panels_by_trigger(of_artefacts, MAIN, given),
        "more": [graded for graded in more if graded],
        "sensitivity": sensitivity(evidence, PART),
        "caution": CAUTION,
        "published": _published(),
    }


def artefact_verdict(evidence: Evidence) -> Verdict:
    """The verdict of a run in which nothing was planted."""
    names = manifest(evidence).artefacts
    if not names:
        return Verdict(
            "There is no verdict, because the run planted no trigger.", "The section on the record says what it did."
        )
    return Verdict(
        f"No trigger was planted, so this run cannot say which methods find what {evidence.models[0].label} relies on.",
        f"Its maps were compared with {count(len(names), 'kind')} of artefact in the original images"
        f"{_overlaps(PART.under(evidence))}.",
    )


def _overlaps(evidence: Evidence) -> str:
    """The lowest and the highest mean overlap, beside random boxes: one network supports no claim about a method."""
    rows, floors = (
        [value for method in evidence.methods
         if not math.isnan(value := evidence.value(MEAN, metric, ALL_FINDINGS, method.name))]
        for metric in (MAIN, floor_of(MAIN))
    )  # fmt: skip
    if not rows:
        return ""
    unit = SCORE.rounded(2)
    chance = f", random boxes of the same size {_range(floors, unit)}" if floors else ""
    return f": in this network, their outlines were overlapped by {_range(rows, unit)} (mean IoU{chance})"


def _range(values: Sequence[float], unit: Unit) -> str:
    low, high = number(min(values), unit), number(max(values), unit)
    return high if low == high else f"{low} to {high}"


def _graded(evidence: Evidence, metric: str, columns: Sequence[TriggerRecord]) -> Graded | None:
    table = by_trigger(evidence, metric, columns)
    return Graded(*_TITLES[metric], table) if table else None


def _published() -> str:
    figures = [
        f"{each.method} {number(each.value, SCORE.rounded(2))} on {each.subject}"
        for each in literature.reported("artefact_iou")
    ]
    return f"Published ({literature.SOURCE}, single images): {listed(figures)}."
