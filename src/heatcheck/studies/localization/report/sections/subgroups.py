"""Scores, AUROC and floors by group of cases, and which groups clearly differ from the largest."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, DIFFERENCE, MEAN, TEST, Statistic
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.block import Block, Heading, Prose, bullets, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, grouped, labelled
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, count, difference_of, listed
from heatcheck.report.page import Section
from heatcheck.studies.localization.report.facts import best_first
from heatcheck.studies.localization.report.standing import NAMES, standing_on
from heatcheck.studies.localization.vocabulary import COUNT, NOT_STATED, TESTED, Counts


@dataclass(frozen=True, slots=True)
class Group:
    """One group of cases with its evidence: means and AUROC, and differences from the largest group."""

    name: str
    images: int
    patients: int
    own: Evidence
    versus: Evidence

    @property
    def column(self) -> Column:
        """The head of the group's column."""
        return Column(self.name, f"{count(self.images, 'image')}, {count(self.patients, 'patient')}")


@dataclass(frozen=True, slots=True)
class Division:
    """The groups of one column, and the largest of those that are stated."""

    column: str
    groups: tuple[Group, ...]
    largest: str

    @property
    def stated(self) -> list[Group]:
        """The groups of cases whose fact is known."""
        return [group for group in self.groups if group.name != NOT_STATED]

    @property
    def smallest(self) -> Group:
        """The group with the fewest patients."""
        return min(self.groups, key=lambda group: (group.patients, group.images))


QUESTION = (
    "A mean over all patients can hide a group in which maps or model fail. Each group has its own means, intervals "
    "and floors. A group is compared with the largest of its column, over all findings that both have; differences are "
    "claimed by size and corrected interval, as everywhere on this page. Groups differ in more than the column that "
    "names them: a difference is no proof that it is the cause."
)
NONE_SHOWN = (
    "For the leading method and for the model, no group is shown to differ from the largest. That is no proof that "
    "they are alike: small groups have wide intervals."
)


def subgroups(evidence: Evidence) -> Section | None:
    """The section on groups of cases; None when the run was not asked for any."""
    divisions = divisions_of(evidence)
    if not divisions:
        return None
    families = {row.family: None for row, facts in evidence.rows(DIFFERENCE) if "subgroup" in facts and row.family}
    differing = [sentence for division in divisions for sentence in clear_differences(evidence, division)]
    blocks = (
        Prose(QUESTION),
        Prose(f"Smallest group of each column: {_smallest(divisions)}."),
        *(bullets(differing) or (Prose(NONE_SHOWN),)),
        *(block for division in divisions for block in _division_blocks(evidence, division)),
        *prose(f"Corrected together: {'; '.join(families)}." if families else "", small=True),
    )
    summary = differing[0] if differing else "No group is shown to differ from the largest."
    return Section("subgroups", "Does it hold in every group of patients?", "Subgroups", blocks, summary)


def divisions_of(evidence: Evidence) -> list[Division]:
    """The columns that the run was divided by, in its order."""
    names: dict[str, dict[str, None]] = {}
    for _, facts in evidence.rows(COUNT):
        if "subgroup" in facts and "group" in facts:
            names.setdefault(facts["subgroup"], {}).setdefault(facts["group"], None)
    return [_division(evidence, column, list(groups)) for column, groups in names.items()]


def _division(evidence: Evidence, column: str, names: list[str]) -> Division:
    versus = {facts["versus"] for row, facts in evidence.rows(DIFFERENCE) if facts.get("subgroup") == column}
    largest = next(iter(versus), "")
    groups = []
    for name in names:
        own = evidence.under(subgroup=column, group=name)
        images, patients = (own.value(COUNT, metric, ALL_FINDINGS) for metric in (Counts.IMAGES, Counts.PATIENTS))
        versus_largest = evidence.under(subgroup=column, group=name, versus=largest)
        groups.append(Group(name, round(images), round(patients), own, versus_largest))
    return Division(column, tuple(groups), largest)


def _division_blocks(evidence: Evidence, division: Division) -> tuple[Block, ...]:
    """The groups of one column: AUROC and means, and behind folds the differences and single findings."""
    metrics = [metric for metric in TESTED if metric in evidence.metrics]
    leader = next(iter(best_first(evidence)), None)
    means = [_means(evidence, division, metric) for metric in metrics]
    floors = [_tests(evidence, division, metric) for metric in metrics]
    differences = [_differences(evidence, division, metric) for metric in metrics]
    each = [_by_finding(evidence, division, metric, leader) for metric in metrics] if leader else []
    not_stated = next((group.images for group in division.groups if group.name == NOT_STATED), 0)
    gap = f"Of {not_stated} images it is not stated; they are a group of their own and are compared with none."
    single = tables([*each, _auroc_by_finding(evidence, division)])
    only = Prose("Intervals only: no difference between groups is claimed on a single finding.", small=True)
    versus = f"Differences from {division.largest}, the largest group, and distance" if division.largest else "Distance"
    return (
        Heading(f"By {division.column}"),
        *prose(gap if not_stated else "", small=True),
        *tables([_auroc(division), *means]),
        *fold(f"{versus} from the best floor of each group", tables([*differences, *floors])),
        *fold("Finding by finding", (only, *single) if single else ()),
    )


def _means(evidence: Evidence, division: Division, metric: str) -> Matrix | None:
    """Readers, methods and floors against groups, over all findings."""
    notes, unit = Footnotes(), evidence.metrics[metric].unit
    rows = []
    for entrant in (evidence.readers, *best_first(evidence), *evidence.floors):
        found = [group.own.find(MEAN, metric, ALL_FINDINGS, entrant.name) for group in division.groups]
        if any(found):
            rows.append(Row(entrant, tuple(cell_of(row, unit, notes) for row in found)))
    return _matrix(f"{evidence.metrics[metric].label} by {division.column}", division.groups, rows, notes)


