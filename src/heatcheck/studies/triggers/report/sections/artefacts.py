"""Artefacts that the images came with: do the maps mark them? Nothing was planted and nothing retrained."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Figures, Prose, Table, fold, prose
from heatcheck.report.blocks.matrix import Matrix
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, count, listed, number
from heatcheck.report.page import Section
from heatcheck.report.verdict import Verdict
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import TriggerRecord, manifest, span
from heatcheck.studies.triggers.report.plots import by_trigger as panels_by_trigger
from heatcheck.studies.triggers.report.plots import detection_keys
from heatcheck.studies.triggers.report.sections.sensitivity import RulePart, sensitivity, shown
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


_BELOW = "Below a number: its 95 % interval, its random-box floor and the area of the box."
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


def artefacts(evidence: Evidence) -> Section | None:
    """Whether the maps mark artefacts of the original images; None when none were given."""
    if not manifest(evidence).artefacts:
        return None
    main, *more = graded_artefacts(evidence)
    blocks = (
        Prose(
            "These images contain artefacts that have been outlined. Nothing was planted and no model was retrained: "
            "each method\u2019s box is compared with the outline."
        ),
        Prose(CAUTION),
        *(_scored(evidence, main, more) if main else prose(_none_yet(evidence))),
    )
    return Section("artefacts", "Artefacts in the original images", "Artefacts", blocks, in_short(evidence))


def graded_artefacts(evidence: Evidence) -> list[Graded | None]:
    """The tables of what the boxes overlap of the artefacts, the main one first."""
    given = _given(evidence)
    columns = (*((EVERY,) if len(given) > 1 else ()), *given)
    return [_graded(PART.under(evidence), metric, columns) for metric in _TITLES]


def _given(evidence: Evidence) -> tuple[TriggerRecord, ...]:
    return tuple(TriggerRecord(name, name) for name in manifest(evidence).artefacts)


def _scored(evidence: Evidence, main: Graded, more: Sequence[Graded | None]) -> tuple[Block, ...]:
    panels = tuple(panels_by_trigger(PART.under(evidence), MAIN, _given(evidence)))
    rules = sensitivity(evidence, PART)
    published = _published() if literature.is_own_data(evidence) else ""
    note = f"{main.sentence} {_BELOW} {published}".strip()
    return (
        *((Figures(panels, detection_keys(panels)),) if panels else ()),
        Table(main.table, main.title, note),
        *(block for each in more if each for block in _more(each)),
        *fold("Would another box rule change the result?", shown(rules) if rules else ()),
    )


def _more(graded: Graded) -> tuple[Block, ...]:
    return fold(f"More: {graded.title}", (Prose(graded.sentence, small=True), Table(graded.table, graded.title)))


def _none_yet(evidence: Evidence) -> str:
    return f"No artefact has been scored{'' if evidence.finished else ' yet'}."


def in_short(evidence: Evidence) -> str:
    """The mean overlaps of all methods with all artefacts, beside random boxes."""
    overlap, chance = _overlaps(evidence)
    return f"Mean overlap with their outlines (mask IoU) {overlap}{chance}." if overlap else _none_yet(evidence)


def overall(evidence: Evidence) -> Panel | None:
    """The overlap with all artefacts, method by method; None where nothing was scored."""
    panels = panels_by_trigger(PART.under(evidence), MAIN, (EVERY,))
    return Panel(evidence.metrics[MAIN].label, panels[0].plot) if panels else None


def artefact_verdict(evidence: Evidence) -> Verdict:
    """The verdict of a run in which nothing was planted."""
    names = manifest(evidence).artefacts
    if not names:
        return Verdict(
            "There is no verdict, because the run planted no trigger.", "The section on the record says what it did."
        )
    overlap, chance = _overlaps(evidence)
    mean = f"{overlap} (mean IoU{chance})"
    found = f": in this network, their outlines were overlapped by {mean}" if overlap else ""
    return Verdict(
        f"No trigger was planted, so this run cannot say which methods find what {evidence.models[0].label} relies on.",
        f"Its maps were compared with {count(len(names), 'kind')} of artefact in the original images{found}.",
    )


def _overlaps(evidence: Evidence) -> tuple[str, str]:
    """The lowest and the highest mean overlap, and those of random boxes; empty where there is none.

    One network supports no claim about a method.
    """
    of_artefacts = PART.under(evidence)
    rows, floors = (
        [of_artefacts.value(MEAN, metric, ALL_FINDINGS, method.name) for method in evidence.methods]
        for metric in (MAIN, floor_of(MAIN))
    )
    if all(map(math.isnan, rows)):
        return "", ""
    unit = SCORE.rounded(2)
    chance = "" if all(map(math.isnan, floors)) else f", random boxes of the same size {span(floors, unit)}"
    return span(rows, unit), chance


def _graded(evidence: Evidence, metric: str, columns: Sequence[TriggerRecord]) -> Graded | None:
    table = by_trigger(evidence, metric, columns)
    return Graded(*_TITLES[metric], table) if table else None


def _published() -> str:
    figures = [
        f"{each.method} {number(each.value, SCORE.rounded(2))} on {each.subject}"
        for each in literature.reported("artefact_iou")
    ]
    return f"Published ({literature.SOURCE}, single images): {listed(figures)}."
