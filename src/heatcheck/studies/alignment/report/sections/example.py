"""The paper's first example: Grad-CAM on one network, unchanged, aligned and misaligned."""

from collections.abc import Mapping

from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, SHARE
from heatcheck.report.published import figure_cell, has_published_rows, with_rows
from heatcheck.studies.alignment.report import literature
from heatcheck.studies.alignment.report.facts import Pipeline, map_estimate, network_estimate, pipelines
from heatcheck.studies.alignment.report.sections.prediction import PREDICTIONS
from heatcheck.studies.alignment.vocabulary import ARMS

WORDS = {"base": "base", "control": "control", "align": "aligned (in-mask)", "misalign": "misaligned (out-mask)"}
COLUMNS = {
    "auroc": "AUROC",
    "mutual_information": "Mutual information with the label",
    "hit": "Hit rate",
    "iou": "Overlap (IoU)",
}


def example(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section shows; None when no network was tuned through Grad-CAM."""
    shown = [pipeline for pipeline in pipelines(evidence) if pipeline.method.name == literature.EXAMPLE_METHOD]
    tables = [_table(evidence, pipeline) for pipeline in shown]
    if not tables or not evidence.findings:
        return None
    other = [pipeline.base.label for pipeline in shown if pipeline.base.architecture != literature.EXAMPLE]
    return {"tables": tables, "caveat": literature.caveat() if has_published_rows(tables) else "", "other": other}


def _findings(evidence: Evidence) -> list[str]:
    """The findings of the published example, where the run has them, else all."""
    printed = [name for name in evidence.findings if literature.example(name, "base", "auroc")]
    return printed or list(evidence.findings)


def _table(evidence: Evidence, pipeline: Pipeline) -> Matrix:
    notes = Footnotes()
    groups, printed = [], []
    for finding in _findings(evidence):
        rows = [labelled(WORDS[arm], _cells(evidence, pipeline, arm, finding, notes)) for arm in ARMS]
        groups.append((finding, tuple(rows)))
        printed += _published(finding, notes)
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
