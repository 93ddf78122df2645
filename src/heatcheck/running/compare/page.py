"""The page of several runs side by side: the answer, methods by runs, findings, and what was compared."""

from dataclasses import asdict
from pathlib import Path

import pandas as pd

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import InputError
from heatcheck.core.records import ALL_FINDINGS
from heatcheck.estimating.compared_scores import RunMean
from heatcheck.report.blocks.block import Block, ListColumn, Listing, Prose, Table, bullets, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, cell_of, grouped, labelled
from heatcheck.report.build import Head, filled
from heatcheck.report.charts import legend
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.dotplot import DotPlot, Mark, PlotRow, draw
from heatcheck.report.charts.panels import Panel
from heatcheck.report.downloads import Download, download
from heatcheck.report.first_screen import FirstScreen
from heatcheck.report.numbers import MISSING, Unit, count, difference_of, interval, listed, moment, number
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN, Verdict
from heatcheck.running.compare.answer import recommendation, statuses
from heatcheck.running.compare.side_by_side import SideBySide
from heatcheck.running.registry import study_of

HOW = (
    "Scores are paired: every number rests on the cases that all compared runs have. Intervals of differences vary "
    "patients and allow for all methods and runs that are compared by a metric; those of a run\u2019s own mean do not."
)


def write_page(side: SideBySide, target: Path) -> Path:
    """Write the page and return its path."""
    if target.suffix != ".html" or target.is_dir():
        raise InputError(f"expected a file for the page, got {target}; name one that ends in .html")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replaced(target) as temporary:
        temporary.write_text(page_text(side), encoding="utf-8")
    return target


def page_text(side: SideBySide) -> str:
    """The whole page as text."""
    first = side.evidences[0]
    answer = FirstScreen(statuses(side), recommendation(side), None, _chart(side), (legend.METHOD,))
    page = StudyPage(
        kicker=study_of(first.run).question,
        verdict=Verdict("", ""),
        caveats=_caveats(side),
        speaks_of="",
        sections=tuple(section for section in (_methods(side), _findings(side), _others(side), _runs(side)) if section),
        downloads=(_rows(side),),
        answer=answer,
    )
    manifest = first.manifest
    cases = max((row.n_cases for row in side.compared.rows), default=0)
    subtitle = " \u00b7 ".join(filter(None, (manifest.source_description, count(len(side.names), "run"))))
    version = manifest.versions.get("heatcheck", "")
    title = f"{listed(side.names)} side by side" if cases else f"{listed(side.names)}: nothing to compare"
    return filled(page, Head(title, subtitle, f"heatcheck {version} \u00b7 study {manifest.study}"))


def _methods(side: SideBySide) -> Section:
    tables = [Table(_matrix(side, metric), side.metric(metric).label) for metric in side.main]
    blocks: tuple[Block, ...] = (Prose(HOW), *tables, *prose(CLEARLY, NOT_SHOWN, small=True))
    every = len({row.method for row in side.rows() if side.entrant(row.method).kind == "method"})
    summary = (
        f"{count(every, 'method')} by {count(len(side.main), 'metric')}, with the differences from {side.names[0]}."
    )
    return Section("methods", "Methods by runs", "Methods", blocks, summary, opened=True, printed=True)


def _findings(side: SideBySide) -> Section | None:
    """The differences finding by finding."""
    blocks = [
        Table(matrix, f"{side.metric(metric).label}: {side.names[run]} less {side.names[0]}")
        for metric in side.main
        for run in range(1, len(side.names))
        if (matrix := _finding_matrix(side, metric, run))
    ]
    if not blocks:
        return None
    return Section("findings", "Finding by finding", "Findings", tuple(blocks), "The differences on single findings.")


def _others(side: SideBySide) -> Section | None:
    """The metrics by which methods are not judged, and importances."""
    if not side.other_metrics:
        return None
    blocks = tuple(Table(_matrix(side, metric), side.metric(metric).label) for metric in side.other_metrics)
    return Section("others", "Other numbers", "Others", blocks, f"{count(len(blocks), 'further table')}.")


def _runs(side: SideBySide) -> Section:
    """What each run is, and in what the specs differ."""
    rows = tuple(
        (
            name,
            evidence.manifest.title,
            evidence.manifest.model_description or listed([each.label for each in evidence.models]),
            evidence.manifest.source_description,
            evidence.manifest.versions.get("heatcheck", MISSING),
            moment(evidence.manifest.finished),
        )
        for name, evidence in zip(side.names, side.evidences, strict=True)
    )
    names = ("Run", "Title", "Model", "Data", "heatcheck", "Finished")
    columns = tuple(ListColumn(name, wide=name in {"Title", "Model", "Data"}) for name in names)
    listing = Listing("The runs", columns, rows)
    summary = side.compared.sentences[0] if side.compared.sentences else ""
    return Section(
        "runs", "What was compared", "Runs", (*bullets(side.compared.sentences), listing), summary, printed=True
    )


