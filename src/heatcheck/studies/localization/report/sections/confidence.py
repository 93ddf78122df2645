"""Do maps point better when the model is sure? Regressions of the score on the stated probability."""

from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import SLOPE, SPEARMAN
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.block import Block, Fold, Prose, bullets, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Matrix, by_finding, labelled
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, count, listed
from heatcheck.report.page import Section
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.facts import every_finding, finding_columns, footnotes_of
from heatcheck.studies.localization.report.sections.geometry import OURS, THEIRS, slope_cell
from heatcheck.studies.localization.report.standing import standing_on
from heatcheck.studies.localization.vocabulary import PAPER_PRESET, PROBABILITY

# a measure on cases with the finding, and by the paper's rules; the paper calls it as we do
MEASURES = {"iou": "iou_full", "hit": "hit"}
_NAMES = {"iou": "overlap", "hit": "hit rate"}
_POOLED = "All pathologies"


@dataclass(frozen=True, slots=True)
class MethodRegressions:
    """One method's regressions, one table per measure."""

    label: str
    tables: tuple[Matrix, ...]


WHY_POSITIVES = (
    "If maps point better when the model is confident, the map of an uncertain answer calls for caution. Above 0 the "
    "score rises with the model’s probability. Only cases with the finding can answer this: on an image without it "
    "every region scores 0, and a model that can tell is less sure there, so over all images the overlap of any "
    "picture rises, even of noise. The paper fits all images; its slopes stand beside ours by its rules only."
)
FITS = (
    "The recommended fit stretches the probability to 0\u20131 within each finding, compares within findings when they "
    "are pooled, treats the images of one patient as a cluster and corrects intervals and p-values for the number of "
    "fits (Bonferroni); for hits it is a log odds ratio. The paper\u2019s rules: a straight line on the raw "
    "probability, stars at p below 0.05, 0.01 and 0.001; the overlap on all images is that of the paper\u2019s regions "
    "in plainly resized maps, emptied below a cutoff that was tuned for these regions where there are validation data. "
    "Pooled across findings, a line can slope the other way than "
    "within every single finding."
)


def confidence(evidence: Evidence) -> Section | None:
    """The section on confidence; None when the run has no such regression."""
    known = [metric for metric in MEASURES if metric in evidence.metrics]
    details = [detail for entrant in _shown_methods(evidence) if (detail := _detail(evidence, entrant, known)).tables]
    view = evidence.under(feature=PROBABILITY)
    every = [table for metric in known if (table := by_finding(view, SLOPE, metric))]
    if not details and not every:
        return None
    sentences = [_sentence(evidence, entrant) for entrant in _shown_methods(evidence)[:1]]
    sentences = [sentence for sentence in (*sentences, _floors_too(evidence)) if sentence]
    blocks: tuple[Block, ...] = (
        Prose(WHY_POSITIVES),
        *bullets(sentences),
        *(block for detail in details for block in _folded(evidence, detail)),
        *fold("The recommended slope, every method", tables(every, ": slope on the model\u2019s probability")),
    )
    title, summary = "Do maps point better when the model is confident?", sentences[0] if sentences else ""
    return Section("confidence", title, "Confidence", blocks, summary)


def _folded(evidence: Evidence, detail: MethodRegressions) -> tuple[Fold, ...]:
    note = literature.caveat_of(evidence, detail.tables)
    return fold(
        f"{detail.label}: slopes and rank correlations, with intervals",
        (Prose(FITS, small=True), *tables(detail.tables), *prose(note, small=True)),
    )


def _shown_methods(evidence: Evidence) -> list[Entrant]:
    """The leading method, and the method of the paper's tables."""
    standing = standing_on(evidence, "iou") or standing_on(evidence, "hit")
    chosen = [standing.leader] if standing else list(evidence.methods[:1])
    return chosen + [e for e in evidence.methods if e.name == literature.PIPELINE and e not in chosen]


