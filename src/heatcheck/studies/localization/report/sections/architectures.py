"""Several models in one run: how each scores, which clearly differ, and which was chosen on validation data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import AUROC, MEAN, MODEL_DIFFERENCE, SELECTED, Statistic
from heatcheck.report.blocks.block import Block, Heading, Prose, Table, bullets, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import MISSING, Unit, difference_of, number
from heatcheck.report.page import Section
from heatcheck.report.published import Figure, figure_cell, with_rows
from heatcheck.runs.manifest import ModelEntry
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.facts import (
    best_first,
    every_finding,
    finding_columns,
    footnotes_of,
    manifest,
    speaks_of,
)
from heatcheck.studies.localization.report.literature import ARCHITECTURES
from heatcheck.studies.localization.vocabulary import BEST_MODEL, BEST_PAIR, TESTED

OPEN = 3  # methods whose rows are shown unfolded


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """One model less another, one table per measure."""

    title: str
    tables: tuple[Matrix, ...]


ENSEMBLES = (
    "Do averaged networks make better maps than the best one alone? Above 0 the ensemble is better. The paper took the "
    "best checkpoint of each finding: where this run did so too, the published difference stands beside it, with the "
    "two published means below."
)
DIFFERENCES = (
    "Each cell: the difference on the cases both models have, its 95 % interval, and what that shows (interval and p "
    "allow for all comparisons made together; pp: percentage points)."
)


def architectures(evidence: Evidence) -> Section | None:
    """The section on models; None when the run has one model."""
    if len(evidence.models) < 2:
        return None
    methods = best_first(evidence)
    pairs = _pairs(evidence)
    mixed = [pair for pair in pairs if _is_ensemble_of(evidence, pair)]
    n_more = len(methods[OPEN:])
    shown, more = _tables(evidence, methods[:OPEN]), _tables(evidence, methods[OPEN:])
    ensembles = [_ensemble(evidence, pair) for pair in mixed]
    differences = [_comparison(evidence, pair) for pair in pairs if pair not in mixed]
    tested = tuple(block for each in differences for block in tables(each.tables, f": {each.title}"))
    compared = (
        f"The same images were explained with {len(evidence.models)} models. The rest of this page is about "
        f"{speaks_of(evidence)}; here they are compared."
    )
    blocks: tuple[Block, ...] = (
        Prose(compared),
        *bullets([_described(model) for model in evidence.models]),
        *_choice(evidence),
        *_discrimination(evidence),
        *((Heading("How well their maps point"),) if shown else ()),
        *tables(shown, ", by method and model"),
        *prose(literature.caveat_of(evidence, shown), small=True),
        *fold(f"The other {'method' if n_more == 1 else f'{n_more} methods'}", tables(more, ", by method and model")),
        *((Heading("Ensemble against a single checkpoint"), Prose(ENSEMBLES)) if ensembles else ()),
        *(block for each in ensembles for block in tables(each.tables, f": {each.title}")),
        *fold("Differences between models, with tests", (Prose(DIFFERENCES, small=True), *tested) if tested else ()),
    )
    summary = f"{len(evidence.models)} models on the same images."
    return Section("architectures", "Is it the model or the method?", "Architectures", blocks, summary)


def _described(model: ModelEntry) -> Markup:
    """The model's name, what it is made of, and what it is."""
    kinds = {"ensemble": f" (ensemble of {model.members})", "per_finding": " (best checkpoint of each finding)"}
    ending = f": {model.description}" if model.description else ""
    return Markup("<b>{}</b>{}{}").format(model.label, kinds.get(model.kind, ""), ending)


def _choice(evidence: Evidence) -> tuple[Block, ...]:
    """Which pair of model and method was chosen on validation data, and the best model of each method there."""
    selected, table = _selected(evidence), _selection_table(evidence)
    words = manifest(evidence).validation.words
    where = (
        f"The choice was made on other images than those scored here{f' ({words})' if words else ''}, so that it "
        "cannot flatter the result."
    )
    chosen: tuple[Block, ...] = (Heading("Which pair was chosen"), Prose(where), *bullets(selected)) if selected else ()
    return (
        *chosen,
        *fold("The best model of each method on validation data", tables([table])),
    )


def _discrimination(evidence: Evidence) -> tuple[Block, ...]:
    """How well each model separates images with a finding from images without it."""
    auroc = _by_model(evidence, AUROC, "auroc", ("",))
    if auroc is None:
        return ()
    note = f"{evidence.metrics['auroc'].summary} The highest of each column is underlined."
    return Heading("How well each model recognises the findings"), Table(auroc, "AUROC by model", note)


