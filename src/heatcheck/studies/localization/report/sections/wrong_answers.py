"""What maps show where the model is wrong, and whether anything known without the truth warns of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.block import Prose, Table, bullets, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, grouped, labelled
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import MISSING, SCORE, Unit, difference_of, listed, number
from heatcheck.report.page import Section
from heatcheck.studies.localization.report.facts import best_first
from heatcheck.studies.localization.vocabulary import (
    BEYOND_PROBABILITY,
    COUNT,
    MAP_FEATURES,
    OPERATING_POINT,
    PROBABILITY,
    TESTED,
    WARNING,
    Calls,
)

FEATURES = {
    "agreement": "agreement with the other methods",
    "concentration": "share of its heat in its hottest tenth",
}
ANSWERS = {
    Calls.FOUND: "Found",
    Calls.FALSE_ALARM: "False alarm",
    Calls.MISSED: "Missed",
    Calls.CLEARED: "Rightly cleared",
}
_NONE = {
    Calls.FOUND: "no finding was found",
    Calls.FALSE_ALARM: "there was no false alarm",
    Calls.MISSED: "no finding was missed",
    Calls.CLEARED: "no image was rightly cleared",
}
CHOSEN = {
    Calls.ON_SPEC: "given in the spec",
    Calls.ON_VALIDATION: "chosen on the validation data (highest sensitivity + specificity)",
    Calls.ON_RUN: "chosen on these cases (highest sensitivity + specificity), which it fits a little too well",
}
_CHANCE = 0.5  # the AUROC of a feature that says nothing


QUESTION = (
    "In use nobody knows whether an answer is right. A map helps there only if something about it, known without the "
    "truth, warns of a wrong answer. The model\u2019s own probability is the measure: it costs nothing."
)
WARNS = (
    "AUROC for \u201cthis answer is wrong\u201d among the answers of one kind, within findings, over those with enough "
    "right and wrong answers; 0.5 is chance, and below it the feature warns the other way round. All features are "
    "corrected together; a warning matters from 0.6 (or below 0.4) on. “Beyond probability” is the AUROC less "
    "that of the probability on the same answers."
)
TAKEN = (
    "Agreement: the mean rank correlation of a map with those of the other methods, not below 0. Share of heat: 10 % "
    "for a map without any hot spot, 100 % for one with all its heat in a tenth of the image. Both are taken on copies "
    "of at most 64 \u00d7 64 pixels. Means by answer support no claim."
)


def wrong_answers(evidence: Evidence) -> Section | None:
    """The section on wrong answers; None when the run has no operating point."""
    points = [(row, facts) for row, facts in evidence.rows(OPERATING_POINT)]
    if not points:
        return None
    sources = dict.fromkeys(CHOSEN.get(facts.get("fitted_on", ""), "") for row, facts in points if not row.reason)
    missed = tables([_found_and_missed(evidence, metric) for metric in TESTED if metric in evidence.metrics])
    sentences, warns = list(_sentences(evidence)), _warns(evidence)
    chosen = listed([source for source in sources if source])
    calls = _calls(evidence, [row for row, _ in points])
    blocks = (
        Prose(QUESTION),
        *bullets(sentences),
        *((Prose(WARNS), Table(warns)) if warns else ()),
        *prose("Where the finding is there: does the map point at it although the model says no?" if missed else ""),
        *missed,
        *fold(
            "The model\u2019s answers, and the features of maps by answer",
            (
                Prose(f"The probability from which on the model says yes was {chosen}.", small=True),
                Table(calls),
                *tables([_feature(evidence, name) for name in MAP_FEATURES]),
                Prose(TAKEN, small=True),
            ),
        ),
    )
    summary = sentences[0] if sentences else ""
    return Section("wrong_answers", "Does a map warn of a wrong answer?", "Wrong answers", blocks, summary)


def _calls(evidence: Evidence, points: Sequence[Estimate]) -> Matrix:
    """Findings against the model's answers."""
    rows = []
    for point in points:
        counts = [evidence.under(call=call).value(COUNT, "answers", point.finding) for call in ANSWERS]
        cells = [Cell(MISSING if math.isnan(count) else f"{count:,.0f}") for count in counts]
        first = Cell(MISSING, title=point.reason) if point.reason else Cell(number(point.value, SCORE.rounded(2)))
        rows.append(labelled(point.finding, [first, *cells]))
    columns = (Column("Yes from"), *(Column(name, call) for call, name in ANSWERS.items()))
    return Matrix("The model’s answers", columns, (("", tuple(rows)),), (), "Finding")


