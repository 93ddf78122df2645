"""What robustness depends on: two regressions and the correlations of the scores, with the published ones."""

import math
from collections.abc import Mapping

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import CORRELATION
from heatcheck.report.blocks.block import Block, Heading, Prose, Table, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, SCORE, number, probability
from heatcheck.report.page import Section
from heatcheck.report.published import figure_cell
from heatcheck.studies.alignment.report import literature
from heatcheck.studies.alignment.report.facts import ARM_LABELS, methods_of, on_paper_data
from heatcheck.studies.alignment.vocabulary import ERRORS, MAIN_METRICS, PAIRED_SCORES, REGRESSION

KINDS = {"pearson": "Pearson", "spearman": "Spearman"}
Fits = Mapping[tuple[str, str], Mapping[str, Estimate]]  # by metric and term, then by kind of errors


WHAT = (
    "A regression shows which of three factors goes with a large difference between aligned and misaligned maps: "
    "whether the model was pretrained, its architecture, and the method. A coefficient is how much larger the "
    "difference is than that of the reference, which the intercept describes: DenseNet, Gradient and not pretrained, "
    "where the run has them."
)
ERRORS_MEAN = (
    "Classical errors, as published, treat every image as independent, and take what one training does by luck for an "
    "effect of its architecture or method, however many images there are. Tested over networks, each base model counts "
    "once, and so does each patient: these are the errors to go by. A factor that only one base model has cannot be "
    "tested. Each interval holds by itself, and no claim of this page rests on one."
)
AGREE = "1: both rank the images in the same order; 0: unrelated."


def factors(evidence: Evidence) -> Section | None:
    """The section with both regressions and the correlations; None when neither was made."""
    fits = _fits(evidence)
    found = [_regression(evidence, metric, fits) for metric in MAIN_METRICS if any(key[0] == metric for key in fits)]
    correlations = _correlations(evidence)
    if not found and correlations is None:
        return None
    published = on_paper_data(evidence)
    caveat, source = (literature.caveat(), f"Published: {literature.SOURCE}.") if published else ("", "")
    agreement: tuple[Block, ...] = (
        (Heading("Do mass and rank agree?"), Table(correlations), *prose(AGREE, source, small=True))
        if correlations
        else ()
    )
    regressions: tuple[Block, ...] = (
        (Prose(WHAT), *tables(found), *prose(ERRORS_MEAN, caveat, small=True)) if found else ()
    )
    blocks = (*regressions, *agreement)
    return Section("factors", "What does the distance depend on?", "Factors", blocks, _summary(evidence))


def _summary(evidence: Evidence) -> str:
    """How well the two scores agree on the maps of the aligned networks."""
    wanted = ("mass_align", "rank_align")
    for row, facts in evidence.rows(CORRELATION, every_model=True):
        pair = facts.get("left", ""), facts.get("right", "")
        if row.finding == ALL_FINDINGS and (pair, facts.get("kind")) == (wanted, "spearman"):
            agree = number(row.value, SCORE.rounded(2))
            return f"Pretraining, architecture and method; mass and rank agree with a rank correlation of {agree}."
    return "Pretraining, architecture and method."


def _fits(evidence: Evidence) -> Fits:
    fits: dict[tuple[str, str], dict[str, Estimate]] = {}
    for row, facts in evidence.rows(REGRESSION, every_model=True):
        fits.setdefault((row.metric, facts.get("term", "")), {})[facts.get("errors", "")] = row
    return fits


def _regression(evidence: Evidence, metric: str, fits: Fits) -> Matrix:
    """One row per term, the intercept first."""
    notes = Footnotes()
    labels = {method.name: method.label for method in methods_of(evidence)}
    rows = []
    for (of, term), by_errors in fits.items():
        if of == metric:
            cells = [_coefficient(by_errors.get(errors), notes) for errors in ERRORS]
            printed = [_printed(literature.regression(metric, term))] if on_paper_data(evidence) else []
            rows.append(labelled(_term(term, labels), [*cells, *printed]))
    columns = (
        Column("This run", "classical errors", main=True),
        Column("This run", "tested over networks"),
        *((Column("Published", literature.SOURCE),) if on_paper_data(evidence) else ()),
    )
    name = f"Coefficients of {evidence.label_of(metric).lower()}, aligned minus misaligned"
    return Matrix(name, columns, (("Terms", tuple(rows)),), tuple(notes.reasons), "Term")


def _term(term: str, labels: Mapping[str, str]) -> str:
    """The factor and its level; a factor with one level alone has only its own name."""
    kind, _, name = term.partition(":")
    label = f"{kind[:1].upper()}{kind[1:]}"
    return f"{label}: {labels.get(name, name) if kind == 'method' else name}" if name else label


def _coefficient(row: Estimate | None, notes: Footnotes) -> Cell:
    cell = cell_of(row, SCORE, notes)
    if row is None or math.isnan(row.value):
        return cell
    error = "" if math.isnan(row.error) else _standard_error(row.error)
    interval = "; ".join(filter(None, (cell.interval, error)))
    return Cell(number(row.value, SCORE, signed=True), interval, cell.title, cell.note,
                outcome=probability(row.p_value))  # fmt: skip


def _standard_error(error: float) -> str:
    return f"SE {error:.4f}"


def _printed(coefficient: literature.Coefficient | None) -> Cell:
    if coefficient is None:
        return Cell(MISSING, title="not published")
    p_value = coefficient.p_value
    outcome = f"p < {p_value:.0e}" if coefficient.p_is_bound else probability(p_value)
    error = _standard_error(coefficient.standard_error)
    return Cell(number(coefficient.value, SCORE, signed=True), error, outcome=outcome)


def _correlations(evidence: Evidence) -> Matrix | None:
    pairs: dict[tuple[str, str], dict[str, Estimate]] = {}
    for row, facts in evidence.rows(CORRELATION, every_model=True):
        if row.finding == ALL_FINDINGS:
            pairs.setdefault((facts.get("left", ""), facts.get("right", "")), {})[facts.get("kind", "")] = row
    if not pairs:
        return None
    notes = Footnotes()
    rows = [_pair(evidence, pair, by_kind, notes) for pair, by_kind in pairs.items()]
    asides = ("this run", "published") if on_paper_data(evidence) else ("this run",)
    columns = tuple(Column(name, aside, main=aside == "this run") for name in KINDS.values() for aside in asides)
    return Matrix("Correlation between scores of the same image", columns, (("Pairs", tuple(rows)),),
                  tuple(notes.reasons), "Scores")  # fmt: skip


def _pair(evidence: Evidence, pair: tuple[str, str], by_kind: Mapping[str, Estimate], notes: Footnotes) -> Row:
    cells = []
    for kind in KINDS:
        cells.append(cell_of(by_kind.get(kind), SCORE, notes))
        if on_paper_data(evidence):
            cells.append(figure_cell(literature.correlation(kind, *pair), SCORE, notes))
    return labelled(" and ".join(_score(evidence, name) for name in pair), cells)


def _score(evidence: Evidence, name: str) -> str:
    if name not in PAIRED_SCORES:
        return name
    metric, arm = PAIRED_SCORES[name]
    return f"{evidence.label_of(metric).lower()}, {ARM_LABELS[arm]}"