def architecture_of(model: ModelEntry) -> str:
    """The published architecture that the model's name contains; empty when there is none."""
    text = f"{model.architecture} {model.name} {model.label}".lower().replace("-", "").replace("_", "")
    return next((name for name in ARCHITECTURES if name.replace("_", "") in text), "")


def _tables(evidence: Evidence, methods: Sequence[Entrant]) -> list[Matrix]:
    tables = [(m, _by_model(evidence, MEAN, m, [e.name for e in methods])) for m in TESTED if m in evidence.metrics]
    known = literature.is_own_data(evidence)
    return [_with_published(evidence, t, metric, methods) if known else t for metric, t in tables if t]


def _by_model(evidence: Evidence, statistic: Statistic, metric: str, methods: Sequence[str]) -> Matrix | None:
    """Models against findings, with a group of rows per method; a model without such estimates is left out."""
    if metric not in evidence.metrics:
        return None
    labels = {entrant.name: entrant.label for entrant in evidence.methods}
    notes, measure = Footnotes(), evidence.metrics[metric]
    groups = []
    for method in methods:
        estimates = {
            model: [
                evidence.under(model.name).find(statistic, metric, name, method) for name in every_finding(evidence)
            ]
            for model in evidence.models
        }
        estimates = {model: row for model, row in estimates.items() if any(row)}
        rows = [labelled(m.label, [cell_of(e, measure.unit, notes) for e in row]) for m, row in estimates.items()]
        if rows:
            groups.append((labels.get(method, "The model itself"), _best_marked(rows, list(estimates.values()))))
    if not groups:
        return None
    return Matrix(measure.label, finding_columns(every_finding(evidence)), tuple(groups), tuple(notes.reasons), "Model")


def _best_marked(rows: Sequence[Row], estimates: Sequence[Sequence[Estimate | None]]) -> tuple[Row, ...]:
    """The rows with the highest cell of each column marked as strong."""
    values = [[-math.inf if e is None or math.isnan(e.value) else e.value for e in row] for row in estimates]
    best = [max(column) for column in zip(*values, strict=True)]
    marked = []
    for row, numbers in zip(rows, values, strict=True):
        cells = [replace(c, strong=v == b > -math.inf) for c, v, b in zip(row.cells, numbers, best, strict=True)]
        marked.append(replace(row, cells=tuple(cells)))
    return tuple(marked)


def _with_published(evidence: Evidence, table: Matrix, metric: str, methods: Sequence[Entrant]) -> Matrix:
    unit, notes = _unit_of(evidence, metric), footnotes_of(table)
    present = dict.fromkeys(name for model in evidence.models if (name := architecture_of(model)))
    rows = []
    for method in methods:
        for architecture in present:
            figures = [literature.localization(metric, c.name, method.name, architecture) for c in table.columns]
            if any(figures):
                cells = [figure_cell(figure, unit, notes) for figure in figures]
                rows.append(labelled(f"{method.label}, {ARCHITECTURES[architecture]}", cells, kind="published"))
    return with_rows(table, rows, notes, literature.SOURCE)


def _pairs(evidence: Evidence) -> list[tuple[str, str]]:
    rows = evidence.rows(MODEL_DIFFERENCE, every_model=True)
    return list(dict.fromkeys((row.model, str(facts.get("other_model", ""))) for row, facts in rows))


def _is_ensemble_of(evidence: Evidence, pair: tuple[str, str]) -> bool:
    """Whether one is an ensemble and the other, of the same architecture, is not."""
    both = [model for model in evidence.models if model.name in pair]
    built = {model.architecture or architecture_of(model) for model in both}
    kinds = [model.kind for model in both]
    return len(kinds) == 2 and kinds.count("ensemble") == 1 and len(built) == 1 and "" not in built


def _label(evidence: Evidence, name: str) -> str:
    return next((model.label for model in evidence.models if model.name == name), name)


def _comparison(evidence: Evidence, pair: tuple[str, str], *, turned: bool = False) -> ModelComparison:
    """One model less the other; turned round, the other less the one."""
    view = evidence.under(pair[0], other_model=pair[1])
    first, second = reversed(pair) if turned else pair
    tables = [_difference_table(view, metric, turned) for metric in (*TESTED, "auroc") if metric in view.metrics]
    title = f"{_label(evidence, first)} minus {_label(evidence, second)}"
    return ModelComparison(title, tuple(table for table in tables if table))


