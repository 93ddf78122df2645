"""What the CheXlocalize paper printed, as rows below our own tables."""

from collections.abc import Callable

from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.core.vocabulary import MEAN, PERCENT_DECREASE, RATIO, Statistic
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Matrix, labelled
from heatcheck.report.numbers import PERCENT
from heatcheck.report.published import Figure, figure_cell, with_rows
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.facts import manifest
from heatcheck.studies.localization.vocabulary import REFERENCE

_PIXELS = {"specificity": "specificity", "recall": "sensitivity"}  # our name to the paper's


def beside(table: Matrix | None, evidence: Evidence, statistic: Statistic, metric: str) -> Matrix | None:
    """The table with what the paper printed for its methods and findings as a last group of rows."""
    if table is None:
        return None
    unit = PERCENT if statistic == PERCENT_DECREASE else evidence.measures[metric].unit
    notes = Footnotes({reason: i for i, reason in enumerate(table.notes, 1)})
    names = [column.name for column in table.columns]
    pooled = literature.same_findings(evidence.findings)
    rows = []
    for entrant in (READERS, *evidence.methods):
        figures = [
            printed(statistic, metric, name, entrant.name) if pooled or name != ALL_FINDINGS else None for name in names
        ]
        if any(figures):
            cells = [figure_cell(figure, unit, notes) for figure in figures]
            rows.append(labelled(entrant.label, cells, kind="published"))
    return with_rows(table, rows, notes, literature.SOURCE)


def printed(statistic: Statistic, metric: str, finding: str, method: str) -> Figure | None:
    """What the paper printed for a mean, a percentage decrease or a share of pixels."""
    lookup: dict[Statistic, Callable[[str, str, str], Figure | None]] = {
        MEAN: _mean,
        PERCENT_DECREASE: _decrease,
        RATIO: _share,
    }
    return lookup[statistic](metric, finding, method) if statistic in lookup else None


def _mean(metric: str, finding: str, method: str) -> Figure | None:
    columns = {HUMAN: "human", literature.PIPELINE: "saliency"}
    if finding == ALL_FINDINGS or method == HUMAN:
        row = literature.AVERAGE if finding == ALL_FINDINGS else finding
        return literature.against_human(metric, row, columns[method]) if method in columns else None
    return literature.localization(metric, finding, method)


def _decrease(metric: str, finding: str, method: str) -> Figure | None:
    row = literature.AVERAGE if finding == ALL_FINDINGS else finding
    return literature.against_human(metric, row, "percent_decrease") if method == literature.PIPELINE else None


def _share(metric: str, finding: str, method: str) -> Figure | None:
    whose = {HUMAN: "human", literature.PIPELINE: "saliency"}.get(method)
    return literature.pixels(finding, f"{_PIXELS[metric]}_{whose}") if whose and metric in _PIXELS else None


def caveat(evidence: Evidence) -> str:
    """How far the published figures may be compared with ours."""
    run = manifest(evidence)
    start = f"Rows marked \u201cpublished\u201d are copied from the CheXlocalize paper ({literature.SOURCE})"
    if run.source.published_as == REFERENCE:
        told = (
            "They rest on that data set\u2019s test images, an ensemble of DenseNet121 networks and the paper\u2019s "
            "own rules: compare them with ours only where this run used the same."
        )
    elif run.scores_files:  # from files, and those do not say what they were made of
        told = (
            "They may come from other images, patients and another model than these maps, so compare them only where "
            "you know that all are the same."
        )
    else:
        told = (
            "They come from other images, other patients and another model than this run, so they show what is usual "
            "and are no target."
        )
    return f"{start}. {told} A dash there was not published; footnotes say where the print is wrong."