def _found_and_missed(evidence: Evidence, metric: str) -> Matrix | None:
    """Methods against the score where the finding was found, where it was missed, and the difference."""
    notes, unit = Footnotes(), evidence.metrics[metric].unit
    found, missed = (evidence.under(call=call) for call in (Calls.FOUND, Calls.MISSED))
    versus = evidence.under(call=Calls.MISSED, versus=Calls.FOUND)
    rows = []
    for entrant in best_first(evidence):
        means = [view.find(MEAN, metric, ALL_FINDINGS, entrant.name) for view in (found, missed)]
        difference = versus.find(DIFFERENCE, metric, ALL_FINDINGS, entrant.name)
        if any(means):
            calls = (Calls.FOUND, Calls.MISSED)
            cells = [_cell(row, unit, notes, _why_none(evidence, call)) for row, call in zip(means, calls, strict=True)]
            why = " or ".join(dict.fromkeys(filter(None, (_why_none(evidence, call) for call in calls))))
            rows.append(Row(entrant, (*cells, _cell(difference, difference_of(unit), notes, why))))
    if not rows:
        return None
    columns = Column("Found"), Column("Missed"), Column("Missed minus found")
    return Matrix(f"{evidence.metrics[metric].label} by answer", columns, grouped(rows), tuple(notes.reasons))


def _warns(evidence: Evidence) -> Matrix | None:
    """Features against AUROCs: is a yes wrong, is a no wrong, and how much more than by probability."""
    if all(math.isnan(row.value) for row, _ in evidence.rows(WARNING)):
        return None
    notes, rows = Footnotes(), []
    views = {call: evidence.under(call=call) for call in (Calls.POSITIVE, Calls.NEGATIVE)}
    for label, name, method in _every_feature(evidence):
        cells = []
        for view in views.values():
            warning = view.find(WARNING, name, ALL_FINDINGS, method)
            beyond = view.find(BEYOND_PROBABILITY, name, ALL_FINDINGS, method)
            cells += [_auroc_cell(warning, notes)]
            cells += [Cell("reference") if name == PROBABILITY else _judged_cell(beyond, notes)]
        rows.append(labelled(label, cells))
    if not rows:
        return None
    columns = (
        Column("A yes is wrong", "AUROC"), Column("beyond probability", "difference of AUROCs"),
        Column("A no is wrong", "AUROC"), Column("beyond probability", "difference of AUROCs"),
    )  # fmt: skip
    caption = "Does it warn of a wrong answer?"
    return Matrix(caption, columns, (("", tuple(rows)),), tuple(notes.reasons), "Known without the truth")