def _detail(evidence: Evidence, entrant: Entrant, metrics: list[str]) -> MethodRegressions:
    tables = [_table(evidence, entrant, metric) for metric in metrics]
    return MethodRegressions(entrant.label, tuple(table for table in tables if table))


def _table(evidence: Evidence, entrant: Entrant, metric: str) -> Matrix | None:
    """Kinds of fit against findings."""
    ours = evidence.under(feature=PROBABILITY)
    theirs = evidence.under(feature=PROBABILITY, preset=PAPER_PRESET)
    paper = MEASURES[metric]
    where = THEIRS if paper == metric else f"{THEIRS}, all images"
    fits = {f"Slope, {OURS}": (ours, SLOPE, metric), f"Slope, {where}": (theirs, SLOPE, paper),
            f"Spearman, {where}": (theirs, SPEARMAN, paper)}  # fmt: skip
    names, notes = every_finding(evidence), Footnotes()
    estimates = {
        label: [view.find(statistic, measure, n, entrant.name) for n in names]
        for label, (view, statistic, measure) in fits.items()
    }
    rows = [labelled(label, [slope_cell(x, notes) for x in row]) for label, row in estimates.items() if any(row)]
    if not rows:
        return None
    caption = f"{evidence.metrics[metric].label} of {entrant.label} on the model\u2019s probability"
    table = Matrix(caption, finding_columns(names), (("This run", tuple(rows)),), tuple(notes.reasons), "Fit")
    if entrant.name != literature.PIPELINE or not literature.is_own_data(evidence):
        return table
    pooled = _POOLED if literature.same_findings(evidence.findings) else ""
    return _with_published(table, metric, pooled)


def _with_published(table: Matrix, metric: str, pooled: str) -> Matrix:
    """The table with the published fits; `pooled` is the paper's row for all findings, where it may be compared."""
    notes, rows = footnotes_of(table), []
    for column, label in (("linear", "Slope"), ("spearman", "Spearman")):
        figures = [
            literature.confidence(metric, pooled if c.name == ALL_FINDINGS else c.name, column) for c in table.columns
        ]
        if any(figures):
            rows.append(labelled(label, [figure_cell(f, SCORE, notes, signed=True) for f in figures], kind="published"))
    return with_rows(table, rows, notes, literature.SOURCE)


def _sentence(evidence: Evidence, entrant: Entrant) -> str:
    """On how many findings the method clearly scores higher where the model's probability is higher."""
    view = evidence.under(feature=PROBABILITY)
    links = []
    for metric, name in _NAMES.items():
        rows = [row for finding in evidence.findings if (row := view.find(SLOPE, metric, finding, entrant.name))]
        if rows:
            links.append(f"its {name} {_link(rows)}")
    return f"{entrant.label}: {listed(links)}." if links else ""


def _floors_too(evidence: Evidence) -> str:
    """Which floors clearly rise as well: they never see the model, so that a rise like theirs says nothing of maps."""
    view = evidence.under(feature=PROBABILITY)
    rises = [
        f"the {name} of {floor.label}"
        for metric, name in _NAMES.items()
        for floor in evidence.floors
        for row in [view.find(SLOPE, metric, ALL_FINDINGS, floor.name)]
        if row and judgement_of(row).is_yes
    ]
    if not rises:
        return ""
    return (
        f"Over all findings, {listed(rises)} clearly rises too, without looking at the model: findings that the model "
        "is sure of, such as large ones, are easier to meet for any picture."
    )


def _link(rows: Sequence[Estimate]) -> str:
    """On how many findings the score clearly rises; where on none, on how many it clearly falls."""
    rises = sum(judgement_of(row).is_yes for row in rows)
    if rises:
        return f"clearly rises with the model\u2019s probability on {rises} of {count(len(rows), 'finding')}"
    falls = sum(opposite_of(row).is_yes for row in rows)
    if falls:
        return f"clearly falls with the model\u2019s probability on {falls} of {count(len(rows), 'finding')}"
    return "is not shown to change with the model\u2019s probability on any finding"