def _difference_table(view: Evidence, metric: str, turned: bool) -> Matrix | None:
    measure, notes = view.metrics[metric], Footnotes()
    entrants = [Entrant("", "The model itself", "method")] if metric == "auroc" else list(view.methods)
    differences = {e: [view.find(MODEL_DIFFERENCE, metric, f, e.name) for f in every_finding(view)] for e in entrants}
    rows = [
        Row(e, tuple(cell_of(_turned(x) if x and turned else x, difference_of(measure.unit), notes) for x in row))
        for e, row in differences.items()
        if any(row)
    ]
    if not rows:
        return None
    return Matrix(
        measure.label, finding_columns(every_finding(view)), (("Methods", tuple(rows)),), tuple(notes.reasons)
    )


def _unit_of(evidence: Evidence, metric: str) -> Unit:
    return evidence.metrics[metric].unit


def _turned(row: Estimate) -> Estimate:
    return replace(row, value=-row.value, low=-row.high, high=-row.low)


def _ensemble(evidence: Evidence, pair: tuple[str, str]) -> ModelComparison:
    """The ensemble less the single model, with what the paper printed, if the single is the best of each finding."""
    kinds = {model.name: model.kind for model in evidence.models}
    comparison = _comparison(evidence, pair, turned=kinds[pair[0]] != "ensemble")
    published = literature.is_own_data(evidence) and "per_finding" in (kinds[name] for name in pair)
    shown = {evidence.metrics[m].label: m for m in TESTED if published and m in evidence.metrics}
    tables = [
        _with_published_difference(evidence, table, shown[t]) if (t := table.caption) in shown else table
        for table in comparison.tables
    ]
    return ModelComparison(comparison.title, tuple(tables))


def _with_published_difference(evidence: Evidence, table: Matrix, metric: str) -> Matrix:
    """The table with the published difference, and below it the two numbers of which it is the difference."""
    method = next((method for method in evidence.methods if method.name == literature.PIPELINE), None)
    if method is None:
        return table
    unit, notes = _unit_of(evidence, metric), footnotes_of(table)
    cells = []
    for column in table.columns:
        many, one = (literature.ensemble(metric, column.name, name) for name in ("ensemble", "single_checkpoint"))
        if many and one:
            gap = figure_cell(Figure(many.value - one.value), difference_of(unit), notes, signed=True)
            cells.append(replace(gap, interval=f"{number(many.value, unit)} and {number(one.value, unit)}"))
        else:
            cells.append(figure_cell(None, unit, notes))
    rows = [labelled(method.label, cells, kind="published")] if any(cell.interval for cell in cells) else []
    return with_rows(table, rows, notes, literature.SOURCE)


def _selected(evidence: Evidence) -> list[str]:
    """Which pair of model and method was best on validation data, one sentence per measure."""
    methods = {entrant.name: entrant.label for entrant in evidence.methods}
    sentences = {}
    for row, facts in evidence.rows(SELECTED, every_model=True):
        if facts.get("stage") == BEST_PAIR and row.metric in evidence.metrics:
            measure = evidence.metrics[row.metric]
            sentences[row.metric] = (
                f"{measure.label}: {methods.get(row.method, row.method)} on {_label(evidence, row.model)} was the best "
                f"pair on the validation data ({number(row.value, measure.unit)} there)."
            )
    return [sentences[metric] for metric in TESTED if metric in sentences]


def _selection_table(evidence: Evidence) -> Matrix | None:
    """The best model of each method on validation data, one column per measure."""
    measures = [m for m in TESTED if m in evidence.metrics]
    chosen = {
        (row.metric, row.method): f"{_label(evidence, row.model)} ({number(row.value, _unit_of(evidence, row.metric))})"
        for row, facts in evidence.rows(SELECTED, every_model=True)
        if facts.get("stage") == BEST_MODEL and row.metric in measures
    }
    rows = [
        labelled(e.label, [Cell(chosen.get((m, e.name), MISSING)) for m in measures])
        for e in evidence.methods
        if any((m, e.name) in chosen for m in measures)
    ]
    columns = tuple(Column(evidence.metrics[m].label) for m in measures)
    return Matrix("Best model of each method on validation data", columns, (("", tuple(rows)),), ()) if rows else None