def _every_feature(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    yield "The model’s probability, near the operating point", PROBABILITY, ""
    rows = {(row.metric, row.method) for row, _ in evidence.rows(WARNING)}
    for name in MAP_FEATURES:
        for entrant in best_first(evidence):
            if (name, entrant.name) in rows:
                yield f"{entrant.label}: low {FEATURES[name]}", name, entrant.name


def _auroc_cell(row: Estimate | None, notes: Footnotes) -> Cell:
    """The warning as an AUROC; the estimate is that less 0.5."""
    cell = _judged_cell(row, notes)
    if row is None or math.isnan(row.value):
        return cell
    shifted = replace(row, value=row.value + _CHANCE, low=row.low + _CHANCE, high=row.high + _CHANCE)
    plain = cell_of(shifted, SCORE, notes)
    return replace(plain, outcome=cell.outcome)


def _judged_cell(row: Estimate | None, notes: Footnotes) -> Cell:
    """The estimate as a difference, with what it shows."""
    return cell_of(row and replace(row, statistic=DIFFERENCE), difference_of(SCORE), notes)


def _feature(evidence: Evidence, name: str) -> Matrix | None:
    """One feature's mean by answer, method by method."""
    notes, rows = Footnotes(), []
    for entrant in best_first(evidence):
        found = [evidence.under(call=call).find(MEAN, name, ALL_FINDINGS, entrant.name) for call in ANSWERS]
        if any(found):
            cells = [
                _cell(row, SCORE, notes, _why_none(evidence, call)) for row, call in zip(found, ANSWERS, strict=True)
            ]
            rows.append(Row(entrant, tuple(cells)))
    if not rows:
        return None
    columns = tuple(Column(label, call) for call, label in ANSWERS.items())
    return Matrix(f"Mean {FEATURES[name]}, by answer", columns, grouped(rows), tuple(notes.reasons))


def _cell(row: Estimate | None, unit: Unit, notes: Footnotes, why_none: str) -> Cell:
    """The estimate, or the reason why there is none."""
    if row is None and why_none:
        return Cell(MISSING, title=why_none, note=notes.mark(why_none))
    return cell_of(row, unit, notes)


def _why_none(evidence: Evidence, call: str) -> str:
    """That the model gave no such answer; empty where it gave some, or where nothing was counted."""
    rows = [row for row, facts in evidence.rows(COUNT) if row.metric == "answers" and facts.get("call") == call]
    return _NONE.get(call, "") if rows and not any(row.value for row in rows) else ""


def _sentences(evidence: Evidence) -> Iterator[str]:
    labels = {entrant.name: entrant for entrant in evidence.methods}
    for call, wrong in ((Calls.POSITIVE, "a yes is wrong"), (Calls.NEGATIVE, "a no is wrong")):
        view = evidence.under(call=call)
        rows = [row for row, facts in evidence.rows(WARNING) if facts.get("call") == call]
        judged = [row for row in rows if not math.isnan(row.value)]
        if not judged:
            why = rows[0].reason if rows else "it was not judged"
            yield f"Whether anything warns that {wrong} cannot be said: {why}."
            continue
        own = view.find(WARNING, PROBABILITY, ALL_FINDINGS)
        yield f"That {wrong}: the model’s own probability {_warning_words(own)}."
        of_maps = [row for row in judged if row.metric != PROBABILITY]
        if of_maps:
            yield f"That {wrong}: {_of_maps(view, of_maps, labels)}."


def _warning_words(row: Estimate | None) -> str:
    if row is None or math.isnan(row.value):
        return "was not judged"
    judgement = judgement_of(row)
    words = "clearly warns" if judgement.is_yes else "does not warn" if judgement.is_no else "is not shown to warn"
    return f"{words} (AUROC {number(row.value + _CHANCE, SCORE.rounded(2))})"


def _of_maps(view: Evidence, judged: Sequence[Estimate], labels: Mapping[str, Entrant]) -> str:
    """Which features of maps warn, and which of these warn better than the probability."""
    warns = [row for row in judged if judgement_of(row).is_yes]
    reverse = [row for row in judged if opposite_of(row).is_yes]
    parts = []
    if warns:
        parts.append(f"of the maps, low {listed([_named(row, labels) for row in warns])} clearly warns")
    if reverse:
        parts.append(f"of the maps, high {listed([_named(row, labels) for row in reverse])} clearly warns")
    if not parts:
        return f"no feature of the maps ({len(judged)} tried) is shown to warn better than chance"
    beyond = [view.find(BEYOND_PROBABILITY, row.metric, ALL_FINDINGS, row.method) for row in warns]
    better = [row for row in beyond if row and judgement_of(row).is_yes]
    more = (
        f"{listed([_named(row, labels) for row in better])} clearly better than the probability does" if better else ""
    )
    return "; ".join([*parts, more or "none is shown to warn better than the probability does"])


def _named(row: Estimate, labels: Mapping[str, Entrant]) -> str:
    name = labels[row.method].label if row.method in labels else row.method
    return f"{row.metric} ({name})"
