"""The paper's first example: Grad-CAM on one network, unchanged, aligned and misaligned."""

from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Prose, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, SHARE, number
from heatcheck.report.page import Section
from heatcheck.report.published import figure_cell, has_published_rows, with_rows
from heatcheck.studies.alignment.report import literature
from heatcheck.studies.alignment.report.facts import (
    ARM_LABELS,
    Pipeline,
    map_estimate,
    network_estimate,
    on_paper_data,
    pipelines,
)
from heatcheck.studies.alignment.report.sections.prediction import PREDICTIONS
from heatcheck.studies.alignment.vocabulary import ARMS, DIRECTIONS

WORDS = {"base": "base", "control": "control", "align": "aligned (in-mask)", "misalign": "misaligned (out-mask)"}
COLUMNS = {
    "auroc": "AUROC",
    "mutual_information": "Mutual information with the label",
    "hit": "Hit rate",
    "iou": "Overlap (IoU)",
}


INTRO = (
    "The paper opens with an example: three versions of one DenseNet-121 predict about equally well, and yet Grad-CAM "
    "seems to localise far better in one than in another. A table of methods that names no model says little. The same "
    "numbers in this run:"
)
NOT_STUDIED = (
    "The published example is of Atelectasis and Enlarged Cardiomediastinum on CheXlocalize, which this run did not "
    "study."
)


def example(evidence: Evidence) -> Section | None:
    """The section; None when no network was tuned through Grad-CAM."""
    shown = [pipeline for pipeline in pipelines(evidence) if pipeline.method.name == literature.EXAMPLE_METHOD]
    found = [_table(evidence, pipeline) for pipeline in shown]
    if not found or not evidence.findings:
        return None
    other = [pipeline.base.label for pipeline in shown if pipeline.base.architecture != literature.EXAMPLE]
    which = f", which {', '.join(other)} is not" if other else ""
    published = f"{literature.caveat()} The published example is of DenseNet-121{which}."
    blocks: tuple[Block, ...] = (
        Prose(INTRO),
        *tables(found),
        *prose(published if has_published_rows(found) else NOT_STUDIED, small=True),
    )
    return Section("example", "The paper\u2019s example: Grad-CAM", "Grad-CAM", blocks, _summary(evidence, shown[0]))


def _summary(evidence: Evidence, pipeline: Pipeline) -> str:
    """The hit rates of the networks on the first finding."""
    finding = _findings(evidence)[0]
    rates = {arm: map_estimate(evidence, pipeline, arm, MEAN, "hit", finding) for arm in ("base", *DIRECTIONS)}
    parts = [f"{ARM_LABELS[arm]} {number(row.value, SHARE.rounded(0))}" for arm, row in rates.items() if row]
    return f"Hit rate on {finding} ({pipeline.base.label}): {', '.join(parts)}." if parts else ""


def _findings(evidence: Evidence) -> list[str]:
    """The findings of the published example, where the run has them, else all."""
    if not on_paper_data(evidence):
        return list(evidence.findings)
    printed = [name for name in evidence.findings if literature.example(name, "base", "auroc")]
    return printed or list(evidence.findings)


def _table(evidence: Evidence, pipeline: Pipeline) -> Matrix:
    notes = Footnotes()
    groups, printed = [], []
    for finding in _findings(evidence):
        rows = [labelled(WORDS[arm], _cells(evidence, pipeline, arm, finding, notes)) for arm in ARMS]
        groups.append((finding, tuple(rows)))
        printed += _published(finding, notes) if on_paper_data(evidence) else []
    columns = tuple(Column(name) for name in COLUMNS.values())
    table = Matrix(pipeline.label, columns, tuple(groups), tuple(notes.reasons), "Network")
    return with_rows(table, printed, notes, literature.SOURCE)


def _cells(evidence: Evidence, pipeline: Pipeline, arm: str, finding: str, notes: Footnotes) -> list[Cell]:
    networks = [network_estimate(evidence, pipeline, arm, *each, finding) for each in PREDICTIONS]
    hit, overlap = (map_estimate(evidence, pipeline, arm, MEAN, metric, finding) for metric in ("hit", "iou"))
    cells = [cell_of(each, SCORE, notes) for each in networks]
    return [*cells, cell_of(hit, SHARE, notes), cell_of(overlap, SCORE, notes)]


def _published(finding: str, notes: Footnotes) -> list[Row]:
    rows = []
    for arm in ARMS:
        figures = {metric: literature.example(finding, arm, metric) for metric in COLUMNS}
        if any(figures.values()):
            cells = [figure_cell(figure, SHARE.rounded(0) if metric == "hit" else SCORE.rounded(2), notes)
                     for metric, figure in figures.items()]  # fmt: skip
            rows.append(labelled(f"{finding}, {WORDS[arm]}", cells, kind="published"))
    return rows
