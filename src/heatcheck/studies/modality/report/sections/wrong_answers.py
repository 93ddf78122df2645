"""What maps show where the network is wrong, and whether anything known without the truth warns of it."""

import math
from collections.abc import Iterator
from dataclasses import replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN, condition_of
from heatcheck.judging.judgement import Answer, judgement_of, opposite_of
from heatcheck.report.blocks.block import Fold, Prose, Table, bullets, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, grouped, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, Unit, count, few, listed
from heatcheck.report.page import Section
from heatcheck.report.verdict import would_decide
from heatcheck.studies.modality.report.facts import is_defined, manifest
from heatcheck.studies.modality.vocabulary import ANSWERS, MAP_FEATURES, PROBABILITY, WARNING

LABELS = {"agreement": "low agreement with the other methods", "concentration": "little heat in its hottest tenth"}
MEANS = {
    "msfi": "MSFI",
    "lesion_share": "Share in the lesion",
    "agreement": "Agreement with the other methods",
    "concentration": "Share of the heat in the hottest tenth",
}
OPEN = "Whether"  # begins the sentence where nothing can be said
CHANCE = 0.5  # the AUROC of a feature that says nothing
_CALLS = ("right", "wrong")


WHY = (
    "In use nobody knows whether an answer is right. A map helps there only if something about it, known without the "
    "truth, warns of a wrong answer. A wrong answer that names a class is a false positive of that class, and misses "
    "another."
)
HOW = (
    "AUROC for \u201cthis answer is wrong\u201d: 0.5 is chance, and below it the feature warns the other way round. "
    "Intervals draw patients and hold for all features and kinds of answer together; a warning matters from 0.6 on. "
    "Agreement is the mean rank correlation of a map with those of the other methods; a map without any hot spot has "
    "10 % of its heat in its hottest tenth. Both are taken on small copies of all modalities."
)


def wrong_answers(evidence: Evidence) -> Section | None:
    """What warns of a wrong answer; None where the run does not say which answers are wrong."""
    if not any(is_defined(_row(evidence, ANSWERS, "answers", ALL_FINDINGS, call=call)) for call in _CALLS):
        return None
    said, warns = sentences(evidence), warning_table(evidence)
    blocks = (
        *prose(WHY),
        *bullets(said),
        *((Prose(HOW, small=True), Table(warns)) if warns else ()),
        *_by_answer(evidence),
    )
    title = "Does anything warn of a wrong answer?"
    return Section("wrong_answers", title, "Wrong answers", blocks, said[0 if said[1].startswith(OPEN) else 1])


def _by_answer(evidence: Evidence) -> tuple[Fold, ...]:
    """What the maps show on right and on wrong answers."""
    matrices = [table for metric in MEANS if (table := _means(evidence, metric))]
    note = prose(
        "Means by answer, with intervals for each mean alone; they support no claim. Maps explain the class that the "
        "network names.",
        small=True,
    )
    return fold("What the maps show on right and on wrong answers", (*note, *tables(matrices)) if matrices else ())


def _row(
    evidence: Evidence, statistic: str, metric: str, finding: str, method: str = "", call: str = ""
) -> Estimate | None:
    """An estimate of the answers of one kind."""
    rows = evidence.slices.get((evidence.primary, condition_of({"call": call} if call else {})), {})
    return next((row for key, row in rows.items() if key[:4] == (statistic, metric, finding, method)), None)


def _kinds(evidence: Evidence) -> list[str]:
    return [ALL_FINDINGS, *manifest(evidence).classes]


def _number(evidence: Evidence, finding: str, call: str) -> int:
    row = _row(evidence, ANSWERS, "answers", finding, call=call)
    return round(row.value) if row and is_defined(row) else 0


def sentences(evidence: Evidence) -> list[str]:
    """How many answers are wrong, what clearly warns of it, and what does so the other way round."""
    return list(_sentences(evidence))