def _caveats(side: SideBySide) -> tuple[str, ...]:
    weights = {str(each.manifest.weights_hash) for each in side.evidences}
    other_model = "The runs have other models: a difference of maps may be one of the models, not of the methods."
    unjudged = "Networks were trained in these runs: intervals vary patients alone, so nothing is claimed of them."
    return tuple(
        filter(
            None,
            (
                other_model if len(weights) > 1 else "",
                unjudged if any(row.size != row.size for row in side.rows()) else "",  # NaN
            ),
        )
    )


def _matrix(side: SideBySide, metric: str) -> Matrix:
    """Methods against runs, with the difference of each other run from the first."""
    unit, notes, means = side.metric(metric).unit, Footnotes(), side.means(metric)
    differences = {(row.method, row.run): row.estimate for row in side.rows(metric)}
    others = range(1, len(side.names))
    rows = [
        labelled(
            side.entrant(method).label,
            [
                *(_mean_cell(means.get((method, run)), unit) for run in range(len(side.names))),
                *(cell_of(differences.get((method, run)), difference_of(unit), notes) for run in others),
            ],
            kind=side.entrant(method).kind or "method",
        )
        for method in dict.fromkeys(method for method, _ in differences)
    ]
    columns = (
        *(Column(name, _cases(means, run)) for run, name in enumerate(side.names)),
        *(Column(f"{side.names[run]} \u2212 {side.names[0]}", main=True) for run in others),
    )
    return Matrix(side.metric(metric).label, columns, grouped(rows), tuple(notes.reasons))


def _mean_cell(mean: RunMean | None, unit: Unit) -> Cell:
    if mean is None:
        return Cell(MISSING, title="no score in this run")
    ends = interval(mean.low, mean.high, unit) if mean.low is not None and mean.high is not None else ""
    return Cell(number(mean.value, unit), ends.removesuffix(unit.sign))


def _cases(means: dict[tuple[str, int], RunMean], run: int) -> str:
    counts = [mean.n_cases for (_, number_), mean in means.items() if number_ == run]
    return f"n {max(counts):,}" if counts else ""


def _finding_matrix(side: SideBySide, metric: str, run: int) -> Matrix | None:
    rows = side.by_finding(metric, run)
    if not rows:
        return None
    notes, unit = Footnotes(), difference_of(side.metric(metric).unit)
    found = {(row.method, row.finding): row.estimate for row in rows}
    findings = [name for name in dict.fromkeys(row.finding for row in rows) if name != ALL_FINDINGS]
    lines = [
        labelled(
            side.entrant(method).label,
            [cell_of(found.get((method, finding)), unit, notes) for finding in findings],
            kind=side.entrant(method).kind or "method",
        )
        for method in dict.fromkeys(row.method for row in rows)
    ]
    return Matrix(metric, tuple(Column(name) for name in findings), grouped(lines), tuple(notes.reasons))


def _chart(side: SideBySide) -> Panel | None:
    """The differences of the second run from the first, method by method, by the first main metric."""
    main = side.main[:1]
    rows = [row for name in main for row in side.rows(name, 1) if side.entrant(row.method).kind == "method"]
    if not rows:
        return None
    metric = side.metric(main[0])
    unit = difference_of(metric.unit)
    heading = f"{metric.label}: {side.names[1]} less {side.names[0]}"
    lines = tuple(
        PlotRow(
            side.entrant(row.method).label,
            number(row.difference, unit, signed=True),
            (Mark("method", "difference", row.difference, row.estimate.low, row.estimate.high),),
        )
        for row in sorted(rows, key=lambda each: -each.difference)
    )
    limits = limits_around([end for row in rows for end in (row.difference, row.estimate.low, row.estimate.high)])
    title = f"difference{f' ({unit.sign.strip()})' if unit.sign else ''}; right of 0: higher in {side.names[1]}"
    return Panel(heading, draw(DotPlot(heading, title, lines, unit, limits)))


def _rows(side: SideBySide) -> Download:
    table = pd.DataFrame([asdict(row) for row in side.compared.rows])
    table["run"] = [side.names[row.run] for row in side.compared.rows]
    return download("compare.csv", f"every difference from {side.names[0]} with its interval", table)
