"""Robustness: aligned minus misaligned, per model and method, with the published figures."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN
from heatcheck.judging.judgement import Answer, judgement_of
from heatcheck.report.blocks.block import Block, Figures, Heading, Legend, Prose, Table, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.charts import legend
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.dotplot import DotPlot, Mark, PlotRow, draw
from heatcheck.report.charts.panels import Panel, PanelGroup
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, Unit, count, difference_of, number
from heatcheck.report.page import Section
from heatcheck.report.published import Figure, figure_cell, has_published_rows, with_rows
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN, answer, smallest_visible, would_decide
from heatcheck.studies.alignment.report import literature
from heatcheck.studies.alignment.report.facts import (
    ARM_LABELS,
    PERFECT,
    Pipeline,
    any_perfect,
    interval_words,
    manifest,
    map_estimate,
    network_estimate,
    on_paper_data,
    over_findings,
    pipelines,
    trained_once,
)
from heatcheck.studies.alignment.vocabulary import ARMS, BY_IMAGE, DIRECTIONS, MAIN_METRICS, ROBUSTNESS

MORE_METRICS = ("hit", "iou")
_UNIT = SCORE.rounded(2)


def push(
    evidence: Evidence, pipeline: Pipeline, metric: str, finding: str = ALL_FINDINGS, *, pooled: bool = False
) -> Estimate | None:
    """The robustness of one pipeline; with `pooled` every image counts the same, as in the paper."""
    name = pipeline.base.name
    under = evidence.under(name, pooled=BY_IMAGE) if pooled else evidence.under(name)
    return under.find(ROBUSTNESS, metric, finding, pipeline.method.name)


@dataclass(frozen=True, slots=True)
class Pushed:
    """A pipeline and its robustness over all findings."""

    pipeline: Pipeline
    row: Estimate


def pushed(evidence: Evidence) -> list[Pushed]:
    """The pipelines with a defined robustness of the blame metric, the largest first."""
    metric = manifest(evidence).blame_metric
    pairs = [(pipeline, push(evidence, pipeline, metric)) for pipeline in pipelines(evidence)]
    defined = [Pushed(pipeline, row) for pipeline, row in pairs if row and not math.isnan(row.value)]
    return sorted(defined, key=lambda each: -each.row.value)


def further(evidence: Evidence, one: Pipeline, other: Pipeline) -> Estimate | None:
    """By how much one pipeline was pushed further than another, image by image; None when it was not computed."""
    metric = manifest(evidence).blame_metric
    for first, second, sign in ((one, other, 1), (other, one, -1)):
        under = evidence.under(first.base.name, other_model=second.base.name)
        row = under.find(ROBUSTNESS, metric, ALL_FINDINGS, first.method.name, second.method.name)
        if row is not None:
            return row if sign == 1 else replace(row, value=-row.value, low=-row.high, high=-row.low)
    return None


WHAT = (
    "R is the score of the aligned network minus that of the misaligned one, image by image: the same images, the same "
    "masks, the same method; only the weights of the model differ. Near 0, the score cannot be changed this way. A "
    "large R means that a score against masks grades how the model was trained as much as the method."
)
ONCE = (
    "Each network was trained once. The numbers hold for these networks alone; another training may give others, so "
    "nothing is claimed of how a method behaves under fine-tuning, and no difference could have been shown."
)
POOLED = (
    "Every finding counts equally, except in the columns \u201call images\u201d, where every image does, as in the "
    "paper. AUROC is the mean over the findings that have enough positives."
)
UNTOLD = "one training cannot tell"  # an answer, where every network was trained once


def robustness(evidence: Evidence) -> Section | None:
    """The section; None when nothing was aligned and misaligned."""
    metrics = [m for m in (*MAIN_METRICS, *MORE_METRICS) if any(push(evidence, p, m) for p in pipelines(evidence))]
    if not metrics:
        return None
    table = _table(evidence, metrics)
    main = [metric for metric in metrics if metric in MAIN_METRICS]
    more = [metric for metric in metrics if metric in MORE_METRICS]
    blocks = (
        Prose(WHAT),
        *_plots(evidence, main),
        Table(table, note=_judged_by(evidence)),
        *tables([_compared(evidence)]),
        *prose(" ".join(_small_print(evidence)), small=True),
        *prose(literature.caveat() if has_published_rows(table) else "", small=True),
        *_every_finding(evidence, main, more),
        *fold("The scores of each network", tables([_scores(evidence, metric) for metric in metrics])),
    )
    title = "How far can the score be pushed?"
    return Section("robustness", title, "Robustness", blocks, _summary(evidence), printed=True)


def _summary(evidence: Evidence) -> str:
    """How many pairs were clearly pushed, and the furthest; of single trainings, what was seen."""
    ranked = pushed(evidence)
    if not ranked:
        return ""
    furthest = f"{number(ranked[0].row.value, _UNIT, signed=True)} ({ranked[0].pipeline.label})"
    if trained_once(evidence):
        return f"At most {furthest}; one training each, so nothing is claimed of a method under fine-tuning."
    yes = sum(judgement_of(each.row).is_yes for each in ranked)
    return f"Clearly pushed: {yes} of {count(len(ranked), 'pair')} of model and method; at most {furthest}."


def _plots(evidence: Evidence, metrics: Sequence[str]) -> tuple[Block, ...]:
    """Each measure's plots, one a base model, and the key to their marks."""
    groups = [_panels(evidence, metric) for metric in metrics]
    crosses = any("published-mark" in panel.plot for group in groups for panel in group.panels)
    published = (legend.published(literature.SOURCE, "for this kind of model and method"),) if crosses else ()
    keys = replace(legend.METHOD, meaning=f"R of {over_findings(evidence)}, with its 95 % interval"), *published
    shown = ((Heading(group.name), Prose(group.sentence, small=True), Figures(group.panels)) for group in groups)
    return (Legend(keys), *(block for blocks in shown for block in blocks)) if groups else ()