def _sentences(evidence: Evidence) -> Iterator[str]:
    right, wrong = (_number(evidence, ALL_FINDINGS, call) for call in _CALLS)
    parts = []
    for name in manifest(evidence).classes:
        every = count(sum(_number(evidence, name, call) for call in _CALLS), "answer")
        parts.append(f"{_number(evidence, name, 'wrong')} of {every} \u201c{name}\u201d")
    yield f"{wrong} of {count(right + wrong, 'answer')} are wrong: {listed(parts)}."
    rows = [(label, row) for label, row in _features(evidence, ALL_FINDINGS) if row]
    decided = [(label, row) for label, row in rows if is_defined(row) and not math.isnan(row.low)]
    if not decided:
        reason = next((row.reason for _, row in rows if row.reason), "no feature has a value")
        yield f"{OPEN} anything warns of a wrong answer cannot be said: {reason}."
        return
    warn = [label for label, row in decided if judgement_of(row).is_yes]
    turned = [label for label, row in decided if opposite_of(row).is_yes]
    yield (
        f"Of a wrong answer clearly {'warns' if len(warn) == 1 else 'warn'} {few(warn)}."
        if warn
        else "That anything known without the truth warns of a wrong answer is not shown."
    )
    if turned:
        yield f"The other way round than expected, beyond chance: {few(turned)}."


def _features(evidence: Evidence, finding: str) -> Iterator[tuple[str, Estimate | None]]:
    yield "a low probability of the answer", _row(evidence, WARNING, PROBABILITY, finding)
    for name in MAP_FEATURES:
        for method in evidence.methods:
            row = _row(evidence, WARNING, name, finding, method.name)
            if row:
                yield f"{method.label}: {LABELS[name]}", row


def warning_table(evidence: Evidence) -> Matrix | None:
    """Features against AUROCs: of all answers, and of those that name each class."""
    columns = {finding: dict(_features(evidence, finding)) for finding in _kinds(evidence)}
    if not any(row and is_defined(row) for column in columns.values() for row in column.values()):
        return None
    notes = Footnotes()
    rows = [
        labelled(label[0].upper() + label[1:], [_auroc_cell(column.get(label), notes) for column in columns.values()])
        for label in columns[ALL_FINDINGS]
    ]
    heads = [Column("Any answer is wrong", "AUROC", main=True)]
    heads += [Column(f"\u201c{name}\u201d is wrong", "AUROC") for name in manifest(evidence).classes]
    caption = "Does it warn of a wrong answer?"
    return Matrix(caption, tuple(heads), (("", tuple(rows)),), tuple(notes.reasons), "Known without the truth")


def _auroc_cell(row: Estimate | None, notes: Footnotes) -> Cell:
    """The warning as an AUROC, of which the estimate is what lies above 0.5."""
    if row is None or not is_defined(row):
        return cell_of(row, SCORE, notes)
    shifted = replace(row, value=row.value + CHANCE, low=row.low + CHANCE, high=row.high + CHANCE)
    words = {Answer.YES: "clearly warns", Answer.NO: "does not warn", Answer.OPEN: "not shown"}
    outcome = "clearly the other way round" if opposite_of(row).is_yes else words[judgement_of(row).answer]
    return replace(cell_of(shifted, SCORE, notes), outcome=", ".join(filter(None, [outcome, would_decide(row)])))


def _means(evidence: Evidence, metric: str) -> Matrix | None:
    """Methods against their mean where the network is right and where it is wrong, for all and each answer."""
    notes, rows, unit = Footnotes(), [], evidence.metrics[metric].unit if metric in evidence.metrics else SCORE
    kinds = [(finding, call) for finding in _kinds(evidence) for call in _CALLS]
    for method in evidence.methods:
        found = [_row(evidence, MEAN, metric, finding, method.name, call) for finding, call in kinds]
        if any(found):
            rows.append(Row(method, tuple(_mean_cell(row, unit, notes) for row in found)))
    if not rows:
        return None
    names = {ALL_FINDINGS: "Any answer"}
    heads = [
        Column(names.get(finding, f"\u201c{finding}\u201d"), f"{call}, n {_number(evidence, finding, call)}")
        for finding, call in kinds
    ]
    return Matrix(f"{MEANS[metric]}, by answer", tuple(heads), grouped(rows), tuple(notes.reasons))


def _mean_cell(row: Estimate | None, unit: Unit, notes: Footnotes) -> Cell:
    return cell_of(row, unit, notes) if row else Cell("")
