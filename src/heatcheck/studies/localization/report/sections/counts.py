"""What was counted: images, patients and outlines by finding, next to the published test set."""

import math

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.report.blocks.block import Block, Prose, Table, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, grouped, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, listed
from heatcheck.report.page import Section
from heatcheck.report.published import with_rows
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.facts import every_finding, finding_columns
from heatcheck.studies.localization.vocabulary import COUNT, Counts

COUNTED = {
    Counts.IMAGES: "Images",
    Counts.EXAMINATIONS: "Studies (examinations)",
    Counts.PATIENTS: "Patients",
    Counts.POSITIVES: "Images with the finding (label)",
    Counts.ANNOTATED: "Images with an outline",
    Counts.SEGMENTATIONS: "Outlines by the experts",
    Counts.SEGMENTATIONS_BY_READER: "Outlines by the readers",
    Counts.READERS: "Readers",
    Counts.WITHOUT_FINDING: "Images without any finding",
}


EMPTY = (
    "A map with the same value everywhere points nowhere. On a finding that is there it is a failure, not a gap; on an "
    "image without the finding it marks nothing, as it should."
)


SUMMED = {Counts.IMAGES: "images", Counts.PATIENTS: "patients", Counts.SEGMENTATIONS: "true outlines"}


def counts(evidence: Evidence) -> Section | None:
    """The section on the test set; None when the run counted nothing."""
    names = [name for name in every_finding(evidence) if _is_counted(evidence, name)]
    shown = {m: label for m, label in COUNTED.items() if any(_count(evidence, m, name) for name in names)}
    if not shown:
        return None
    rows = [
        labelled(label, [Cell(_count(evidence, m, name) or MISSING) for name in names]) for m, label in shown.items()
    ]
    table = Matrix("What was counted", finding_columns(names), (("This run", tuple(rows)),), (), "Number of")
    printed = _published(names) if literature.is_own_data(evidence) else []
    published = with_rows(table, printed, Footnotes(), literature.SOURCE)
    blocks = (
        Prose(
            "Every number on this page rests on these images. A finding with few outlines allows few conclusions, "
            "however good its mean looks."
        ),
        Table(published),
        *_empty_blocks(evidence),
        *prose(literature.caveat_of(evidence, [published]), small=True),
    )
    totals = [f"{number} {words}" for key, words in SUMMED.items() if (number := _count(evidence, key, ALL_FINDINGS))]
    return Section("counts", "What was looked at", "Counts", blocks, f"{listed(totals)}." if totals else "")


def _empty_blocks(evidence: Evidence) -> tuple[Block, ...]:
    """How many maps were empty, by method; that none was, where none was."""
    empty, shown = _empty_maps(evidence), _shown_maps(evidence)
    if empty:
        return (Prose(EMPTY), Table(empty))
    return prose(f"None of the {shown:,} maps of the methods is empty (the same value everywhere)." if shown else "")


def _empty_maps(evidence: Evidence) -> Matrix | None:
    """Empty maps of all maps of outlined findings, and of all maps; None where no map is empty."""
    names = every_finding(evidence)
    heads = [*((name, Counts.FAILED_MAPS) for name in names), (ALL_FINDINGS, Counts.EMPTY_MAPS)]
    rows = [
        Row(entrant, tuple(_share(evidence.find(COUNT, metric, name, entrant.name)) for name, metric in heads))
        for entrant in (*evidence.methods, *evidence.floors)
        if evidence.value(COUNT, Counts.EMPTY_MAPS, ALL_FINDINGS, entrant.name) > 0
    ]
    if not rows:
        return None
    columns = (*finding_columns(names), Column("All maps", "with and without the finding"))
    return Matrix("Empty maps of outlined findings", columns, grouped(rows), ())


def _share(row: Estimate | None) -> Cell:
    return Cell(f"{row.value:,.0f} of {row.n_cases:,}") if row else Cell(MISSING, title="no map was counted")


def _shown_maps(evidence: Evidence) -> int:
    """How many maps were looked at for being empty; 0 where a run did not count them."""
    rows = (evidence.find(COUNT, Counts.EMPTY_MAPS, ALL_FINDINGS, entrant.name) for entrant in evidence.methods)
    return sum(row.n_cases for row in rows if row)


def _is_counted(evidence: Evidence, finding: str) -> bool:
    return any(evidence.find(COUNT, metric, finding) for metric in COUNTED)


def _count(evidence: Evidence, metric: str, finding: str) -> str:
    value = evidence.value(COUNT, metric, finding)
    return "" if math.isnan(value) else f"{round(value):,}"


def _published(names: list[str]) -> list[Row]:
    """The published test set: images in all, studies in all, and images with each finding."""
    totals = {"Images": "Number CXRs", "Studies": "Number studies", "Images without any": "No pathology identified"}
    rows = [
        labelled(label, [_cell(row if name == ALL_FINDINGS else "") for name in names], kind="published")
        for label, row in totals.items()
    ]
    positives = [_cell("" if name == ALL_FINDINGS else name) for name in names]
    if all(cell.text == MISSING for cell in positives):
        return []
    return [*rows, labelled("Images with the finding", positives, kind="published")]


def _cell(row: str) -> Cell:
    figure = literature.counted(row) if row else None
    return Cell(f"{round(figure.value):,}") if figure else Cell(MISSING, title="not published")