def _judged_by(evidence: Evidence) -> str:
    """From which R on a score counts as pushed; that nothing is claimed where every network was trained once."""
    size = _size(evidence)
    if not size:
        return ONCE
    return (
        f"An R of {size} or more matters: a share of the room between a random map and the human marks, set in the "
        "spec. The intervals of a column hold together, so that the largest R may be read with its interval. "
        f"{CLEARLY} {NOT_SHOWN} {visible(evidence)}"
    )


def _unit(evidence: Evidence, metric: str) -> Unit:
    return difference_of(evidence.metrics[metric].unit)


def _panels(evidence: Evidence, metric: str) -> PanelGroup:
    """One plot per base model, all on the same axis."""
    rows: dict[str, list[PlotRow]] = {}
    for pipeline in pipelines(evidence):
        rows.setdefault(pipeline.base.label, []).append(_plot_row(evidence, pipeline, metric))
    marks = [mark for group in rows.values() for row in group for mark in row.marks]
    limits = limits_around([value for mark in marks for value in (mark.value, mark.low, mark.high)])
    measure, unit = evidence.metrics[metric], _unit(evidence, metric)
    axis = f"{measure.label}, aligned minus misaligned"
    plots = {
        base: DotPlot(f"{axis}: {base}, by method", axis, tuple(group), unit, limits) for base, group in rows.items()
    }
    return PanelGroup(measure.label, measure.summary, tuple(Panel(base, draw(plot)) for base, plot in plots.items()))


def _plot_row(evidence: Evidence, pipeline: Pipeline, metric: str) -> PlotRow:
    row, unit = push(evidence, pipeline, metric), _unit(evidence, metric)
    if row is None:
        return PlotRow(pipeline.method.label, "", ())
    marks = [Mark("method", pipeline.method.label, row.value, row.low, row.high)]
    figure = _printed(evidence, pipeline, f"robustness_{metric}")
    if figure and not math.isnan(figure.value):
        marks.append(Mark("published", f"published by {literature.SOURCE}", figure.value))
    return PlotRow(pipeline.method.label, number(row.value, unit.rounded(2), signed=True), tuple(marks))