def _tests(evidence: Evidence, division: Division, metric: str) -> Matrix | None:
    """Methods against groups: the distance from the best floor of the group."""
    notes, unit = Footnotes(), difference_of(evidence.metrics[metric].unit)
    labels = {floor.name: floor.label for floor in evidence.floors}
    best = [_tested_floor(group, metric) for group in division.groups]
    rows = []
    for entrant in best_first(evidence):
        pairs = zip(division.groups, best, strict=True)
        found = [group.own.find(TEST, metric, ALL_FINDINGS, entrant.name, floor) for group, floor in pairs]
        if any(found):
            rows.append(Row(entrant, tuple(cell_of(row, unit, notes) for row in found)))
    caption = f"{evidence.metrics[metric].label} by {division.column}: method minus the best floor of the group"
    if not rows:
        return None
    columns = tuple(
        Column(group.name, labels.get(floor, floor)) for group, floor in zip(division.groups, best, strict=True)
    )
    return Matrix(caption, columns, grouped(rows), tuple(notes.reasons))


def _tested_floor(group: Group, metric: str) -> str:
    keys = (key for key in group.own.estimates if key[:3] == (TEST, metric, ALL_FINDINGS))
    return next((key[4] for key in keys), "")


def _differences(evidence: Evidence, division: Division, metric: str) -> Matrix | None:
    """Methods against groups: the group less the largest one."""
    notes, unit = Footnotes(), difference_of(evidence.metrics[metric].unit)
    compared = [group for group in division.stated if group.name != division.largest]
    rows = []
    for entrant in best_first(evidence):
        found = [group.versus.find(DIFFERENCE, metric, ALL_FINDINGS, entrant.name) for group in compared]
        if any(found):
            rows.append(Row(entrant, tuple(cell_of(row, unit, notes) for row in found)))
    caption = f"{evidence.metrics[metric].label} by {division.column}: group minus {division.largest}"
    return _matrix(caption, compared, rows, notes)


def _auroc(division: Division) -> Matrix | None:
    """The model's AUROC in each group, and how it differs from that in the largest."""
    notes = Footnotes()
    values = [group.own.find(AUROC, "auroc", ALL_FINDINGS) for group in division.groups]
    if not any(values):
        return None
    rows = [labelled("AUROC", [cell_of(row, SCORE, notes) for row in values])]
    differences = [group.versus.find(DIFFERENCE, "auroc", ALL_FINDINGS) for group in division.groups]
    if any(differences):
        cells = [
            Cell("") if group.name in {division.largest, NOT_STATED} else cell_of(row, difference_of(SCORE), notes)
            for group, row in zip(division.groups, differences, strict=True)
        ]
        rows.append(labelled(f"minus that of {division.largest}, on findings with enough patients in both", cells))
    return _matrix(f"AUROC of the model by {division.column}", division.groups, rows, notes, corner="Model")


def _by_finding(evidence: Evidence, division: Division, metric: str, entrant: Entrant) -> Matrix | None:
    """One method's findings against groups."""
    caption = f"{evidence.metrics[metric].label} of {entrant.label} by {division.column} and finding"
    return _findings(evidence, division, (MEAN, metric, entrant.name), caption)


def _auroc_by_finding(evidence: Evidence, division: Division) -> Matrix | None:
    return _findings(evidence, division, (AUROC, "auroc", ""), f"AUROC by {division.column} and finding")


def _findings(evidence: Evidence, division: Division, what: tuple[Statistic, str, str], caption: str) -> Matrix | None:
    (statistic, metric, method), notes = what, Footnotes()
    unit = evidence.metrics[metric].unit if metric in evidence.metrics else SCORE
    rows = []
    for finding in evidence.findings:
        found = [group.own.find(statistic, metric, finding, method) for group in division.groups]
        if any(found):
            rows.append(labelled(finding, [cell_of(row, unit, notes) for row in found]))
    return _matrix(caption, division.groups, rows, notes, corner="Finding")


def _matrix(
    caption: str, groups: "list[Group] | tuple[Group, ...]", rows: list[Row], notes: Footnotes, corner: str = "Method"
) -> Matrix | None:
    if not rows or not groups:
        return None
    body = grouped(rows) or (("", tuple(rows)),)
    return Matrix(caption, tuple(group.column for group in groups), body, tuple(notes.reasons), corner)


def clear_differences(evidence: Evidence, division: Division) -> Iterator[str]:
    """The groups in which the leading method, or the model, is clearly better or worse than in the largest."""
    measures: dict[str, tuple[str, str]] = {"auroc": ("", "the model’s AUROC")}
    for metric in TESTED:
        standing = standing_on(evidence, metric)
        if standing:
            measures[metric] = standing.leader.name, f"the {NAMES[metric]} of {standing.leader.label}"
    for metric, (method, name) in measures.items():
        for group in division.stated:
            row = group.versus.find(DIFFERENCE, metric, ALL_FINDINGS, method)
            word = _direction(row)
            if word:
                where = f"where {division.column} is {group.name}", f"where it is {division.largest}"
                yield f"{name[0].upper()}{name[1:]} is clearly {word} {where[0]} than {where[1]}."


def _direction(row: Estimate | None) -> str:
    if row is None or math.isnan(row.size):
        return ""
    return "higher" if judgement_of(row).is_yes else "lower" if opposite_of(row).is_yes else ""


def _smallest(divisions: list[Division]) -> str:
    groups = [
        f"{division.column} {division.smallest.name} ({count(division.smallest.patients, 'patient')}, "
        f"{count(division.smallest.images, 'image')})"
        for division in divisions
    ]
    return listed(groups)