def _printed(evidence: Evidence, pipeline: Pipeline, quantity: str) -> Figure | None:
    base = pipeline.base
    if not base.start_known or not on_paper_data(evidence):  # the published table distinguishes pretrained models
        return None
    return literature.robustness(base.architecture, pipeline.method.name, quantity, pretrained=base.pretrained)


def _table(evidence: Evidence, metrics: Sequence[str]) -> Matrix:
    """Robustness and the AUROC of both networks, by pipeline."""
    notes = Footnotes()
    groups = _by_base((each, _cells(evidence, each, metrics, notes)) for each in pipelines(evidence))
    names = [evidence.metrics[metric].label for metric in metrics]
    pooled = [f"{evidence.metrics[metric].label}, all images" for metric in _by_image(evidence, metrics)]
    columns = (
        Column("Clearly pushed", names[metrics.index(_judged_metric(evidence, metrics))]),
        *(Column(name, "R", main=i == 0) for i, name in enumerate(names)),
        *(Column(name, "R, as published") for name in pooled),
        *(Column("AUROC", ARM_LABELS[arm]) for arm in DIRECTIONS),
    )
    table = Matrix("Aligned minus misaligned (R)", columns, groups, tuple(notes.reasons), "Model · method")
    return with_rows(table, _published(evidence, metrics, notes), notes, literature.SOURCE)


def _by_image(evidence: Evidence, metrics: Sequence[str]) -> list[str]:
    """The metrics with a column in which every image counts the same: with one finding it would say nothing new."""
    if len(evidence.findings) == 1 and not on_paper_data(evidence):
        return []
    return [metric for metric in metrics if metric in MAIN_METRICS]


def _small_print(evidence: Evidence) -> tuple[str, ...]:
    """What counts how much, and what the intervals allow for."""
    pooled = POOLED if len(evidence.findings) > 1 or on_paper_data(evidence) else ""
    perfect = PERFECT if any_perfect(evidence) else ""
    return tuple(
        filter(None, (pooled, f"Beside each number is its 95 % interval. {interval_words(evidence)}", perfect))
    )


def _every_finding(evidence: Evidence, main: Sequence[str], more: Sequence[str]) -> tuple[Block, ...]:
    """R of each finding behind folds; nothing where there is one."""
    if len(evidence.findings) == 1:
        return ()
    return (
        *fold("R by finding", tables([_by_finding(evidence, metric) for metric in main])),
        *fold("R by finding: hit rate and overlap", tables([_by_finding(evidence, metric) for metric in more])),
    )


def _judged_metric(evidence: Evidence, metrics: Sequence[str]) -> str:
    """The metric that the verdict is about."""
    name = manifest(evidence).blame_metric
    return name if name in metrics else metrics[0]


def _answer(evidence: Evidence, row: Estimate | None) -> Cell:
    """Yes, no or not shown, with what would decide it; after one training, that it cannot be known."""
    judgement = judgement_of(row)
    if trained_once(evidence) and judgement.answer is Answer.OPEN:
        return Cell(UNTOLD, title=judgement.reason)
    return Cell(answer(row), title=judgement.reason, outcome=would_decide(row) if row else "")


def _size(evidence: Evidence) -> str:
    """The size that matters, in the unit of the score; empty where no claim can be made."""
    sizes = [each.row.size for each in pushed(evidence) if not math.isnan(each.row.size)]
    return number(sizes[0], _unit(evidence, manifest(evidence).blame_metric).rounded(2)) if sizes else ""


def visible(evidence: Evidence) -> str:
    """Which differences the run could not have shown."""
    rows = [each.row for each in pushed(evidence) if not math.isnan(each.row.size)]
    if math.isnan(smallest_visible(rows)):
        return ""
    least = max(smallest_visible(rows), rows[0].size)  # a smaller one is never called clear
    unit = _unit(evidence, manifest(evidence).blame_metric).rounded(2)
    patients, seeds = max(row.n_patients for row in rows), len(manifest(evidence).seeds)
    return (
        f"With {count(patients, 'patient')} and {count(seeds, 'training')} of each network, an R below "
        f"{number(least, unit)} would go unnoticed in more than half of such runs."
    )


def _compared(evidence: Evidence) -> Matrix | None:
    """How much less far the others were pushed than the furthest; None with one pipeline."""
    ranked = pushed(evidence)
    if len(ranked) < 2:
        return None
    notes, unit = Footnotes(), _unit(evidence, manifest(evidence).blame_metric)
    rows = []
    for other in ranked[1:]:
        row = further(evidence, ranked[0].pipeline, other.pipeline)
        rows.append(labelled(other.pipeline.label, [_answer(evidence, row), cell_of(row, unit, notes)]))
    columns = (Column("Clearly less"), Column("Difference", "R of the furthest minus this", main=True))
    title = f"Compared with {ranked[0].pipeline.label}, whose R is largest"
    return Matrix(title, columns, (("", tuple(rows)),), tuple(notes.reasons), "Model · method")


def _by_base(cells: Iterable[tuple[Pipeline, list[Cell]]]) -> tuple[tuple[str, tuple[Row, ...]], ...]:
    """Rows named for the methods, grouped by base."""
    groups: dict[str, list[Row]] = {}
    for pipeline, of_row in cells:
        groups.setdefault(pipeline.base.label, []).append(labelled(pipeline.method.label, of_row))
    return tuple((base, tuple(rows)) for base, rows in groups.items())


def _cells(evidence: Evidence, pipeline: Pipeline, metrics: Sequence[str], notes: Footnotes) -> list[Cell]:
    row = push(evidence, pipeline, _judged_metric(evidence, metrics))
    cells = [_answer(evidence, row)]
    cells += [cell_of(push(evidence, pipeline, metric), _unit(evidence, metric), notes) for metric in metrics]
    cells += [
        cell_of(push(evidence, pipeline, metric, pooled=True), _unit(evidence, metric), notes)
        for metric in _by_image(evidence, metrics)
    ]
    networks = [network_estimate(evidence, pipeline, arm, AUROC, AUROC, ALL_FINDINGS) for arm in DIRECTIONS]
    return cells + [cell_of(each, SCORE, notes) for each in networks]


def _published(evidence: Evidence, metrics: Sequence[str], notes: Footnotes) -> list[Row]:
    """The published figures of these kinds of models and methods, each once."""
    rows: dict[str, Row] = {}
    quantities = ["" for _ in ("answer", *metrics)] + [
        f"robustness_{metric}" for metric in _by_image(evidence, metrics)
    ]
    quantities += [f"auroc_{arm}" for arm in DIRECTIONS]
    for pipeline in pipelines(evidence):
        figures = [_printed(evidence, pipeline, quantity) if quantity else None for quantity in quantities]
        kind = literature.label(pipeline.base.architecture, pretrained=pipeline.base.pretrained)
        name = f"{kind} · {pipeline.method.label}"
        if any(figures) and name not in rows:
            cells = [figure_cell(figure, SCORE, notes) for figure in figures]
            rows[name] = labelled(name, cells, kind="published")
    return list(rows.values())


def _by_finding(evidence: Evidence, metric: str) -> Matrix:
    """Robustness of every pipeline on every finding."""
    notes, unit = Footnotes(), _unit(evidence, metric)
    names = (ALL_FINDINGS, *evidence.findings)
    groups = _by_base(
        (each, [cell_of(push(evidence, each, metric, name), unit, notes) for name in names])
        for each in pipelines(evidence)
    )
    columns = tuple(Column(name, main=name == ALL_FINDINGS) for name in names)
    title = f"R by finding: {evidence.metrics[metric].label}"
    return Matrix(title, columns, groups, tuple(notes.reasons), "Model · method")


def _scores(evidence: Evidence, metric: str) -> Matrix:
    """The mean scores of every network over all findings."""
    notes, unit = Footnotes(), evidence.metrics[metric].unit
    groups = _by_base(
        (each, [cell_of(map_estimate(evidence, each, arm, MEAN, metric, ALL_FINDINGS), unit, notes) for arm in ARMS])
        for each in pipelines(evidence, every=True)
    )
    columns = tuple(Column(label.capitalize()) for label in ARM_LABELS.values())
    return Matrix(evidence.metrics[metric].label, columns, groups, tuple(notes.reasons), "Model · method")
